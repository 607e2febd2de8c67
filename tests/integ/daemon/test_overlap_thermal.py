#!/usr/bin/env python3
"""Overlap fermions on links of a simulation, judged by numpy: test_overlap_thermal.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS

H has low eigenvectors there, which the daemon and the oracle find and project each by itself. QK_LARGE takes 8^3x16 (QK_THERMAL), where the
oracle needs half an hour; docs/performance.md has what came out.
"""
import os
import subprocess
import sys
import tempfile

import tap

try:
    import numpy as np
    import front_driver
    import overlap_ref
    import ref_dirac as ref
    from front_driver import Client, Daemon, qk
    from staggered_case import solve
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

M, MASS, MODES, TOL = 1.4, 0.1, 12, 1e-10
LARGE = 'QK_LARGE' in os.environ
BOUNDARY = 1, 1, 1, -1


class Rough:
    def __init__(self, quarkd, engine, quark_gauge, ranks):
        self.binary, self.engine, self.ranks = quarkd, engine, ranks
        self.folder = tempfile.TemporaryDirectory(prefix='qk-overlap-')
        self.gauge = os.environ.get('QK_THERMAL') if LARGE else self.generate(quark_gauge)
        self.links, _ = ref.load_any(self.gauge)

    def generate(self, quark_gauge):
        path = os.path.join(self.folder.name, 'rough.%d.lime')
        subprocess.run([quark_gauge, 'generate', '--dims', '4x4x4x8', '--beta', '6.0', '--sweeps', '60', '--or-per-hb', '2', '--seed', '5', '--start', 'cold',
                        '--backend', 'cpu', '--bits', '64', '--quiet', '--out', path], check=True, stdout=subprocess.DEVNULL)
        return path % 60


@tap.test
def operator_and_column_are_those_of_the_oracle(case):
    front_driver.TIMEOUT = 3600.0 if LARGE else 120.0
    oracle = overlap_ref.Overlap(case.links, BOUNDARY, MASS, M, project=MODES)
    assert oracle.off.max() < 1e-12, oracle.off
    b = np.random.default_rng(5).standard_normal(2 * oracle.n).view(complex).reshape(oracle.shape)
    again = oracle.sign(oracle.sign(b))
    assert np.linalg.norm(again - b) < 1e-12 * np.linalg.norm(b)
    column = np.zeros(oracle.shape, complex)
    column[3, 1, 2, 1, 0, 1] = 1
    with Daemon(case.binary, '--action', 'overlap', '--solver', 'cg', '--ranks', case.ranks, '--set', 'M=%s' % M, '--set', 'modes=%d' % MODES, '--set', 'sign-tol=1e-11',
                '--slots', '2', '--lease', '3600', engine=case.engine, gauge=case.gauge, mass=str(MASS)) as d, Client(d) as c:
        s = d.status().setup.sign
        assert abs(s.lowest - abs(oracle.values[0])) < 1e-9 and abs(s.bound - abs(oracle.values[MODES])) < 1e-9, (s, oracle.values)
        y, = solve(c, [b.ravel()], work=qk.WORK_M)
        q, p = solve(c, [column.ravel(), b.ravel()], tol=TOL)
    exact = oracle.apply(b)
    off = (np.linalg.norm(y.reshape(exact.shape) - exact) / np.linalg.norm(exact), np.linalg.norm(oracle.residual(column, q)),
           np.linalg.norm(oracle.residual(b, p)) / np.linalg.norm(b))
    print('# D(m) is off by %.2g, |b - D x| / |b| = %.2g of a column, %.2g of noise' % off)
    assert off[0] < 4e-11 and max(off[1:]) < 1.3 * TOL, off


tap.run(Rough(*sys.argv[1:]))
