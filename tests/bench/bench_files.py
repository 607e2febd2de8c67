#!/usr/bin/env python3
"""How long a propagator takes on its way into an HDF5 file: seconds of the whole command, processor seconds of quarkctl, which other load on
the machine changes less, and what quarkctl says of fetching, writing and bringing to the disk.

usage: bench_files.py QUARKD QUARKCTL [QUARKCTL ...] [--dims XxYxZxT] [--dtype f64,f32] [--repeat N] [--folder DIR] [--local yes|no]
                      [--solve [--gauge FILE] [--kappa K] [--csw C] [--quarkd=OPTION ...]]

Without --solve an engine that only pretends makes the twelve columns beforehand (quarkctl propagator --detach), and what is timed is
quarkctl fetch: no solver is in it, and no GPU is needed. With --solve the engine beside quarkd solves on the device that it finds, and the whole
quarkctl propagator is timed, after one that is not counted. Several QUARKCTL are measured in turn, to compare two builds. The file is written to
--folder (a temporary one), which decides how fast its disk is, and removed after each run. Memory: twelve solutions in /dev/shm, and
the file. Medians of --repeat runs (3).
"""
import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
from daemon import Daemon as RealDaemon  # noqa: E402
import numpy as np                       # noqa: E402

COLUMNS, CLOCKS, AGAIN = 12, ('fetch', 'write', 'sync'), 75


@contextlib.contextmanager
def pretending(o):
    from front_case import Case
    with Case(o.quarkd).daemon('--local', o.local, dims=o.dims) as d:
        yield d.endpoint


@contextlib.contextmanager
def solving(o):
    gauge = o.gauge or 'builtin:weak:%s:1' % o.dims
    options = ['--gauge', gauge, '--kappa', o.kappa, '--csw', o.csw, '--local', o.local, '--backend=auto', '--solver=auto', *o.quarkd_options]
    with RealDaemon(o.quarkd, o.quarkctl[0], *options) as d:
        status = d.ctl('status', '--json', '--timeout=600')
        assert status.code == 0, status
        o.dims = 'x'.join(map(str, status.json['setup']['dims']))
        print('engine on %s' % (status.json['engine']['device'] or status.json['engine']['backend']), flush=True)
        yield d.endpoint


def spent():
    """Processor seconds of all processes that were waited for."""
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def ctl(program, endpoint, *args, codes=(0,)):
    """Its output; its seconds, and those of processors."""
    begin, before = time.perf_counter(), spent()
    done = subprocess.run([program, *args, '--timeout=300', '--json'], env=dict(os.environ, QUARKD_ENDPOINT=endpoint), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - begin, spent() - before
    assert done.returncode in codes, (args, done.stdout, done.stderr)
    return json.loads(done.stdout), seconds


def run(o, program, endpoint, dtype, out):
    """Seconds of the command and of processors, then of its clocks; bytes of the file."""
    command = ('propagator', '--source=point:0,0,0,0', '--dtype=' + dtype, '--out=' + out)
    if o.solve:
        os.sync()
        said, seconds = ctl(program, endpoint, *command)
    else:
        ticket = ctl(program, endpoint, *command, '--detach')[0]['ticket']
        while not ctl(program, endpoint, 'fetch', ticket, '--status', codes=(0, AGAIN))[0]['complete']:
            time.sleep(0.1)
        os.sync()  # what runs before have left
        said, seconds = ctl(program, endpoint, 'fetch', ticket)
    size = os.path.getsize(out)
    os.unlink(out)
    clocks = said.get('clocks') or {}
    return [*seconds, *(clocks.get(c, float('nan')) for c in CLOCKS), size]


def measure(o, endpoint, folder):
    out = os.path.join(folder, 'p.h5')
    print('| program | dtype | GB | s | s/GB | processor, s | ' + ' | '.join(c + ', s' for c in CLOCKS) + ' | file / data |\n|' + ' --- |' * 10)
    for dtype in o.dtype.split(','):
        data = COLUMNS * 24 * {'f32': 4, 'f64': 8}[dtype] * int(np.prod([int(n) for n in o.dims.split('x')]))
        found = {program: [] for program in o.quarkctl}
        if o.solve:
            run(o, o.quarkctl[0], endpoint, dtype, out)
        for _ in range(o.repeat):
            for program in o.quarkctl:
                found[program].append(run(o, program, endpoint, dtype, out))
        for i, program in enumerate(o.quarkctl):
            median = np.median(np.array(found[program]), axis=0)
            print('| %d | %s | %.2f | %.2f | %.2f | %.2f | %s | %.3f |' % (
                i + 1, dtype, 1e-9 * data, median[0], 1e9 * median[0] / data, median[1],
                ' | '.join('–' if np.isnan(s) else '%.2f' % s for s in median[2:5]), median[5] / data), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('quarkd')
    parser.add_argument('quarkctl', nargs='+')
    parser.add_argument('--dims', default='32x32x32x64')
    parser.add_argument('--dtype', default='f64,f32')
    parser.add_argument('--repeat', type=int, default=3)
    parser.add_argument('--folder')
    parser.add_argument('--local', default='yes')
    parser.add_argument('--solve', action='store_true')
    parser.add_argument('--gauge')
    parser.add_argument('--kappa', default='0.1245')
    parser.add_argument('--csw', default='1')
    parser.add_argument('--quarkd', dest='quarkd_options', action='append', default=[])
    o = parser.parse_args()
    o.quarkd, o.quarkctl = os.path.abspath(o.quarkd), [os.path.abspath(p) for p in o.quarkctl]
    with tempfile.TemporaryDirectory(dir=o.folder) as folder, (solving if o.solve else pretending)(o) as endpoint:
        measure(o, endpoint, folder)


if __name__ == '__main__':
    main()
