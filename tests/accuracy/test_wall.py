"""Domain wall fermions of the engine by identities that decide all conventions: test_wall.py ENGINE QUARK-GAUGE [RANKS]

The propagator at finite Ls is that of an overlap operator, exactly (tests/ref/wall_ref.py), and propagators of two masses are related:
G(m1) - G(m2) = (m2 - m1) G(m1) G(m2).
"""
import os
import subprocess
import sys
import tempfile

import tap
try:
    import numpy as np
    import ref_dirac as ref
    import wall_ref as wall
    from engine_driver import Engine, qk
except ImportError as missing:
    tap.skip_all('numpy, scipy, python3-zmq and python3-protobuf are needed: %s' % missing)

OMEGA = np.array([1.3 + 0.2j, 0.8 - 0.1j, 0.8 - 0.1j, 1.3 + 0.2j])
# b, c and the weights of the rational function, for Ls = 4
KERNELS = {'Shamir': (1.0, 0.0, np.ones(4)), 'Moebius': (1.6, 0.6, np.ones(4)), 'zMoebius': (1.3, 0.3, OMEGA)}
MASS, M5 = 0.2, 1.4


def given(mass, b, c, omega, **more):
    """Parameters of LOAD, and those of ref_dirac.DomainWall."""
    bs, cs = wall.scaled(omega, b, c)
    numbers = {'mass': mass, 'M5': M5, 'Ls': len(omega), **more}
    for key, value in (('b', bs.real), ('c', cs.real), ('b-im', bs.imag), ('c-im', cs.imag)):
        numbers[key] = value if np.ptp(value) else value[0]
    text = {k: ','.join(map(repr, map(float, v))) if np.ndim(v) else repr(v if k == 'Ls' else float(v)) for k, v in numbers.items()}
    return [qk.Setting(key=k, value=v) for k, v in text.items()], {k.replace('-', '_'): v for k, v in numbers.items()}


class Lattice:
    """A weak field that the engine makes, and the same links in numpy."""

    def __init__(self, engine, quark_gauge, dims, ranks):
        self.gauge, self.engine, self.ranks = 'builtin:weak:%s:7' % dims, engine, ranks
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'weak.lime')
            subprocess.run([quark_gauge, 'convert', self.gauge, path], check=True, stdout=subprocess.DEVNULL)
            self.links, _ = ref.load_any(path)

    def load(self, parameter, **more):
        e = Engine(self.engine, self.ranks)
        try:
            e.load(self.gauge, action='moebius', solver='cg', inner='PRECISION_DOUBLE', parameter=parameter, **more)
            e.ready()
        except BaseException:
            e.__exit__()
            raise
        return e

    def solve(self, parameter, sources, tol):
        """Solutions and what the engine says of them."""
        with self.load(parameter) as e:
            ends = [e.solve(b, tol=tol) for b in sources]
        for _, end in ends:
            assert end.status == 0, end
        return [x for x, _ in ends], [end for _, end in ends]


def random(shape, seed):
    return np.random.default_rng(seed).normal(size=shape + (2,)) @ np.array([1, 1j])


def off(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@tap.test
def the_quark_is_that_of_overlap_with_a_rational_sign_function(engine, quark_gauge, ranks):
    """To ten times the tolerance of the solver, which is |b - M x| / |b|."""
    if ranks > 1:
        raise tap.Skip('a lattice that is not cut')
    lattice = Lattice(engine, quark_gauge, '2x2x2x2', ranks)
    for name, (b, c, omega) in KERNELS.items():
        parameter, numbers = given(MASS, b, c, omega)
        op = ref.DomainWall(lattice.links, ref.ANTIPERIODIC, numbers.pop('mass'), **numbers)
        exact = wall.overlap_propagator(op, wall.dense_wilson(op), omega, b, c)
        sources = [random(op.shape, k) for k in range(2)]
        for x, eta in zip(lattice.solve(parameter, sources, 1e-14)[0], sources):
            worst = off(x.ravel(), exact @ eta.ravel())
            print('# %s: off by %.1e' % (name, worst))
            assert worst < 1e-13, (name, worst)


@tap.test
def propagators_of_two_masses_are_related(engine, quark_gauge, ranks):
    lattice, masses = Lattice(engine, quark_gauge, '4x2x4x4' if ranks == 1 else '4x4x8x8', ranks), (0.1, 0.4)
    for name in 'Moebius', 'zMoebius':
        parameters = [given(m, *KERNELS[name])[0] for m in masses]
        eta = random(lattice.links.shape[1:5] + (4, 3), 5)
        (heavy,), _ = lattice.solve(parameters[1], [eta], 1e-13)
        (light, both), _ = lattice.solve(parameters[0], [eta, heavy], 1e-13)
        worst = off((masses[1] - masses[0]) * both, light - heavy)
        print('# %s: off by %.1e' % (name, worst))
        assert worst < 1e-11, (name, worst)


def by_time(f):
    """Sums over sites of each time slice."""
    return np.sum(f, axis=tuple(range(1, f.ndim)))


def sums_of(op, eta):
    """As RESULT has them, with numpy."""
    psi = wall.solve(op, eta, 1e-12)
    return dict(quark=by_time(wall.size(op.leave(psi))), midpoint=by_time(wall.size(op.midpoint(psi))),
                axial=by_time(wall.axial_current(op, psi, eta, 3) if wall.has_axial(op) else np.full(op.shape[:4], np.nan)))


@tap.test
def quark_midpoint_and_axial_current_are_summed_over_time_slices(engine, quark_gauge, ranks):
    """Without the slices in the middle where Ls is odd, without the current where there is none."""
    lattice = Lattice(engine, quark_gauge, '2x2x2x4' if ranks == 1 else '2x2x2x8', ranks)
    cases = {'Shamir, anisotropic': dict(b=1.0, c=0.0, omega=np.ones(4), xi0=2.5, nu=1.2), 'Moebius': dict(b=1.5, c=0.5, omega=np.ones(6)),
             'Ls = 14': dict(b=0.7, c=0.2, omega=np.ones(14)), 'Ls = 3': dict(b=1.5, c=0.5, omega=np.ones(3)),
             'zMoebius': dict(b=1.3, c=0.3, omega=OMEGA)}
    for name, case in list(cases.items())[:None if ranks == 1 else 2]:
        parameter, numbers = given(0.5, **case)
        op = ref.DomainWall(lattice.links, ref.ANTIPERIODIC, numbers.pop('mass'), **numbers)
        eta = random(op.shape, 7)
        scales = (1, 2.0 ** 40) if name == 'Moebius' else (1,)
        x, ends = lattice.solve(parameter, [s * eta for s in scales], 1e-13)
        want = sums_of(op, eta)
        for scale, quark, end in zip(scales, x, ends):
            there = {k: np.array(getattr(end.wall, k)) / scale ** 2 for k in want}
            assert np.allclose(there['quark'], by_time(wall.size(quark)) / scale ** 2, rtol=1e-12, atol=0), (name, there)
            for key, sums in there.items():
                defined = op.ls % 2 == 0 and (name != 'zMoebius' or key != 'axial') or key == 'quark'
                assert len(sums) == (op.shape[0] if defined else 0), (name, key, sums)
                if defined:
                    worst = np.max(np.abs(sums - want[key])) / np.max(np.abs(want[key]))
                    print('# %s, %s: off by %.1e' % (name, key, worst))
                    assert worst < 1e-10, (name, key, sums, want[key])


@tap.test
def what_was_not_solved_has_no_sums(engine, quark_gauge, ranks):
    """Of a zero source, and of one that is no number, in the slot of one that was solved; and of other actions."""
    lattice = Lattice(engine, quark_gauge, '2x2x2x8', ranks)
    b = random(lattice.links.shape[1:5] + (4, 3), 3)
    bad = b.copy()
    bad[1, 0, 0, 0, 0, 0] = np.nan
    with lattice.load(slots=1, parameter=given(MASS, 1.0, 0.0, np.ones(4))[0]) as e:
        assert e.solve(b)[1].HasField('wall')
        for source in (np.zeros_like(b), bad):
            end = e.solve(source)[1]
            assert not end.HasField('wall'), end
        end = e.solve(b, max_iter=1)[1]  # not converged, and there is a solution
        assert end.status == 200 and len(end.wall.quark) == 8, end
    with Engine(engine, ranks) as e:
        e.load(lattice.gauge)
        e.ready()
        assert not e.solve(b)[1].HasField('wall')


tap.run(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
