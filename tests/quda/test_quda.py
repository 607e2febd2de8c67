#!/usr/bin/env python3
"""libquda.so as a client: callers in the orders of known programs, judged by the numpy oracle and by libquark:
test_quda.py QUARKD QUARK_ENGINE QUARK_GAUGE LIBQUARK_A QUDA_PARTS_A"""
import copy
import itertools
import re
import subprocess
import sys

import tap

try:
    import numpy as np
    import ref_dirac as ref
    from engine_case import BASES
    from front_driver import Client, qk
    from old_daemon import without
    from quda_case import CSW, DIMS, EVEN, G5, GAUGE, KAPPA, MASS, SHAPE, QudaCase, close
    from setups_case import drop, load, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

K2 = 2 * KAPPA
MATPC = {'ee': (EVEN, False), 'oo': (~EVEN, False), 'eea': (EVEN, True), 'ooa': (~EVEN, True)}
# what the operator on one parity is divided by
UNIT = {'kappa': 1, 'asymmetric': K2, 'mass': K2 * K2}


def adjoint(f):
    return lambda x: G5 * f(G5 * x)


def parts(op, dagger=False):
    """M, H, A, A^-1, or those of the adjoint, M(mu)^+ = g5 M(-mu) g5."""
    if dagger:
        op = copy.copy(op)
        op.twist = -op.twist
    return [adjoint(f) if dagger else f for f in (op.apply, op.hops, op.local, op.local_inverse)]


def on_parity(op, matpc, dagger=False):
    """QUDA's operator on one parity in the normalisation KAPPA."""
    sites, asymmetric = MATPC[matpc]
    _, hop, diag, inverse = parts(op, dagger)

    def forwards(x):
        back = hop(inverse(hop(x)))
        return sites * (K2 * (diag(x) - back / 4) if asymmetric else x - inverse(back) / 4)

    def backwards(x):
        if asymmetric:
            return sites * K2 * (diag(x) - hop(inverse(hop(x))) / 4)
        return sites * (x - hop(inverse(hop(inverse(x)))) / 4)
    return backwards if dagger else forwards


def point_sources():
    b = np.zeros((12,) + SHAPE, complex)
    for n in range(12):
        b[n, 0, 0, 0, 0, n // 3, n % 3] = 1
    return b


def misses(f, x, b):
    return np.linalg.norm(b - f(x)) / np.linalg.norm(b)


@tap.test
def twelve_columns_in_the_order_of_pyquda_are_those_of_libquark(case):
    b = point_sources()
    with case.daemon('--csw', repr(CSW)) as d:
        with Client(d) as c:
            expected = np.stack([x.reshape(SHAPE) for _, x in c.solve(list(b), tol=1e-13)])
        for variant in (1, 3, 2):
            x, said = case.run(d, 'pyquda', b, variant, multigrid=1)
            close(x, expected)
            assert 'setup main' in said, said  # nothing was loaded
            residual, seconds = re.findall(r'residual (\S+) .* secs (\S+)', said)[0]
            assert 0 < float(residual) < 1e-13 and float(seconds) > 0, said
        b[5:9] = case.noise(18, 4)  # among sources that are zero but for a point, in memory that is used again
        x, _ = case.run(d, 'pyquda', b)
        for n in range(len(b)):
            assert misses(case.op.apply, x[n], b[n]) < 2e-13
        with case.daemon('--csw', repr(CSW), '--local', 'no') as socket:
            assert np.array_equal(case.run(socket, 'pyquda', b)[0], x)
        one, _ = case.run(d, 'pyquda', b[3:5], call='one')
        assert np.array_equal(one, x[3:5])  # the same bits, whatever is solved beside it
        assert d.terminate() == 0


@tap.test
def parts_of_the_operator_are_those_of_the_oracle(case):
    b = case.noise(4)
    with case.daemon('--csw', repr(CSW)) as d:
        for dagger in (0, 1):
            m, hop, _, inverse = parts(case.op, dagger)
            x, _ = case.run(d, 'pyquda', b, call='mat', norm='kappa', dagger=dagger)
            close(x[0], K2 * m(b[0]))
            for parity, sites in (('even', EVEN), ('odd', ~EVEN)):
                x, _ = case.run(d, 'pyquda', b, call='dslash', parity=parity, dagger=dagger)
                close(x[0], sites * inverse(hop(~sites * b[0])) / K2)
        x, _ = case.run(d, 'pyquda', b, call='mat', norm='mass')
        close(x[0], case.op.apply(b[0]))
        x, _ = case.run(d, 'pyquda', b, call='matdag', norm='kappa', dagger=0)
        close(x[0], K2 * K2 * case.op.apply_dagger(case.op.apply(b[0])))
        x, _ = case.run(d, 'pyquda', b, call='clover', parity='odd')
        close(x[0], ~EVEN * K2 * case.op.local(b[0]))
        x, _ = case.run(d, 'pyquda', b, call='inverse', parity='even')
        close(x[0], EVEN * case.op.local_inverse(b[0]) / K2)
        for matpc, norm, dagger in (('ee', 'kappa', 0), ('ooa', 'asymmetric', 1), ('oo', 'mass', 1), ('eea', 'mass', 0)):
            f, sites = on_parity(case.op, matpc, dagger), MATPC[matpc][0]
            x, _ = case.run(d, 'pyquda', b, call='mat', solution='matpc', matpc=matpc, norm=norm, dagger=dagger)
            close(x[0], f(sites * b[0]) / UNIT[norm])
        assert d.terminate() == 0


@tap.test
def wilson_without_a_clover_term(case):
    b, op = case.noise(5), ref.WilsonClover(case.links, MASS)
    with case.daemon('--csw', '0') as d:
        x, said = case.run(d, 'pyquda', b, dslash='wilson')
        assert misses(op.apply, x[0], b[0]) < 1e-12 and 'setup main' in said
        x, _ = case.run(d, 'pyquda', b, dslash='wilson', call='dslash', parity='odd')
        close(x[0], ~EVEN * op.hops(EVEN * b[0]))
        assert d.terminate() == 0


@tap.test
def solves_in_all_normalisations_and_forms(case):
    b = case.noise(6)
    with case.daemon('--csw', repr(CSW)) as d:
        for norm, unit in (('kappa', K2), ('mass', 1), ('asymmetric', 1)):
            x, _ = case.run(d, 'pyquda', b, norm=norm)
            assert misses(lambda v: unit * case.op.apply(v), x[0], b[0]) < 2e-13
        for k, (norm, matpc) in enumerate(itertools.product(UNIT, MATPC)):
            f, sites = on_parity(case.op, matpc, k % 2), MATPC[matpc][0]
            x, _ = case.run(d, 'pyquda', b, call='one', solution='matpc', norm=norm, matpc=matpc, dagger=k % 2)
            assert misses(lambda v: f(v) / UNIT[norm], x[0], sites * b[0]) < 2e-13, (norm, matpc)
            assert not (~sites * x[0]).any()
        x, _ = case.run(d, 'pyquda', b, dagger=1, norm='kappa')
        assert misses(lambda v: K2 * case.op.apply_dagger(v), x[0], b[0]) < 2e-13
        x, said = case.run(d, 'pyquda', b, call='one', solution='matdagmat', norm='kappa', tol=1e-12)
        assert misses(lambda v: K2 * K2 * case.op.apply_dagger(case.op.apply(v)), x[0], b[0]) < 1e-12, said
        x, said = case.run(d, 'pyquda', b, call='one', solution='matpcdagmatpc', norm='mass', matpc='oo', tol=1e-12)
        f, g = (on_parity(case.op, 'oo', dagger) for dagger in (0, 1))
        assert misses(lambda v: g(f(v)) / K2 ** 4, x[0], ~EVEN * b[0]) < 1e-12, said
        assert d.terminate() == 0


@tap.test
def bases_and_single_precision(case):
    b = case.noise(7)
    with case.daemon('--csw', repr(CSW)) as d:
        for name, basis in (('ukqcd', qk.BASIS_UKQCD), ('openqcd', qk.BASIS_OPENQCD), ('dirac-pauli', qk.BASIS_DIRAC_PAULI)):
            turn = BASES[basis]
            x, _ = case.run(d, 'pyquda', b, basis=name)
            seen, source = (np.einsum('ij,...jc->...ic', turn, f[0]) for f in (x, b))
            assert misses(case.op.apply, seen, source) < 2e-13, name
        x, said = case.run(d, 'pyquda', b, single=1, tol=1e-9)
        op = ref.WilsonClover(case.links.astype(np.complex64).astype(complex), MASS, CSW)
        assert misses(op.apply, x[0], b[0]) < 1e-6 and 'setup quda-pyquda-' in said, said
        x, said = case.run(d, 'pyquda', b, norm='mass', env={'QUARK_QUDA_WIRE': 'f32', 'QUARK_QUDA_THREADS': '3'})
        assert misses(case.op.apply, x[0], b[0]) < 1e-6 and np.array_equal(x, x.astype(np.complex64)) and 'setup main' in said, said
        x, said = case.run(d, 'pyquda', b, call='mat', norm='mass', env={'QUARK_QUDA_WIRE': 'f32'})
        close(x[0], case.op.apply(b[0]))  # what is no solve goes as it is
        assert d.terminate() == 0


@tap.test
def stopping_by_other_residuals_and_not_at_all(case):
    b = 1e3 * case.noise(8)
    with case.daemon('--csw', repr(CSW)) as d:
        for norm, unit in (('kappa', K2), ('mass', 1)):
            x, said = case.run(d, 'pyquda', b, norm=norm, tol=0, hq=1e-8)
            r = b[0] - unit * case.op.apply(x[0])
            hq = np.sqrt(np.mean(np.sum(abs(r) ** 2, (-2, -1)) / np.sum(abs(x[0]) ** 2, (-2, -1))))
            told = float(re.search(r'residual \S+ (\S+)', said)[1])
            assert hq < 1e-8 and abs(hq / told - 1) < 1e-3, (hq, told)
        x, _ = case.run(d, 'pyquda', b, tol=1e-6, absolute=1)
        assert np.linalg.norm(b[0] - case.op.apply(x[0])) < 1e-6
        x, said = case.run(d, 'pyquda', b, tol=1e-13, maxiter=2)  # returns, with what it has reached
        told = float(re.search(r'residual (\S+)', said)[1])
        assert abs(misses(case.op.apply, x[0], b[0]) / told - 1) < 1e-3 and told > 1e-6 and 'NOT_CONVERGED' in said
        assert d.terminate() == 0


@tap.test
def links_of_another_scale_sign_or_phase(case):
    b = case.noise(9)
    xi, clover_xi = 2.5, 1.7
    with case.daemon('--csw', repr(CSW)) as d:
        # PyQUDA, anisotropic: hops in space over xi, leaves over powers of another one
        mass = 0.3
        kappa = 1 / (2 * (mass + 1 + 3 / xi))
        x, said = case.run(d, 'pyquda', b, kappa=kappa, xi=xi, clover_xi=clover_xi, norm='mass')
        s = 1 / clover_xi
        op = ref.WilsonClover(case.links, mass, CSW, hop=(1 / xi,) * 3 + (1,), planes=(s ** 4,) * 3 + (s ** 2,) * 3)
        assert misses(op.apply, x[0], b[0]) < 1e-12 and 'quda-pyquda-' in said, said
        x, said = case.run(d, 'pyquda', b, kappa=kappa, xi=xi, clover_xi=clover_xi, norm='kappa')
        assert misses(lambda v: 2 * kappa * op.apply(v), x[0], b[0]) < 1e-12
        assert ': sent' not in said and 'loading setup' not in said, said  # the setup is found again
        assert d.terminate() == 0


@tap.test
def fields_in_the_memory_of_a_gpu(case):
    b, env = case.noise(19, 3), case.device()
    with case.daemon('--csw', repr(CSW)) as d:
        host, _ = case.run(d, 'pyquda', b)
        x, said = case.run(d, 'pyquda', b, device=1, env=env)
        assert np.array_equal(x, host) and 'setup main' in said, said
        x, _ = case.run(d, 'pyquda', b, single=1, tol=1e-6, device=1, env=env)
        assert misses(case.op.apply, x[1], b[1]) < 1e-5
        x, _ = case.run(d, 'pyquda', b[:1], call='one', solution='matdagmat', norm='mass', tol=1e-12, device=1, env=env)
        assert misses(lambda v: case.op.apply_dagger(case.op.apply(v)), x[0], b[0]) < 1e-12
        x, _ = case.run(d, 'pyquda', b[:1], call='matdag', norm='mass', device=1, env=env)
        close(x[0], case.op.apply_dagger(case.op.apply(b[0])))
        assert 'is said to be in the memory of a GPU, but is not' in case.run(d, 'pyquda', b, device=2, env=env, code=1)
        assert d.terminate() == 0


@tap.test
def a_private_setup_is_loaded_found_and_replaced(case):
    b = case.noise(10)
    other = ref.reunitarise(case.links + 0.1 * ref.shift(case.links, 0))
    case.wire(other).tofile(case.path('other'))
    with case.daemon('--csw', repr(CSW)) as d:
        for links, u, new in (('links', case.links, True), ('other', other, True), ('links', case.links, False)):
            x, said = case.run(d, 'pyquda', b, links=links, kappa=0.11, multigrid=1, loads=2)
            op = ref.WilsonClover(u, 1 / 0.22 - 4, CSW)
            assert misses(op.apply, x[0], b[0]) < 2e-13
            assert said.count('loading setup quda-pyquda-') == new and 'setup quda-pyquda-' in said, said
        before = len(setups(d))  # of one program, the next configuration takes the place of the last
        x, said = case.run(d, 'pyquda', b, links='links', links2=case.path('other'), kappa=0.115, loads=2)
        assert misses(ref.WilsonClover(other, 1 / 0.23 - 4, CSW).apply, x[0], b[0]) < 2e-13 and said.count('loading setup') == 2, said
        assert len(setups(d)) <= before
        assert d.terminate() == 0


@tap.test
def a_public_setup_that_is_replaced_is_noticed(case):
    b = case.noise(16)
    with case.daemon('--csw', repr(CSW)) as d, Client(d) as c:
        load(c, 'extra', GAUGE, mass=1 / 0.22 - 4, csw=CSW)
        wait_for(d, 'extra', qk.STATE_READY)
        command, environment = case.command(d, 'pyquda', b, kappa=0.11, loads=2, pause=case.path('go'))
        caller = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert 'residual' in caller.stdout.readline()
        drop(c, 'extra')
        wait_for(d, 'extra', None)
        load(c, 'extra', GAUGE, mass=0.3, csw=CSW)
        wait_for(d, 'extra', qk.STATE_READY)
        open(case.path('go'), 'w', encoding='utf-8').close()
        said = ''.join(caller.communicate(timeout=60))
        assert caller.returncode == 0 and 'setup extra is another now: its mass is 0.299' in said, said
        op = ref.WilsonClover(case.links, 1 / 0.22 - 4, CSW)
        assert misses(op.apply, case.solutions(b)[0], b[0]) < 2e-13
        assert d.terminate() == 0


@tap.test
def milc_with_signs_on_any_slice(case):
    b = case.noise(11, 2)
    term = case.clover(case.op, K2)
    with case.daemon('--csw', repr(CSW)) as d:
        for sign, slices in (((0, 0, 0, 1), (3, 3, 3, 7)), ((0, 0, 0, 1), (3, 3, 3, 2)), ((1, 0, 1, 1), (0, 3, 2, 5))):
            u = case.links.copy()
            for mu in range(4):
                edge = [slice(None)] * 4
                edge[ref.AXIS[mu]] = slices[mu]
                u[(mu, *edge)] *= -1 if sign[mu] else 1
            op = ref.WilsonClover(u, MASS, CSW, ref.PERIODIC, clover_links=case.links)
            x, said = case.run(d, 'milc', b, clover=term, sign='%d,%d,%d,%d' % sign, slice='%d,%d,%d,%d' % slices)
            for n in range(2):
                assert misses(lambda v: K2 * op.apply(v), G5 * x[n], G5 * b[n]) < 2e-13
            assert ('loading setup' in said) == (sign[0] == 1), said  # t alone is the boundary of the daemon's
        x, said = case.run(d, 'milc', b[:1], clover=term, tol=0, hq=1e-7)
        r = G5 * b[0] - K2 * case.op.apply(G5 * x[0])
        hq = np.sqrt(np.mean(np.sum(abs(r) ** 2, (-2, -1)) / np.sum(abs(x[0]) ** 2, (-2, -1))))
        told = float(re.search(r'residual \S+ (\S+)', said)[1])
        assert hq < 1e-7 and abs(hq / told - 1) < 1e-3, (hq, told)
        x, said = case.run(d, 'milc', b[:1], clover=term, single=1, tol=1e-6)
        op = ref.WilsonClover(case.links.astype(np.complex64).astype(complex), MASS, CSW)
        assert misses(lambda v: K2 * op.apply(v), G5 * x[0], G5 * b[0]) < 3e-6, said
        assert 'both 0' in case.run(d, 'milc', b[:1], clover=term, tol=0, code=1)
        assert d.terminate() == 0


@tap.test
def chroma_with_a_clover_term_of_its_own(case):
    b = case.noise(12)
    with case.daemon('--csw', repr(CSW)) as d:
        term = case.clover(case.op)
        for asymmetric in (0, 1):
            x, said = case.run(d, 'chroma', b, clover=term, asymmetric=asymmetric)
            f = on_parity(case.op, 'ooa' if asymmetric else 'oo')
            scale = 1 / K2 if asymmetric else 1  # its kappa is 1/2
            assert misses(lambda v: scale * f(v), x[0], ~EVEN * b[0]) < 2e-13
            assert 'setup main' in said, said
        h = (0.4, 0.4, 0.4, 1.0)
        op = ref.WilsonClover(case.links, 0.2, 1, hop=h, planes=(0.5,) * 3 + (0.8,) * 3)
        x, said = case.run(d, 'chroma', b, clover=case.clover(op), coeff='%r,%r,%r,%r' % h, xi=2.5)
        _, hop, _, inverse = parts(op)
        assert misses(lambda v: ~EVEN * (v - inverse(hop(inverse(hop(v)))) / 4), x[0], ~EVEN * b[0]) < 2e-12, said
        # a site that does not fit: among those that are fitted, or found by noise on all; the term is sent
        for site, text in ((0, 'is not a + c C'), (1, 'not on site 1')):
            bad = np.fromfile(case.clover(case.op))
            bad[72 * site + 3] *= 1 + 1e-12
            bad.tofile(case.path('bad'))
            x, said = case.run(d, 'chroma', b, clover=case.path('bad'))
            assert text in said and 'foreign-clover' in said, said
            assert misses(on_parity(case.op, 'oo'), x[0], ~EVEN * b[0]) < 1e-11
        assert d.terminate() == 0


@tap.test
def clover_terms_that_are_none_of_the_links(case):
    b = case.noise(14)
    rng = np.random.default_rng(15)
    op = ref.WilsonClover(case.links, MASS, CSW)
    n = op.clover.shape
    op.clover = op.clover + 0.2 * (lambda a: a + np.conj(np.swapaxes(a, -1, -2)))(rng.normal(size=n) + 1j * rng.normal(size=n))
    with case.daemon('--csw', repr(CSW)) as d:
        x, said = case.run(d, 'milc', b, clover=case.clover(op, K2))
        assert misses(lambda v: K2 * op.apply(v), G5 * x[0], G5 * b[0]) < 2e-13 and 'a clover term' in said, said
        x, again = case.run(d, 'milc', b, clover=case.clover(op, K2))
        assert 'loading setup' not in again and 'setup quda-milc-' in again, again
        x, said = case.run(d, 'chroma', b, clover=case.clover(case.op), env={'QUARK_QUDA_CLOVER': 'upload'})
        assert misses(on_parity(case.op, 'oo'), x[0], ~EVEN * b[0]) < 2e-13 and 'foreign-clover' in said
        assert d.terminate() == 0


@tap.test
def tmlqcd_with_a_phase_in_every_link(case):
    b = case.noise(13)
    turn = BASES[qk.BASIS_OPENQCD]

    def check(x, op):
        seen, source = (np.einsum('ij,...jc->...ic', turn, f[0]) for f in (x, b))
        assert misses(lambda v: K2 * op.apply(v), seen, source) < 2e-12
    with case.daemon('--csw', repr(CSW)) as d:
        x, said = case.run(d, 'tmlqcd', b, naive=1)
        check(x, case.op)
        assert 'setup main' in said
        for theta in ((0, 0, 0, 1), (0.3, 0, -0.7, 1), (2, 2, 2, 0)):
            u = case.links.copy()
            for mu in range(4):
                u[mu] *= np.exp(1j * np.pi * theta[mu] / DIMS[mu])
            x, said = case.run(d, 'tmlqcd', b, theta='%r,%r,%r,%r' % theta)
            check(x, ref.WilsonClover(u, MASS, CSW, ref.PERIODIC))
        assert d.terminate() == 0


@tap.test
def squares_to_an_absolute_residual(case):
    b = 1e3 * case.noise(17)
    size = np.linalg.norm(~EVEN * b[0])
    f, g = (on_parity(case.op, 'ooa', dagger) for dagger in (0, 1))
    with case.daemon('--csw', repr(CSW)) as d:
        # as tmLQCD's HMC calls; of two residuals the smaller one
        for more, target in ((dict(tol=1e-5), 1e-5), (dict(tol=1e-9, both=1), 1e-9), (dict(tol=0.1 * size), 0.1 * size)):
            x, said = case.run(d, 'pyquda', b, call='one', solution='matpcdagmatpc', matpc='ooa', dagger=1, norm='kappa', absolute=1, **more)
            left = misses(lambda v: f(g(v)), x[0], ~EVEN * b[0])
            told, iterations = re.search(r'residual (\S+) .* iterations (\d+)', said).groups()
            assert left * size < target and abs(left / float(told) - 1) < 1e-2 and int(iterations) > 0, (left * size, said)
        assert left > 1e-6  # no more than was asked for
        x, said = case.run(d, 'pyquda', b, call='one', solution='matdagmat', absolute=1, tol=1e9)
        assert not x.any() and 'iterations 0 ' in said, said
        assert 'HEAVY_QUARK' in case.run(d, 'pyquda', b, call='one', solution='matdagmat', hq=1e-8, code=1)
        assert d.terminate() == 0


def twisted(case, mu, csw=CSW):
    return ref.WilsonClover(case.links, MASS, csw, twist=mu)


@tap.test
def twisted_clover_of_both_signs_in_all_forms(case):
    b, mu = case.noise(18), 0.4
    ops = {s: twisted(case, s * mu) for s in (1, -1)}
    with case.daemon('--csw', repr(CSW), '--action', 'twisted-clover', '--set', 'mu=%r' % mu) as d:
        def run(sign, **arguments):
            x, said = case.run(d, 'pyquda', b, dslash='twisted-clover', mu=sign * mu, **arguments)
            assert 'setup main' in said, said
            return x[0]
        for k, (norm, matpc) in enumerate(zip(('kappa', 'asymmetric', 'mass', 'kappa'), MATPC)):
            for sign, dagger in ((1, k % 2), (-1, 1 - k % 2)):
                f, sites = on_parity(ops[sign], matpc, dagger), MATPC[matpc][0]
                x = run(sign, call='one', solution='matpc', norm=norm, matpc=matpc, dagger=dagger)
                assert misses(lambda v: f(v) / UNIT[norm], x, sites * b[0]) < 2e-13, (norm, matpc, sign)
        close(run(1, call='mat', norm='kappa'), K2 * ops[1].apply(b[0]))
        close(run(-1, call='mat', norm='mass', dagger=1), ops[-1].apply_dagger(b[0]))
        close(run(-1, call='matdag', norm='mass'), ops[-1].apply_dagger(ops[-1].apply(b[0])))
        close(run(1, call='dslash', parity='odd'), ~EVEN * ops[1].local_inverse(ops[1].hops(EVEN * b[0])) / K2)
        close(run(-1, call='mat', solution='matpc', matpc='ooa', norm='kappa', dagger=1), on_parity(ops[-1], 'ooa', True)(~EVEN * b[0]))
        x = run(-1, call='one', solution='matdagmat', norm='kappa', tol=1e-12)
        assert misses(lambda v: K2 * K2 * ops[-1].apply_dagger(ops[-1].apply(v)), x, b[0]) < 1e-12
        x = run(1, call='one', solution='matpcdagmatpc', norm='kappa', matpc='ooa', dagger=1, tol=1e-12)
        f, g = (on_parity(ops[1], 'ooa', dagger) for dagger in (0, 1))
        assert misses(lambda v: f(g(v)), x, ~EVEN * b[0]) < 1e-12
        assert d.terminate() == 0


@tap.test
def tmlqcd_with_a_twist(case):
    b, mu = case.noise(19), 0.4
    turn = BASES[qk.BASIS_OPENQCD]
    inwards, outwards = (lambda f, t=t: np.einsum('ij,...jc->...ic', t, f) for t in (turn, turn.conj().T))
    with case.daemon('--csw', repr(CSW), '--action', 'twisted-clover', '--set', 'mu=%r' % mu) as d:
        for sign in (1, -1):  # +2 kappa mu of tmLQCD is flavour -1
            x, said = case.run(d, 'tmlqcd', b, naive=1, mu=sign * K2 * mu, setup_mu=0.1)
            assert 'setup main' in said and 'loading' not in said, said
            with Client(d) as c:
                (_, expected), = c.solve([inwards(b[0])], flavour=-sign, tol=1e-13)
            close(x[0], outwards(expected.reshape(SHAPE)) / K2)
            assert misses(lambda v: K2 * twisted(case, -sign * mu).apply(v), inwards(x[0]), inwards(b[0])) < 2e-12
        # without a clover term: one setup of its own for both signs
        for sign in (-1, 1):
            x, said = case.run(d, 'tmlqcd', b, naive=1, mu=sign * K2 * 0.3, setup_mu=0, csw=0)
            assert misses(lambda v: K2 * twisted(case, -sign * 0.3, 0).apply(v), inwards(x[0]), inwards(b[0])) < 2e-12
            assert said.count('loading setup') == (sign < 0), said
        x, _ = case.run(d, 'pyquda', b, dslash='twisted', mu=0.3, call='dslash')
        op = twisted(case, 0.3, 0)
        close(x[0], EVEN * op.local_inverse(op.hops(~EVEN * b[0])) / K2)
        x, said = case.run(d, 'pyquda', b, dslash='twisted', mu=0, norm='mass')
        assert misses(twisted(case, 0, 0).apply, x[0], b[0]) < 2e-13 and said.count(': wilson\n') == 1, said
        assert 'dslash_type = ' in case.run(d, 'pyquda', b, 1, dslash='twisted', mu=mu, code=1)  # a header without singlets
        assert 'tm_rho = 0.1' in case.run(d, 'pyquda', b, dslash='twisted', mu=mu, tm_rho=0.1, code=1)
        with without(d, *range(9, 32)) as endpoint:
            said = case.run(d, 'pyquda', b, dslash='twisted-clover', mu=-mu, code=1, env={'QUARKD_ENDPOINT': endpoint})
            assert 'UNSUPPORTED' in said and 'too old for flavour' in said, said
        said = case.run(d, 'chroma', b, clover=case.clover(case.op), mu=mu, code=1)
        assert 'with a clover term that loadCloverQuda computes' in said, said
        assert d.terminate() == 0


if __name__ == '__main__':
    case = QudaCase(*sys.argv[1:])
    try:
        case.caller().program('pyquda')
        tap.run(case, beside=2)
    finally:
        case.close()
