"""Solutions of five dimensions on another backend: test_engine_five_backend.py QUARK_ENGINE QUARK_GAUGE RANKS

QK_BACKEND (cpu, cuda) names it; tests/gpu.sh runs this on a GPU. Each solution is judged by the numpy oracle of domain wall fermions, and
compared with that of the CPU.
"""
import os
import sys

import tap
try:
    import numpy as np
    import ref_dirac as ref
    from engine_case import BOUNDARY, Case, OK
    from engine_driver import qk
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

BACKEND = os.environ.get('QK_BACKEND', 'cpu')
GAUGE = 'builtin:weak:4x2x4x8:5'
NUMBERS = dict(mass=0.1, M5=1.4, Ls=6, b=1.5, c=0.5)
SETS = [NUMBERS, dict(mass=0.1, M5=1.4, Ls=3), dict(NUMBERS, Ls=4, b_im=0.2, c_im=-0.1)]  # Moebius, Shamir, zMoebius
TOL = 1e-11
AGREE = 100 * TOL  # a residual of TOL over the lowest singular value of M, relative to |x|


def noise(shape, seed):
    return np.random.default_rng(seed).normal(size=shape + (2,)) @ np.array([1, 1j])


def solutions(case, backend, given, op, sources, **load):
    """Of sources of five dimensions, and of a point."""
    shape = (op.ls,) + op.shape
    point = dict(source=qk.SOURCE_POINT, column=dict(x=1, y=1, t=3, spin=2, colour=1))
    with case.with_action(GAUGE, 'moebius', given, backend=backend, **load) as e:
        found = [e.solve(b, tol=TOL, five_d=True) for b in sources]
        found.append(e.generate(shape, tol=TOL, five_d=True, **point))
    for x, end in found:
        assert end.status == OK and end.true_residual <= TOL, (backend, end)
    return [x for x, _ in found]


def check(case, given, **load):
    op = ref.DomainWall(case.links_of(GAUGE), BOUNDARY, **given)
    sources = [noise((op.ls,) + op.shape, seed) for seed in (1, 2)]
    eta = np.zeros(op.shape, complex)
    eta[3, 0, 1, 1, 2, 1] = 1
    there = solutions(case, BACKEND, given, op, sources, **load)
    here = solutions(case, 'cpu', given, op, sources, **load)
    for b, x, y in zip(sources + [op.enter(eta)], there, here, strict=True):
        miss, away = (np.linalg.norm(b - op.apply5(x)) / np.linalg.norm(b), np.linalg.norm(x - y) / np.linalg.norm(y))
        print('# %s, %s, %s: |b - M x| / |b| = %.2g; differs from the CPU by %.2g' % (BACKEND, given, load, miss, away))
        assert miss <= 1.01 * TOL and away <= AGREE, (miss, away)


@tap.test
def solutions_are_those_of_the_oracle_and_of_the_cpu(case):
    for given in SETS:
        check(case, given, inner='PRECISION_DOUBLE')


@tap.test
def so_are_those_of_blocks_with_less_precision_inside(case):
    for inner in 'PRECISION_SINGLE', 'PRECISION_HALF':
        check(case, NUMBERS, inner=inner, slots=3)


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
