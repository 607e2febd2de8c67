#!/usr/bin/env python3
"""libquda.so with bricks of several MPI ranks: test_quda_ranks.py QUARKD QUARK_ENGINE QUARK_GAUGE LIBQUARK_A QUDA_PARTS_A MPIRUN"""
import sys

import tap

try:
    import numpy as np
    import ref_dirac as ref
    from engine_case import BASES
    from front_driver import qk
    from quda_case import CSW, DIMS, EVEN, G5, KAPPA, MASS, QudaCase
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

GRIDS = (1, 1, 1, 1), (1, 1, 1, 2), (1, 2, 1, 2), (2, 1, 2, 1)


def run(case, d, name, b, grid, **arguments):
    return case.run(d, name, b, mpi=True, ranks=int(np.prod(grid)), grid='%d,%d,%d,%d' % grid, **arguments)


def misses(f, x, b):
    return np.linalg.norm(b - f(x)) / np.linalg.norm(b)


@tap.test
def all_grids_give_the_bits_of_one_rank(case):
    b = case.noise(21, 3)
    with case.daemon('--csw', repr(CSW)) as d:
        whole, _ = run(case, d, 'pyquda', b, GRIDS[0])
        assert misses(case.op.apply, whole[1], b[1]) < 2e-13
        for grid in GRIDS[1:]:
            x, said = run(case, d, 'pyquda', b, grid)
            assert np.array_equal(x, whole) and 'setup main' in said and said.count('residual') == 1, said
        for call in (dict(call='dslash', parity='odd'), dict(call='one', solution='matpc', matpc='oo', norm='mass'),
                     dict(call='matdag', norm='kappa'), dict(call='one', solution='matdagmat', tol=1e-10)):
            one, _ = run(case, d, 'pyquda', b[:1], GRIDS[0], **call)
            x, _ = run(case, d, 'pyquda', b[:1], GRIDS[2], **call)
            assert np.allclose(x, one, rtol=0, atol=1e-13 * abs(one).max()), call
        assert d.terminate() == 0


@tap.test
def grids_of_milc_chroma_and_tmlqcd(case):
    b = case.noise(22)
    with case.daemon('--csw', repr(CSW)) as d:
        term, own = case.clover(case.op, 2 * KAPPA), case.clover(case.op, name='own')
        x, _ = run(case, d, 'milc', b, GRIDS[2], clover=term)
        assert misses(lambda v: 2 * KAPPA * case.op.apply(v), G5 * x[0], G5 * b[0]) < 2e-13
        x, said = run(case, d, 'chroma', b, GRIDS[3], clover=own)
        hop, inverse = case.op.hops, case.op.local_inverse
        assert misses(lambda v: ~EVEN * (v - inverse(hop(inverse(hop(v)))) / 4), x[0], ~EVEN * b[0]) < 2e-13
        u, theta = case.links.copy(), (0.3, 0, -0.7, 1)
        for mu in range(4):
            u[mu] *= np.exp(1j * np.pi * theta[mu] / DIMS[mu])
        x, _ = run(case, d, 'tmlqcd', b, GRIDS[2], theta='%r,%r,%r,%r' % theta, order='t')
        op = ref.WilsonClover(u, MASS, CSW, ref.PERIODIC)
        seen, source = (np.einsum('ij,...jc->...ic', BASES[qk.BASIS_OPENQCD], f[0]) for f in (x, b))
        assert misses(lambda v: 2 * KAPPA * op.apply(v), seen, source) < 2e-12
        assert d.terminate() == 0


@tap.test
def what_ends_one_rank_ends_all_with_one_sentence(case):
    b = case.noise(23)
    bad = b.copy()
    bad[0, 7, 3, 3, 3, 0, 0] = np.nan  # a site of the last rank
    with case.daemon('--csw', repr(CSW)) as d:
        for arguments, text in ((dict(b=bad), 'NAN_INPUT'), (dict(b=b, mu=0.1), 'mu = 0.1'), (dict(b=b, kappa=0), 'kappa = 0')):
            said = run(case, d, 'pyquda', grid=GRIDS[2], code=1, **arguments)
            lines = [line for line in said.splitlines() if text in line]
            assert len(lines) == 1 and lines[0].startswith('quark-quda: '), said
        said = case.run(d, 'pyquda', b, mpi=True, ranks=2, grid='1,1,1,1', code=1)
        assert 'a grid of 1,1,1,1 for 2 ranks' in said, said
        assert d.terminate() == 0


if __name__ == '__main__':
    case = QudaCase(*sys.argv[1:])
    try:
        tap.run(case)
    finally:
        case.close()
