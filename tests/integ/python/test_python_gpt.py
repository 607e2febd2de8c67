"""quarkd.gpt with fields and operators that behave like GPT's: test_python_gpt.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import sys

from cli_case import CSW, DIMS, KAPPA, SHAPE, Case, np, random_sources, ref, tap
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'standin'))
import gpt as g  # noqa: E402
import quarkd  # noqa: E402
import quarkd.gpt  # noqa: E402

MASS = 1 / (2 * KAPPA) - 4
PLAIN = dict(kappa=KAPPA, csw_r=CSW, csw_t=CSW, xi_0=1.0, nu=1.0, isAnisotropic=False, boundary_phases=[1, 1, 1, -1])
GRID = g.grid(DIMS, g.double)


def made(kind, array, where=GRID):
    out = g.lattice(where, kind)
    out[:] = np.ascontiguousarray(array).reshape((-1,) + kind.shape)
    return out


def links(u, where=GRID):
    return [made(g.ot_matrix_su_n, u[mu], where) for mu in range(4)]


def field(b, where=GRID):
    return made(g.ot_vector_spin_color, b, where)


def array(lattice):
    return lattice[:].reshape(SHAPE)


def raises(kind, call, *words):
    try:
        call()
    except kind as e:
        assert all(word in str(e) for word in words), e
        return
    raise AssertionError('nothing was raised: %s' % (words,))


def off(apply, x, b):
    return np.linalg.norm(b - apply(array(x))) / np.linalg.norm(b)


@tap.test
def propagators_and_inverses_are_those_of_the_operator(case):
    """The setup of the daemon is found by its links and parameters."""
    b = random_sources(2)
    with case.daemon('--slots=12') as d:
        d.wait_listening()
        with quarkd.gpt.connect(GRID, d.endpoint) as q:
            w = g.qcd.fermion.wilson_clover(links(case.links), **PLAIN)
            inverse = quarkd.gpt.solver(q, setup='default', tol=1e-11)(w)
            x = inverse([field(b[0]), field(b[1])])
            assert len(x) == 2 and all(off(case.op.apply, *pair) < 1.01e-11 for pair in zip(x, b))
            assert off(case.op.apply_dagger, inverse.adj()(field(b[0])), b[0]) < 1.01e-11
            assert off(case.op.apply, quarkd.gpt.solver(q, setup='default', tol=1e-11)(w.adj()).adj()(field(b[0])), b[0]) < 1.01e-11
            assert np.allclose(array(inverse.inv()(x[0])), b[0]) and np.allclose(array(inverse.adj().inv()(field(b[1]))), case.op.apply_dagger(b[1]))
            assert not array(inverse(g.vspincolor(GRID))).any()
            source = g.mspincolor(GRID)
            source._data[0] = np.einsum('ij,ab->ijab', np.eye(4), np.eye(3))
            p = w.propagator(quarkd.gpt.solver(q, setup='default', tol=1e-11))(source)
            want = q.propagator('point:0,0,0,0', tol=1e-11, progress=False).numpy()
            assert np.abs(p[:].reshape(want.shape) - want).max() < 1e-10 and len(q.setups()) == 1
            raises(quarkd.ConvergenceError, lambda: quarkd.gpt.solver(q, setup='default').modified(max_iter=2)(w)(field(b[0])))


@tap.test
def setups_are_made_of_operators(case):
    """Isotropic and anisotropic, phases, single precision; they follow updates of the links."""
    b = random_sources(1)[0]
    turned = case.links.copy()
    turned[:, 3] = np.exp(2j * np.pi / 3) * turned[:, 3]
    with case.daemon('--user-setups=8', '--max-setups=10') as d:
        d.wait_listening()
        with quarkd.gpt.connect(GRID, d.endpoint) as q:
            known = {'main'}
            for terms in (dict(PLAIN, kappa=None, mass=0.2, csw_r=0.0, csw_t=0.0), dict(PLAIN, csw_t=1.1),
                          dict(PLAIN, isAnisotropic=True, xi_0=2.0, nu=1.3, csw_t=0.9, boundary_phases=[1, 1j, 1, -1])):
                w = g.qcd.fermion.wilson_clover(links(case.links), **terms)
                inverse = quarkd.gpt.solver(q, tol=1e-11)(w)
                assert off(w._op.apply, inverse(field(b)), b) < 1.01e-11, terms
                name, = {s.name for s in q.setups()} - known
                quarkd.gpt.solver(q, setup=name)(w)
                w.update(links(turned))
                assert off(w._op.apply, inverse(field(b)), b) < 1.01e-11, terms
                raises(ValueError, lambda: quarkd.gpt.solver(q, setup=name)(w), 'digest')
                known = {s.name for s in q.setups()}
            half = g.grid(DIMS, g.single)
            w = g.qcd.fermion.wilson_clover(links(case.links, half), **PLAIN)
            x = quarkd.gpt.solver(q, tol=1e-5)(w)(field(b, half))
            assert x[:].dtype == np.complex64 and off(case.op.apply, x, b) < 1e-4


@tap.test
def what_is_not_that_operator_is_refused(case):
    u = links(case.links)
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.gpt.connect(GRID, d.endpoint) as q:
            def of(setup='default', **terms):
                return lambda: quarkd.gpt.solver(q, setup=setup)(g.qcd.fermion.wilson_clover(u, **dict(PLAIN, **terms)))
            of()()
            raises(ValueError, of(kappa=0.1199), 'setup main has mass')
            raises(ValueError, of(csw_r=1.0), 'csw_r', '1.3')
            raises(ValueError, of(csw_t=1.0), 'csw_t')
            raises(ValueError, of(isAnisotropic=True, xi_0=2.0), 'xi_0')
            raises(ValueError, of(boundary_phases=[1, 1, 1, 1]), 'boundary phases')
            raises(quarkd.RequestError, of('nobody'), 'nobody')
            raises(ValueError, of(None, boundary_phases=[1, 1, 1, 0]), 'open boundary')
            raises(ValueError, of(None, boundary_phases=[1, 1, 1, 0.5]), 'modulus 1')
            raises(ValueError, of(None, boundary_phases=None), 'four numbers')
            raises(ValueError, of(None, n_rhs=4), 'n_rhs 4')
            raises(ValueError, of(None, kappa=None), 'mass None')
            raises(ValueError, of(None, csw_r=float('nan')), 'csw_r nan')
            raises(TypeError, lambda: quarkd.gpt.solver(q)(g.qcd.fermion.wilson_twisted_mass(u, mass=0.1, mu=0.2)), 'wilson_twisted_mass')
            raises(TypeError, lambda: quarkd.gpt.solver(q)(object()), 'without a name')
            raises(ValueError, lambda: quarkd.gpt.Fields(q, g.grid(DIMS, g.double, mpi=(1, 1, 1, 2))), '2 ranks')
            raises(ValueError, lambda: quarkd.gpt.Fields(q, g.grid(DIMS, g.double, cb=g.redblack)), 'redblack')
            inverse = of()()
            raises(ValueError, lambda: inverse(field(np.zeros((4,) * 4 + (4, 3)), g.grid([4] * 4, g.double))), 'shape')
            assert len(q.setups()) == 1


tap.run(Case(*sys.argv[1:]))
