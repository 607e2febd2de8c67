"""What sources that are mostly zeros cost, the whole way: test_zeros.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE

quarkctl, quarkd and its engine; solutions are judged by b - M x, bytes by the count of the daemon.
"""
import sys

import tap
from cli_case import COLUMN_BYTES, SHAPE, Case, np, random_sources, read_field, write_sources

SLICE = COLUMN_BYTES // SHAPE[0]
TWELVE = range(12)


def points(t):
    b = np.zeros((12,) + SHAPE, complex)
    for k in TWELVE:
        b[k, t, 3, 1, 2, k // 3, k % 3] = 1
    return b


def counted(d):
    c = d.ctl('status', '--json').json['counters']
    return np.array([c['bytes_in'], c['bytes_local']])


@tap.test
def twelve_points_cost_less_than_a_slice_each(case):
    """By chunks and by shared memory, on the first slice and the last; solutions are those of points that the daemon makes."""
    for local in ('no', 'yes'):
        with case.daemon('--local=' + local) as d:
            for t in (0, 7):  # on other slices of so small a lattice there is no long run
                b, before = points(t), counted(d)
                write_sources(d.path('b.h5'), b)
                out = d.path('x%d.h5' % t)
                done = d.ctl('solve', '--in', d.path('b.h5'), '--out', out, '--tol=1e-12', '--json')
                assert done.code == 0, done
                taken, shared = counted(d) - before
                assert 0 < taken <= 12 * SLICE and 12 * COLUMN_BYTES == 8 * 12 * SLICE, (local, t, taken)
                assert shared == (taken + 12 * COLUMN_BYTES if local == 'yes' else 0)  # with the solutions
                x = read_field(out)
                assert max(case.residual(x[k], b[k]) for k in TWELVE) < 1.1e-12
                made = d.ctl('propagator', '--source=point:2,1,3,%d' % t, '--out', d.path('p%d.h5' % t), '--tol=1e-12')
                assert made.code == 0, made
                assert np.allclose(read_field(d.path('p%d.h5' % t)), x, rtol=0, atol=1e-10 * np.abs(x).max())


@tap.test
def sources_on_slices_and_dense_ones_come_side_by_side(case):
    """Whatever was in the buffers of the engine before."""
    b = random_sources(9)
    for k in (0, 1, 6, 7):
        b[k, :k] = 0
        b[k, k + 1:] = 0
    b[5, 2:6] = 0  # too short
    for local in ('no', 'yes'):
        with case.daemon('--local=' + local, '--slots=2') as d:
            write_sources(d.path('b.h5'), b)
            for turn in range(2):
                done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x%d.h5' % turn), '--tol=1e-12')
                assert done.code == 0, done
                x = read_field(d.path('x%d.h5' % turn))
                assert max(case.residual(x[k], b[k]) for k in range(9)) < 1.1e-12
            assert counted(d)[0] < 2 * (4 * 2 * SLICE + 5 * COLUMN_BYTES) + 16 * 4096, counted(d)


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:6]))
