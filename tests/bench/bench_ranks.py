#!/usr/bin/env python3
"""Links from memory by the ranks of a program, each of which sends its brick, and right-hand sides by bricks: GB/s, processor seconds a GB.

usage: PYTHONPATH=BUILD/client/python bench_ranks.py BUILD [--ranks N] [--dims XxYxZxT] [--repeat N]

Starts quarkd and itself under mpirun. Links are new ones in each turn; the time is that of upload_gauge on all ranks, with the digest of each
brick and the daemon's check, then of the same links again, which are there. `apply` moves a source there and a result back, as arrays and from
buffers. Medians of the turns; processor seconds are those of all ranks, and of quarkd.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
import numpy as np  # noqa: E402


def turn(q, comm, pid, call):
    """Seconds, of processors of the ranks, and of the daemon."""
    def spent():
        with open('/proc/%d/stat' % pid, encoding='ascii') as f:
            words = f.read().rpartition(')')[2].split()
        return sum(int(n) for n in words[11:13]) / os.sysconf('SC_CLK_TCK')
    comm.Barrier()
    daemon, mine, start = spent(), time.process_time(), time.perf_counter()
    call()
    comm.Barrier()
    seconds, mine = time.perf_counter() - start, time.process_time() - mine
    return seconds, comm.allreduce(mine), spent() - daemon


def on_a_rank(a):
    from mpi4py import MPI
    import quarkd
    comm = MPI.COMM_WORLD
    with quarkd.connect(a.endpoint, comm=comm) as q:
        sites = q.shape[:4]
        links = q.empty(sites + (4, 3, 3))
        phase = np.random.default_rng(comm.Get_rank()).uniform(size=sites + (4,))
        links[..., 2, 2] = 1
        b = np.ones(q.shape, complex)
        own = q.empty()
        own[...] = b
        rows = {'links, sent': [], 'the same again': [], 'apply': [], 'apply, from buffers': []}
        for _ in range(a.repeat):
            phase += 0.01
            links[..., 0, 0], links[..., 1, 1] = np.exp(1j * phase), np.exp(-1j * phase)
            kept = []
            rows['links, sent'].append(turn(q, comm, a.pid, lambda: kept.append(q.upload_gauge(links))))
            rows['the same again'].append(turn(q, comm, a.pid, lambda: kept.append(q.upload_gauge(links))))
            assert kept[0].sent and not kept[1].sent
            for u in kept:
                u.release()
            rows['apply'].append(turn(q, comm, a.pid, lambda: q.apply(b)))
            rows['apply, from buffers'].append(turn(q, comm, a.pid, lambda: q.apply(own)))
    size = {'links, sent': links.nbytes, 'the same again': links.nbytes, 'apply': 2 * b.nbytes, 'apply, from buffers': 2 * b.nbytes}
    if comm.Get_rank():
        return
    print('%s, %d ranks, medians of %d turns' % (a.dims, comm.Get_size(), a.repeat))
    for name, times in rows.items():
        seconds, ranks, daemon = (statistics.median(column) for column in zip(*times))
        gb = 1e-9 * size[name] * comm.Get_size()
        print('%-20s %8.4f s  %6.2f GB/s   ranks %.2f s/GB   daemon %.2f s/GB' % (name, seconds, gb / seconds, ranks / gb, daemon / gb), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--ranks', type=int, default=8)
    parser.add_argument('--dims', default='16x16x16x32')
    parser.add_argument('--repeat', type=int, default=5)
    parser.add_argument('--mpirun', default='mpirun --oversubscribe')
    parser.add_argument('--endpoint', help=argparse.SUPPRESS)
    parser.add_argument('--pid', type=int, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.endpoint:
        on_a_rank(a)
        return
    from daemon import Daemon
    programs = [os.path.join(a.build, path) for path in ('daemon/front/quarkd', 'client/quarkctl')]
    with Daemon(*programs, '--gauge=builtin:weak:%s:1' % a.dims, '--kappa=0.13', '--csw=1', '--slots=2') as d:
        d.wait_listening()
        subprocess.run([*a.mpirun.split(), '-np', str(a.ranks), sys.executable, '-m', 'mpi4py', os.path.abspath(__file__), a.build,
                        '--dims', a.dims, '--repeat', str(a.repeat), '--endpoint', d.endpoint, '--pid', str(d.process.pid)], check=True)


main()
