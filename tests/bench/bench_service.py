#!/usr/bin/env python3
"""quarkd under load, measured by quarkctl bench: beside the engine alone, continuous beside fixed batches, occupancy, fairness, a single request,
fields up and down by shared memory, by tcp and with CURVE.

usage: bench_service.py [BUILD] [OPTION...]

The engine alone is bench_mg with batches of as many as there are slots, point sources, one after the other; before and after
quarkd, which then has the device for itself. What clients of quarkd are given is in parts of the mean of both: counted, and
by what a solve takes and how much of the slots is in use, where requests that end just inside or outside of the time
measured do not matter.

The ratio by processor time compares what the same requests cost the engine: on the CPU backend it means something also
where other programs use the cores, most with OMP_NUM_THREADS=1.

Starts two daemons, one with --batching continuous and one with fixed, and gives both the same requests by turns, --repeat
times. Prints tables; nothing passes or fails. Needs only what the build has made (ninja -C BUILD, and tests/bench/bench_mg for
the engine alone); without BUILD programs are taken from PATH.
"""
import argparse
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

UNIFORM, SLOPPY = '1e-4,1e-6,1e-8,1e-10', '1e-4,1e-4,1e-4,1e-10'

PROPAGATORS = '--source=point', '--rhs=12', '--clients=6'
FIELDS = '--source=upload', '--sink=download', '--rhs=6', '--clients=8'
BESIDE_ENGINE = (('generated sources, no solution', (*PROPAGATORS, '--sink=none')),
                 ('contracted, f32', (*PROPAGATORS, '--sink=correlator', '--dtype=f32')),
                 ('contracted, f64', (*PROPAGATORS, '--sink=correlator', '--dtype=f64')),
                 ('up and down, f32', (*FIELDS, '--dtype=f32')),
                 ('up and down, f64', (*FIELDS, '--dtype=f64')))


def program(o, *path):
    found = os.path.join(o.build, *path) if o.build else shutil.which(path[-1])
    if found and os.path.exists(found):
        return found
    sys.exit('ninja -C %s %s: it is not there' % (o.build, os.path.join(*path)) if o.build else 'no %s in PATH' % path[-1])


def seconds_of(pid):
    """Of a processor, since the process began."""
    with open('/proc/%d/stat' % pid, encoding='ascii') as f:
        ticks = f.read().rsplit(')', 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf('SC_CLK_TCK')


class Daemon:
    def __init__(self, o, folder, batching, options=(), keys=()):
        self.o, self.endpoint_file, self.keys = o, os.path.join(folder, 'endpoint-%d' % time.monotonic_ns()), keys
        self.ctl = program(o, 'client', 'quarkctl')
        env = dict(os.environ, XDG_STATE_HOME=folder, OMP_WAIT_POLICY='passive')
        command = [program(o, 'daemon', 'front', 'quarkd'), '--engine=' + program(o, 'daemon', 'engine', 'quark-engine'),
                   '--gauge=' + o.gauge, '--kappa=%r' % o.kappa, '--csw=%r' % o.csw, '--backend=' + o.backend,
                   '--slots=%d' % o.slots, '--batching=' + batching, '--listen=tcp://127.0.0.1:0', '--log-level=warn',
                   '--endpoint-file=' + self.endpoint_file, *(options or ['--mg-checkpoint=off']), *o.quarkd]
        self.process = subprocess.Popen(command, env=env)
        while not os.path.exists(self.endpoint_file):
            if self.process.poll() is not None:
                sys.exit('quarkd has left with %d' % self.process.returncode)
            time.sleep(0.05)
        with open(self.endpoint_file, encoding='utf-8') as f:
            self.endpoint = f.readline().strip()
        self.status = self.quarkctl('status', '--json')

    def start(self, *args):
        return subprocess.Popen([self.ctl, *map(str, args), '--endpoint=' + self.endpoint, *self.keys], stdout=subprocess.PIPE, text=True)

    def quarkctl(self, *args):
        out = self.start(*args).communicate()[0]
        return json.loads(out) if out else sys.exit('quarkctl %s printed nothing' % ' '.join(map(str, args)))

    def bench(self, *args):
        return self.quarkctl('bench', '--json', *args)

    def spent(self):
        return seconds_of(self.status['engine']['pid'])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def heading(*names):
    print('\n| ' + ' | '.join(names) + ' |\n|' + ' --- |' * len(names))


def row(*values):
    print('| ' + ' | '.join(v if isinstance(v, str) else '%.3g' % v for v in values) + ' |', flush=True)


def engine_alone(o):
    """Seconds of a right-hand side."""
    command = [program(o, 'tests', 'bench', 'bench_mg'), '--gauge=' + o.gauge, '--kappa=%r' % o.kappa, '--csw=%r' % o.csw, '--tol=%r' % o.tol,
               '--batch=%d' % o.slots, '--point', '--seconds=%r' % o.seconds]
    env = dict(os.environ, OMP_WAIT_POLICY='passive', QK_BACKEND=o.backend)
    out = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    line = [words for words in map(str.split, out.splitlines()) if words[:1] == ['multigrid']][-1]
    print('engine alone: %.4g RHS/s, %s iterations' % (1 / float(line[6]), line[2]), flush=True)
    return float(line[6])


def beside_engine(o, folder):
    """What clients are given, in parts of what the engine does without them."""
    before, found = engine_alone(o), []
    d = Daemon(o, folder, 'continuous')
    try:
        for name, load in BESIDE_ENGINE:
            found.append(d.bench('--depth=2', '--tol=%r' % o.tol, '--duration=%r' % o.seconds, '--warmup=%r' % (o.seconds / 2), *load))
            print('%s: %.4g RHS/s' % (name, found[-1]['per_second']['rhs']), flush=True)
    finally:
        d.stop()
    most = 2 / (before + engine_alone(o))
    heading('load', 'RHS/s', 'of the engine alone', 'the same by seconds of a solve', 'occupancy', 'iterations')
    for (name, _), b in zip(BESIDE_ENGINE, found):
        occupancy = b['occupancy']['occupancy'] or float('nan')
        row(name, '%.4g' % b['per_second']['rhs'], '%.1f %%' % (100 * b['per_second']['rhs'] / most),
            '%.1f %%' % (100 * o.slots * occupancy / b['latency']['solver']['mean'] / most), '%.1f %%' % (100 * occupancy),
            '%.1f' % (b['rhs']['iterations'] / max(1, b['rhs']['done'])))


def ways(o, folder):
    """How fields travel: (name, options of quarkd, of quarkctl)."""
    yield 'shared memory', ['--local=yes'], []
    for n in o.threads.split(','):
        yield 'tcp, %s data threads' % n, ['--local=no', '--data-threads=' + n], []
    server, client, clients = (os.path.join(folder, name) for name in ('server.key', 'client.key', 'clients'))
    os.mkdir(clients)
    for command in ([server], [client, '--user=bench', '--role=operate']):
        subprocess.run([program(o, 'client', 'quarkctl'), 'keygen', *command], check=True, stdout=subprocess.DEVNULL)
    os.rename(client + '.pub', os.path.join(clients, 'bench'))
    for n in o.threads.split(','):
        yield ('CURVE, %s data threads' % n, ['--curve-key=' + server, '--curve-clients=' + clients, '--local=no', '--data-threads=' + n],
               ['--key=' + client, '--server-key=' + server + '.pub'])


def network(o, folder):
    """Fields up and down, f32, by way, with a solver that takes its time. Shares are of the same through shared memory."""
    heading('way', 'RHS/s: median (all)', 'of shared memory', 'GB/s, each way', 'processor seconds a GB: quarkd', 'clients', 'slots in use')
    of_shared = None
    for name, options, keys in ways(o, folder):
        d, found = Daemon(o, folder, 'continuous', ['--mg-checkpoint=' + os.path.join(folder, 'multigrid'), *options], keys), []
        try:
            gb = 4e-9 * 24 * math.prod(d.status['setup']['dims'])
            for _ in range(o.repeat):
                front, clients = seconds_of(d.process.pid), os.times()
                b = d.bench('--depth=2', '--tol=%r' % o.tol, '--dtype=f32', '--duration=%r' % o.seconds, '--warmup=%r' % (o.seconds / 2), *FIELDS)
                carried = 1.5 * b['rhs']['done'] * 2 * gb  # while it warmed up, too
                now = os.times()
                found.append((b['per_second']['rhs'], (seconds_of(d.process.pid) - front) / carried,
                              (now.children_user + now.children_system - clients.children_user - clients.children_system) / carried,
                              100 * b['per_second']['rhs'] * (b['latency']['solver']['mean'] or 0) / o.slots))
        finally:
            d.stop()
        rate, front, theirs, in_use = (statistics.median(column) for column in zip(*found))
        of_shared = of_shared or rate
        row(name, '%.4g (%s)' % (rate, ', '.join('%.4g' % f[0] for f in found)), '%.1f %%' % (100 * rate / of_shared), rate * gb, front, theirs,
            '%.0f %%' % in_use)


def saturated(o, daemons):
    """More clients than slots, so that something always waits."""
    for mix in (UNIFORM, SLOPPY):
        for run in range(o.repeat):
            compare(o, daemons, 'saturated, tol ' + mix, run, ['--clients=%d' % (2 * o.slots), '--tol=' + mix])


def staggered(o, daemons):
    """Arrivals that do not wait for each other, in requests of one to four, and clients that pause."""
    for mix in (UNIFORM, SLOPPY):
        found = daemons[0].bench('--clients=%d' % (2 * o.slots), '--tol=' + mix, '--requests=%d' % (o.requests // 2), '--source=' + o.source)
        rate = found['per_second']['rhs'] / 2.5  # right-hand sides of a request
        pause = found['latency']['solver']['mean'] / 2
        for run in range(o.repeat):
            compare(o, daemons, 'arrivals at 0.9 of the most, tol ' + mix, run,
                    ['--rate=%.3g' % (0.9 * rate), '--rhs=1:4', '--clients=%d' % (4 * o.slots), '--tol=' + mix], 2.5)
        for run in range(o.repeat):
            compare(o, daemons, '%d clients that pause half a solve, tol %s' % (o.slots, mix), run,
                    ['--clients=%d' % o.slots, '--think=%.3g' % pause, '--tol=' + mix])


def compare(o, daemons, name, run, load, each=1):
    """The same requests, from the first to the last, on both daemons."""
    got, cost = [], []
    for d in daemons:
        before = d.spent()
        got.append(d.bench('--requests=%d' % (o.requests / each), '--seed=%d' % (run + 1), '--source=' + o.source, *load))
        cost.append(d.spent() - before)
    rate = [g['per_second']['rhs'] for g in got]
    share = ['%.1f %%' % (100 * g['occupancy']['occupancy']) if g['occupancy']['occupancy'] is not None else '-' for g in got]
    row(name, str(run + 1), *rate, '%.2f' % (rate[0] / rate[1]), '%.2f' % (cost[1] / cost[0]), *share)


def fairness(o, d):
    """One user with a thousand right-hand sides in the queue; another submits one now and then."""
    heading('run', 'queued by the other user', 'solve of one of its RHS, mean / max, s', "single RHS's wait for a slot, mean / max, s")
    for run in range(o.repeat):
        many = d.start('bench', '--json', '--user=ada', '--clients=1', '--requests=1', '--rhs=1000', '--sink=none',
                       '--duration=3600', '--tol=' + UNIFORM, '--seed=%d' % (run + 1))
        while d.quarkctl('status', '--json')['counters']['queued'] < 500:
            time.sleep(0.1)
        queued = d.quarkctl('status', '--json')['counters']['queued']
        one = d.bench('--user=bob', '--clients=1', '--requests=10', '--think=0.2', '--tol=1e-4', '--seed=%d' % run)
        many.send_signal(signal.SIGINT)
        theirs = json.loads(many.communicate()[0])['latency']['solver']
        mine = one['latency']['queue']
        row(str(run + 1), str(queued), '%.3g / %.3g' % (theirs['mean'], theirs['max']), '%.3g / %.3g' % (mine['mean'], mine['max']))


def single(o, d):
    """What a request takes above the engine's own time where nothing else runs."""
    heading('single request', 'run', 'latency, median, s', 'of it in the solver', 'above it: median / 90 %, ms')
    for name, source, sink in (('noise, no solution', 'z2', 'none'), ('noise, solution fetched', 'z2', 'download'),
                               ('uploaded, solution fetched', 'upload', 'download')):
        for run in range(o.repeat):
            r = d.bench('--clients=1', '--requests=20', '--source=' + source, '--sink=' + sink, '--seed=%d' % (run + 1))['latency']
            above = r['elsewhere']
            row(name, str(run + 1), r['rhs']['p50'], r['solver']['p50'], '%.2g / %.2g' % (1e3 * above['p50'], 1e3 * above['p90']))


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('build', nargs='?')
    p.add_argument('--gauge', default='builtin:weak:8x8x8x16:1')
    p.add_argument('--kappa', type=float, default=0.13)
    p.add_argument('--csw', type=float, default=1.0)
    p.add_argument('--backend', default='cpu')
    p.add_argument('--slots', type=int, default=8)
    p.add_argument('--requests', type=int, default=64, help='right-hand sides of each measurement')
    p.add_argument('--repeat', type=int, default=2)
    p.add_argument('--seconds', type=float, default=20, help='beside the engine alone: of each load, and half as many before')
    p.add_argument('--tol', type=float, default=1e-10, help='beside the engine alone')
    p.add_argument('--source', default='z2', help='as quarkctl bench has it')
    p.add_argument('--threads', default='4,8', metavar='N[,N...]', help='network: of quarkd that carry data')
    p.add_argument('--only', choices=['engine', 'network', 'saturated', 'staggered', 'fairness', 'single'])
    p.add_argument('--quarkd', action='append', default=[], metavar='OPTION', help='more options of quarkd')
    return p.parse_args()


def main():
    o = options()
    with tempfile.TemporaryDirectory() as folder:
        daemons = []
        if o.only in (None, 'engine'):
            beside_engine(o, folder)
        if o.only in (None, 'network'):
            network(o, folder)
        if o.only in ('engine', 'network'):
            return
        try:
            both = o.only in (None, 'saturated', 'staggered')
            daemons = [Daemon(o, folder, b) for b in (('continuous', 'fixed') if both else ('continuous',))]
            s = daemons[0].status
            print('%s, %s, %s, %d slots, %s' % ('x'.join(map(str, s['setup']['dims'])), s['setup']['solver'], s['engine']['device'],
                                                s['engine']['slots'], s['engine']['backend']))
            if both:
                heading('load', 'run', 'continuous, RHS/s', 'fixed, RHS/s', 'ratio', 'ratio by processor time', 'occupancy continuous', 'fixed')
            if o.only in (None, 'saturated'):
                saturated(o, daemons)
            if o.only in (None, 'staggered'):
                staggered(o, daemons)
            if o.only in (None, 'fairness'):
                fairness(o, daemons[0])
            if o.only in (None, 'single'):
                single(o, daemons[0])
        finally:
            for d in daemons:
                d.stop()


main()
