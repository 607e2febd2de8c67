#!/usr/bin/env python3
"""When a solve has converged, judged by numpy, and solves that do not depend on their neighbours: test_stopping.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS"""
import sys

import tap

try:
    import numpy as np
    from daemon_case import MASS, DaemonCase
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

KAPPA2 = 1 / (4 + MASS)
MULTIGRID = '--solver', 'mg', '--mg-vectors', '8', '--mg-setup-iterations', '20'
SOLVERS = MULTIGRID, ('--solver', 'bicgstab'), ('--solver', 'cg')
SCALE = {qk.NORMALISATION_MASS: 1, qk.NORMALISATION_KAPPA: KAPPA2}


def heavy_quark(case, x, b, normalisation=qk.NORMALISATION_MASS):
    """sqrt(sum_n |r|^2 / |x|^2 / V), r = b - scale M x."""
    x, b = x.reshape(case.shape), b.reshape(case.shape)
    r = b - SCALE[normalisation] * case.op.apply(x)
    r2, x2 = ((abs(v) ** 2).reshape(-1, 12).sum(1) for v in (r, x))
    return np.sqrt(np.mean(np.where(x2 == 0, 1, r2 / np.where(x2 == 0, 1, x2))))


def point(case):
    b = np.zeros(case.shape, complex)
    b[1, 2, 3, 0, 1, 2] = 1
    return b.reshape(-1)


def solve(c, jobs):
    """jobs: [(b, what else SUBMIT says)], all under way together: [(x, result)]"""
    number, found = [], {}
    for b, more in jobs:
        accepted = c.submit(1, **dict(dict(tol=0), **more))
        number.append(accepted.request)
        c.upload(accepted, [b])
    for r in c.results(len(jobs)):
        found[r.request] = (c.fetch(r) if r.bytes else None, r)
    for k in number:
        c.ack(k)
    return [found[k] for k in number]


@tap.test
def heavy_quark_residuals_are_those_of_numpy_in_both_normalisations_beside_others(case):
    for options in SOLVERS:
        with case.daemon('--slots', '8', *options) as d, Client(d) as c:
            plain = [(case.noise(s), dict(tol=1e-9, single_rhs=False)) for s in (1, 2)]
            alone = solve(c, plain)
            asked = [(b, dict(tol=tol, tol_hq=hq, normalisation=n)) for n in SCALE
                     for b, tol, hq in ((point(case), 0, 1e-6), (case.noise(3), 1e-3, 1e-9))]
            found = solve(c, plain[:1] + asked + plain[1:])
            for (x, _), (y, r) in zip(alone, (found[0], found[-1])):
                assert np.array_equal(x, y) and not r.HasField('hq_residual'), 'neighbours have other bits: %s' % (options,)
            for (b, more), (x, r) in zip(asked, found[1:-1]):
                true = heavy_quark(case, x, b, more['normalisation'])
                assert r.status == 0 and true <= 1.001 * more['tol_hq'], (options, more, r, true)
                assert abs(true - r.hq_residual) < 1e-4 * true, (options, more, r, true)
                assert more['tol'] == 0 or r.true_residual <= more['tol'], r


@tap.test
def below_rounding_it_ends_soon_with_both_numbers(case):
    for options in SOLVERS:
        with case.daemon('--slots', '4', *options) as d, Client(d) as c:
            b = case.noise(4)
            (_, usual), (x, r), (_, s) = solve(c, [(b, dict(tol=1e-10)), (b, dict(tol_hq=1e-25)), (b, dict(tol_abs=1e-25))])
            assert usual.status == 0 and r.status == s.status == STATUS['NOT_CONVERGED'], (options, usual, r, s)
            assert 0 < r.hq_residual < 1e-12 and 0 < r.true_residual < 1e-13 and 0 < s.true_residual < 1e-13, (r, s)
            assert heavy_quark(case, x, b) < 1e-12 and max(r.iterations, s.iterations) < 8 * usual.iterations + 20, (options, usual, r, s)


@tap.test
def absolute_residuals_are_in_units_of_the_source(case):
    for options in SOLVERS:
        with case.daemon('--slots', '4', *options) as d, Client(d) as c:
            b = case.noise(5)
            b /= np.linalg.norm(b)
            jobs = [(size * b, dict(tol_abs=tol)) for size, tol in ((1e-8, 1e-13), (1e-8, 1e-3), (1e8, 1e3), (1e8, 1e-3))]
            found = solve(c, jobs)
            for (rhs, more), (x, r) in zip(jobs, found):
                true = case.residual(x, rhs) * np.linalg.norm(rhs)
                assert r.status == 0 and true <= 1.001 * more['tol_abs'], (options, more, r, true)
                assert abs(r.true_residual * r.norm_b - true) < 1e-3 * true + 1e-13 * r.norm_b, (more, r, true)
            assert found[1][1].iterations < found[0][1].iterations and found[2][1].iterations < found[3][1].iterations


@tap.test
def what_is_not_for_the_single_rhs_solver_has_the_same_bits_alone_and_beside_others(case):
    """By numbers of iterations that are far apart otherwise; the single-RHS solver itself has other bits."""
    with case.daemon('--slots', '8', '--precision', 'single', *MULTIGRID) as d, Client(d) as c:
        b = case.noise(6)
        batch, single = dict(tol=1e-4, single_rhs=False), dict(tol=1e-4)
        (x, _), = solve(c, [(b, batch)])
        (y, _), = solve(c, [(b, single)])
        beside = solve(c, [(case.noise(s), dict(tol=1e-9)) for s in (7, 8, 9)] + [(b, batch)])
        assert np.array_equal(x, beside[-1][0])
        assert not np.array_equal(x, y) and np.allclose(x, y, rtol=0, atol=1e-2)


tap.run(DaemonCase(*sys.argv[1:]))
