#!/usr/bin/env python3
"""What a start of quark-engine takes, and what on: medians of starts without and with a checkpoint of multigrid.

usage: bench_start.py BUILD [BUILD...] [--gauge FILE] [--repeat N] ...

Plays the front with Python alone, so that it runs where the engine does. Each start is a new process: LOAD, READY, STOP. "ready" is
the time from LOAD to READY as the engine tells it, "hello" that from the process to its first message (libraries, device), "stop" that of
its end. Then the phases of READY, in their order; those in brackets ran beside others. "pinned" is when the last staging buffer
became ready, counted from where they were begun. With several builds (a commit and its parent) they take turns, so that what else the machine
does concerns them alike. Without a checkpoint there is nothing to restore; with one the setup is written once, and read by each start.

The gauge file is read from the page cache from the second start on; the first one is not counted (--cold: it is). Prints a table for each
build; nothing passes or fails.
"""
import argparse
import collections
import os
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
from plain_engine import Engine, Failed  # noqa: E402

PINNED = re.compile(r'buffers of .* are ready after ([\d.]+) s')
PINNED_WAIT = 30  # seconds


def program(build):
    for path in os.path.join('daemon', 'engine', 'quark-engine'), 'quark-engine':
        if os.access(os.path.join(build, path), os.X_OK):
            return os.path.join(build, path)
    sys.exit('%s holds no quark-engine: ninja -C %s daemon/engine/quark-engine' % (build, build))


def load_of(o, checkpoint):
    fields = dict(gauge=o.gauge, mass=0.5 / o.kappa - 4, csw=o.csw, boundary=[1, 0, 1, 0, 1, 0, -1, 0], backend=o.backend, solver=o.solver,
                  inner='PRECISION_SINGLE', slots=o.slots, link_reals=0, staging=o.staging, checkpoint=checkpoint,
                  multigrid=[dict(key=k, value=v) for k, v in (word.split('=', 1) for word in o.mg)])
    return fields if checkpoint else {k: v for k, v in fields.items() if k != 'checkpoint'}


def await_pinned(e, ready):
    """Seconds; None where nothing is pinned beside the start."""
    end = time.monotonic() + (PINNED_WAIT if ready['backend'] == 'cuda' and 'clock' in ready else 0)
    while True:
        found = PINNED.search(e.log(1 << 20))
        if found or time.monotonic() > end:
            return float(found[1]) if found else None
        time.sleep(0.1)


def await_written(e, ready):
    report = ready.get('multigrid')
    while report and not report.get('checkpoint_written'):
        if report.get('checkpoint_trouble'):
            raise Failed(report['checkpoint_trouble'])
        report = e.expect('multigrid', skip=())['multigrid']


def start(o, build, checkpoint, write=False):
    """{what: seconds}, and READY."""
    launcher = ['mpirun', '-np', str(o.ranks)] if o.ranks > 1 else []
    begin = time.perf_counter()
    with Engine(program(build), launcher, level='info') as e:
        took = collections.OrderedDict(hello=time.perf_counter() - begin)
        ready = e.load(**load_of(o, checkpoint))
        took['ready'] = ready['seconds']
        for clock in ready.get('clock', []):
            took['(%s)' % clock['phase'] if clock.get('beside') else clock['phase']] = clock['seconds']
        pinned = await_pinned(e, ready)
        if pinned is not None:
            took['(pinned)'] = pinned
        if write:
            await_written(e, ready)
        begin = time.perf_counter()
    took['stop'] = time.perf_counter() - begin
    return took, ready


def series(o, checkpoints):
    """{build: [{what: seconds}]}, by turns; the first of each is left out unless it is cold that is wanted."""
    found = {build: [] for build in o.build}
    for i in range(o.repeat + (0 if o.cold else 1)):
        for build in o.build:
            took, ready = start(o, build, checkpoints.get(build))
            if checkpoints and not ready.get('multigrid', {}).get('restored'):
                raise Failed('%s has not restored its checkpoint' % build)
            if i > 0 or o.cold:
                found[build].append(took)
    return found


def show(title, found):
    for build, starts in found.items():
        print('\n%s, %s: medians of %d starts (least, most), s\n' % (title, build, len(starts)))
        print('| | median | least | most |\n| --- | --- | --- | --- |')
        names = list(collections.OrderedDict((name, None) for took in starts for name in took))
        for name in names:
            seconds = [took[name] for took in starts if name in took]
            print('| %s | %.2f | %.2f | %.2f |' % (name, statistics.median(seconds), min(seconds), max(seconds)))
    sys.stdout.flush()


def describe(ready):
    plan = ready.get('memory', {})
    print('%s on %s: %s, solver %s, %d slots, inflight %d' % (ready['backend'], ready['device'], 'x'.join(map(str, ready['dims'])),
                                                              ready.get('solver'), ready['slots'], ready.get('inflight', ready['slots'])))
    print('device memory %.3f GB (planned %.3f while serving: %s; %.3f during setup)' % (
        1e-9 * ready['device_bytes'], 1e-9 * plan.get('serving', 0),
        ', '.join('%s %.3f' % (s['name'], 1e-9 * s['bytes']) for s in plan.get('share', [])), 1e-9 * plan.get('setup', 0)), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('build', nargs='+', metavar='BUILD')
    p.add_argument('--gauge', default='builtin:weak:8x8x8x16:1', help='file or builtin:... (%(default)s)')
    p.add_argument('--kappa', type=float, default=0.1350)
    p.add_argument('--csw', type=float, default=1.769)
    p.add_argument('--backend', default='auto', choices=('auto', 'cpu', 'cuda'))
    p.add_argument('--solver', default='auto')
    p.add_argument('--slots', type=int, default=16)
    p.add_argument('--staging', type=int, default=8)
    p.add_argument('--ranks', type=int, default=1)
    p.add_argument('--mg', action='append', default=[], metavar='KEY=VALUE', help='a parameter of multigrid, as mg-vectors=24')
    p.add_argument('--repeat', type=int, default=3, help='starts of each kind that are counted (%(default)s)')
    p.add_argument('--cold', action='store_true', help='count the first start, too')
    p.add_argument('--only', choices=('without', 'with'), help='a checkpoint')
    o = p.parse_args()
    try:
        for build in o.build:
            print('%s: ' % build, end='')
            describe(start(o, build, None)[1])
        if o.only != 'with':
            show('without checkpoint', series(o, {}))
        if o.only != 'without':
            with tempfile.TemporaryDirectory(prefix='qk-start-') as folder:
                checkpoints = {build: os.path.join(folder, 'setup%d' % i) for i, build in enumerate(o.build)}
                for build in o.build:
                    start(o, build, checkpoints[build], write=True)
                show('with checkpoint', series(o, checkpoints))
    except Failed as e:
        sys.exit('bench_start: %s' % e)


if __name__ == '__main__':
    main()
