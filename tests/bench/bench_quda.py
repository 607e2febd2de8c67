#!/usr/bin/env python3
"""Twelve columns by a program of QUDA whose libquda is a client, beside `quarkctl bench` and the engine alone, on one daemon.

usage: bench_quda.py BUILD [--gauge FILE] [--kappa K] [--csw C] [--backend NAME] [--solver NAME] [--tol T] [--ranks N,N] [--repeat N] [--built FOLDER]

quarkctl bench   one request of twelve right-hand sides: made by the daemon or sent; solutions fetched or not
libquda          the call invertMultiSrcQuda for twelve point sources in the memory of the program, in the order of sites of QUDA,
                 on one rank and on several, which split the time
Of libquda also the processor seconds of a column, of all ranks (which wait without sleep). To measure what is moved alone: --kappa 0.02
--solver bicgstab --tol 0.3. Medians of the repetitions; the ratio is to the request of which nothing is moved. The library and its caller are built for the look-alike
header of tests/quda, or are in FOLDER from an earlier `bench_quda.py BUILD --built FOLDER --only-build`.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path[:0] = [os.path.join(TOP, 'tests', 'support', 'python'), os.path.join(TOP, 'tests', 'ref')]
from daemon import Daemon    # noqa: E402
import numpy as np           # noqa: E402
import ref_dirac as ref      # noqa: E402

COLUMNS, VARIANT = 12, 2


def build(folder, libquark, mpi):
    """The program, with its library beside it."""
    here, flags = os.path.join(TOP, 'tests', 'quda'), ['-DLOOKALIKE=%d' % VARIANT]
    subprocess.run([os.path.join(TOP, 'client', 'quda', 'quark-quda'), '--header', os.path.join(here, 'lookalike'), '--prefix', folder,
                    '--cflags=' + flags[0], '--libquark', libquark + ',' + os.path.join(TOP, 'client'), '--mpi', 'mpicc' if mpi else 'none'], check=True)
    sources = [os.path.join(here, 'callers', name + '.c') for name in ('pyquda', 'kit')]
    subprocess.run((['mpicc', '-DKIT_MPI'] if mpi else ['cc']) + ['-std=gnu11', '-O2', *flags, '-I' + os.path.join(folder, 'include'), *sources,
                   '-o', os.path.join(folder, 'pyquda'), '-L' + os.path.join(folder, 'lib'), '-lquda', '-lm', '-ldl', '-Wl,-rpath,$ORIGIN/lib'], check=True)


def write_fields(folder, gauge, dims):
    """Links and point sources as the caller reads them."""
    links, _ = ref.load_any(gauge)
    np.ascontiguousarray(np.moveaxis(links, 0, 4)).tofile(os.path.join(folder, 'links'))
    size = 12 * 16 * int(np.prod(dims))
    with open(os.path.join(folder, 'in'), 'wb') as f:
        f.truncate(COLUMNS * size)
        for n in range(COLUMNS):
            f.seek(n * size + 16 * n)
            f.write(np.array([1], complex).tobytes())
    with open(os.path.join(folder, 'out'), 'wb') as f:
        f.truncate(COLUMNS * size)


def libquda(d, options, program, folder, dims, ranks):
    """Seconds of the call; processor seconds."""
    words = ['dims=%d,%d,%d,%d' % tuple(dims), 'grid=1,1,1,%d' % ranks, 'columns=%d' % COLUMNS, 'kappa=%r' % options.kappa, 'csw=%r' % options.csw,
             'tol=%r' % options.tol, *('%s=%s' % (k, os.path.join(folder, k)) for k in ('links', 'in', 'out'))]
    command = (['mpirun', '-n', str(ranks), '--oversubscribe'] if ranks > 1 else []) + [program, *words]
    done = subprocess.run(command, env=dict(os.environ, QUARKD_ENDPOINT=d.endpoint), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r'residual (\S+) .* secs (\S+) cpu (\S+)', done.stdout)
    assert done.returncode == 0 and found and float(found[1]) <= options.tol, done.stdout
    return float(found[2]), float(found[3])


def bench(d, options, source, sink):
    done = d.ctl('bench', '--clients=1', '--rhs=%d' % COLUMNS, '--requests=1', '--tol=%g' % options.tol, '--source=' + source, '--sink=' + sink, '--json')
    assert done.code == 0, done
    return done.json['latency']['request']['mean'], np.nan


def measure(options, folder):
    programs = [os.path.join(options.build, path) for path in ('daemon/front/quarkd', 'client/quarkctl')]
    dims = ref.load_any(options.gauge)[0].shape[4:0:-1]
    write_fields(folder, options.gauge, dims)
    ranks = [int(n) for n in options.ranks.split(',')]
    kinds = {'quarkctl bench, nothing moved': lambda d: bench(d, options, 'point', 'none'), 'quarkctl bench, solutions fetched': lambda d: bench(d, options, 'point', 'download'),
             'quarkctl bench, sources sent, too': lambda d: bench(d, options, 'upload', 'download'),
             **{'libquda, %d rank%s' % (n, 's' if n > 1 else ''): lambda d, n=n: libquda(d, options, os.path.join(folder, 'pyquda'), folder, dims, n)
                for n in ranks}}
    with Daemon(*programs, '--gauge', options.gauge, '--kappa=%r' % options.kappa, '--csw=%r' % options.csw, '--slots=12', '--backend=' + options.backend,
                '--solver=' + options.solver) as d:
        d.wait_listening()
        assert d.ctl('status').code == 0  # ready
        seen = {}
        for name, call in kinds.items():
            seen[name] = np.array([call(d) for _ in range(options.repeat + 1)][1:])
            print('%s: %s' % (name, ' '.join('%.3f' % t for t in seen[name][:, 0])), file=sys.stderr, flush=True)
    base = np.median(seen['quarkctl bench, nothing moved'][:, 0])
    print('%s, %s, twelve columns to %g, %d turns' % ('x'.join(map(str, dims)), options.backend, options.tol, options.repeat))
    print('%-36s %9s %9s %8s %12s' % ('', 'median s', 'best s', 'ratio', 'cpu/column s'))
    for name, t in seen.items():
        print('%-36s %9.4f %9.4f %8.3f %12.4f' % (name, np.median(t[:, 0]), min(t[:, 0]), base / np.median(t[:, 0]), np.median(t[:, 1]) / COLUMNS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--gauge', default='')
    parser.add_argument('--kappa', type=float, default=0.12)
    parser.add_argument('--csw', type=float, default=1.3)
    parser.add_argument('--tol', type=float, default=1e-10)
    parser.add_argument('--backend', default='cpu')
    parser.add_argument('--solver', default='mg')
    parser.add_argument('--ranks', default='1,2')
    parser.add_argument('--repeat', type=int, default=3)
    parser.add_argument('--built')
    parser.add_argument('--only-build', action='store_true')
    options = parser.parse_args()
    folder = options.built or tempfile.mkdtemp(prefix='qk-bench-quda-')
    try:
        if not os.path.exists(os.path.join(folder, 'pyquda')):
            build(folder, os.path.abspath(os.path.join(options.build, 'client', 'libquark.a')), True)
        if not options.gauge:
            options.gauge = os.path.join(folder, 'weak.lime')
            subprocess.run([os.path.join(options.build, 'daemon/engine/quark-gauge'), 'convert', 'builtin:weak:8x8x8x16:1', options.gauge],
                           check=True, stdout=subprocess.DEVNULL)
        if not options.only_build:
            measure(options, folder)
    finally:
        if not options.built:
            shutil.rmtree(folder, ignore_errors=True)


main()
