#!/usr/bin/env python3
"""Many clients and many mishaps: everything that was accepted is answered, and answered rightly.

    soak.py QUARKD QUARKCTL QUARK_GAUGE [--clients 32] [--seconds 600] [--dims 8x8x8x16] [--seed N]

Clients are quarkctl processes: they solve for uploaded fields and point sources of mixed number and tolerance, with the daemon's own
setup or one of another mass, which come and go: somebody loads and drops them. Meanwhile, at random times, clients are killed,
interrupted, or stopped for a while (slow readers), engines are killed, the daemon is killed and started again on its state folder,
where it takes over the engines that it finds, and strangers send rubbish to both ports. Whatever a client reports as solved is judged
by tests/ref: the true residual of every right-hand side, from the file with the source and the file with the solution. A client
that nobody killed must succeed, but where its setup is dropped; where a right-hand side was in two engines that were lost it may be
told to try again, and does. In the end no memory, request, session or engine may be left. The seed decides what happens and in which
order; when depends on the machine.
"""
import argparse
import glob
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'ref'))
try:
    import h5py
    import numpy as np
    import zmq
    import ref_dirac as ref
except ImportError as missing:
    print('1..0 # SKIP %s' % missing)
    sys.exit(0)

KAPPA, CSW = {'main': 0.12, 'heavy': 0.115, 'heavier': 0.11}, 1.3  # of setups
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)
DATA, AGAIN = 65, 75
PATIENCE = 120  # seconds for any single step


def free_ports():
    """Two ports one after the other."""
    while True:
        with socket.socket() as a, socket.socket() as b:
            a.bind(('127.0.0.1', 0))
            port = a.getsockname()[1]
            try:
                b.bind(('127.0.0.1', port + 1))
                return port
            except OSError:
                continue


class Service:
    """One daemon after the other on the same state folder and ports."""

    def __init__(self, options, folder):
        self.port = free_ports()
        self.endpoint = 'tcp://127.0.0.1:%d' % self.port
        self.quarkctl = options.quarkctl
        self.command = [options.quarkd, '--gauge', os.path.join(folder, 'weak.lime'), '--kappa', str(KAPPA['main']), '--csw', str(CSW),
                        '--backend', 'cpu', '--listen', self.endpoint, '--state', os.path.join(folder, 'state'), '--lease', '20']
        self.log = open(os.path.join(folder, 'quarkd.log'), 'w', encoding='utf-8')
        self.run = os.path.join(folder, 'run')  # of private folders
        os.mkdir(self.run, 0o700)
        self.environment = dict(os.environ, OMP_WAIT_POLICY='passive', XDG_RUNTIME_DIR=self.run)
        self.resident = []
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=self.log, env=self.environment)

    def ctl(self, *args):
        return subprocess.run([self.quarkctl, *args, '--endpoint', self.endpoint], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)

    def status(self, setup='main'):
        """As a dict; None where nobody answers just now, or there is no such setup."""
        done = self.ctl('status', '--any', '--json', '--setup', setup)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            s = self.status()
            if s and condition(s):
                return s
            time.sleep(0.2)  # between two looks, not for something to happen
        raise AssertionError('%s: never\n%s' % (what, s))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def kill_engine(self, setup):
        s = self.status(setup)
        if s and s['engine'].get('pid'):
            try:
                os.kill(s['engine']['pid'], signal.SIGKILL)
            except ProcessLookupError:
                pass

    def adoptions(self):
        with open(self.log.name, encoding='utf-8') as f:
            return sum('engine adopted' in line for line in f)

    def measure(self):
        """Resident bytes of the daemon."""
        try:
            with open('/proc/%d/statm' % self.process.pid, encoding='ascii') as f:
                self.resident.append(int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE'))
        except (OSError, IndexError):
            pass

    def stop(self):
        self.process.terminate()
        return self.process.wait(PATIENCE)


class Lab:
    """What all clients share: the operator that judges, the counts, the end."""

    def __init__(self, options, folder):
        self.folder, self.options = folder, options
        path = os.path.join(folder, 'weak.lime')
        subprocess.run([options.quark_gauge, 'convert', 'builtin:weak:%s:1' % options.dims, path], check=True,
                       stdout=subprocess.DEVNULL)
        links, _ = ref.load_any(path)
        self.op = {name: ref.WilsonClover(links, 1 / (2 * kappa) - 4, CSW) for name, kappa in KAPPA.items()}
        self.dims = [int(n) for n in options.dims.split('x')]
        self.lock, self.over = threading.Lock(), threading.Event()
        self.count = dict(requests=0, rhs=0, rhs_of_others=0, killed=0, interrupted=0, again=0, dropped_under=0, loads=0, drops=0)
        self.loaded, self.changes = {'main'}, dict.fromkeys(KAPPA, 0)
        self.worst = 0.0
        self.faults = []

    def add(self, **more):
        with self.lock:
            for key, n in more.items():
                self.count[key] += n

    def change(self, name, loaded):
        """The setup of that name comes or goes; loaded: those that requests can be for."""
        with self.lock:
            self.loaded = loaded
            self.changes[name] += 1

    def fault(self, text):
        with self.lock:
            self.faults.append(text)
        self.over.set()

    def judge(self, name, setup, x, b, tol):
        r = np.linalg.norm(b - self.op[setup].apply(x)) / np.linalg.norm(b)
        with self.lock:
            self.worst = max(self.worst, r / tol)
        if not r <= tol:
            self.fault('%s: residual %g where %g was asked for' % (name, r, tol))


class Curator(threading.Thread):
    """Loads setups of other masses and drops them."""

    def __init__(self, lab, service):
        super().__init__(name='curator')
        self.lab, self.service = lab, service
        self.rng = random.Random('%d/setups' % lab.options.seed)

    def run(self):
        try:
            while not self.lab.over.wait(self.rng.uniform(0.5, 4)):
                self.change(self.rng.choice([name for name in KAPPA if name != 'main']), self.rng.random() < 0.5)
        except Exception as e:
            self.lab.fault('%s: %r' % (self.name, e))

    def change(self, name, now):
        """It is there or not, whatever becomes of the command: the daemon may be killed under it."""
        drops = name in self.lab.loaded
        self.lab.change(name, self.lab.loaded - {name})
        if drops:
            done = self.service.ctl('drop', name, *['--now'] * now)
        else:
            done = self.service.ctl('load', name, '--kappa', str(KAPPA[name]))
        self.lab.add(**{'drops' if drops else 'loads': done.returncode == 0})
        s = self.service.wait(lambda s: True, 'the daemon tells of its setups')
        self.lab.change(name, {t['name'] for t in s['setups'] if t['state'] in ('loading', 'ready')})


class Worker(threading.Thread):
    """A user who runs one quarkctl after the other."""

    def __init__(self, lab, service, number):
        super().__init__(name='client %d' % number)
        self.lab, self.service = lab, service
        self.rng = random.Random('%d/%d' % (lab.options.seed, number))
        self.numbers = np.random.default_rng(lab.options.seed * 1000 + number)
        self.input, self.output = (os.path.join(lab.folder, '%s%d.h5' % (kind, number)) for kind in ('b', 'x'))
        self.process, self.doom = None, None

    def run(self):
        try:
            while not self.lab.over.is_set():
                self.request()
        except Exception as e:  # a thread that dies must not look like one that is done
            self.lab.fault('%s: %r' % (self.name, e))

    def request(self):
        tol, setup = self.rng.choice(TOLERANCES), self.rng.choice(('main', *KAPPA))
        changes, setup = self.lab.changes[setup], setup if setup in self.lab.loaded else 'main'
        if self.rng.random() < 0.25:
            site = [self.rng.randrange(n) for n in self.lab.dims]
            work = ['propagator', '--source', 'point:%d,%d,%d,%d' % tuple(site)]
            b = self.point(site)
        else:
            b = self.uploads(self.rng.choice((1, 1, 2, 3, 5)))
            with h5py.File(self.input, 'w') as f:
                f['field'] = b
            work = ['solve', '--in', self.input]
        code = AGAIN
        while code == AGAIN and not self.doom:
            code, err = self.quarkctl(*work, '--tol', repr(tol), '--priority', str(self.rng.randrange(10)), '--setup', setup)
            self.lab.add(again=code == AGAIN and not self.doom)
        if self.doom:
            self.lab.add(**{self.doom: 1})
        elif code == DATA and setup != 'main' and self.lab.changes[setup] != changes:
            self.lab.add(dropped_under=1)
        elif code != 0:
            self.lab.fault('%s: %s with %s left with %d: %s' % (self.name, ' '.join(work), setup, code, err))
        else:
            self.check(setup, b, tol)
        self.doom = None

    def quarkctl(self, *args):
        command = [self.service.quarkctl, *args, '--out', self.output, '--endpoint', self.service.endpoint]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, err = self.process.communicate()
        return self.process.returncode, err.strip()

    def uploads(self, n):
        shape = (n,) + tuple(reversed(self.lab.dims)) + (4, 3)
        return self.numbers.standard_normal(shape + (2,)).view(complex)[..., 0]

    def point(self, site):
        b = np.zeros((12,) + tuple(reversed(self.lab.dims)) + (4, 3), complex)
        for k in range(12):
            b[(k,) + tuple(reversed(site)) + (k // 3, k % 3)] = 1
        return b

    def check(self, setup, b, tol):
        with h5py.File(self.output, 'r') as f:
            x = f['field'][...]
        if x.shape != b.shape:
            self.lab.fault('%s: %s solutions for %s' % (self.name, x.shape, b.shape))
        for i, (one, source) in enumerate(zip(x, b)):
            self.lab.judge('%s, %s, rhs %d' % (self.name, setup, i), setup, one, source, tol)
        self.lab.add(requests=1, rhs=len(b), rhs_of_others=0 if setup == 'main' else len(b))
        os.unlink(self.output)

    def strike(self, sig, doom):
        p = self.process
        if p and p.poll() is None and not self.doom:
            self.doom = doom
            p.send_signal(sig)

    def stall(self, seconds):
        """A reader that is slow."""
        p = self.process
        if not p or p.poll() is not None:
            return
        p.send_signal(signal.SIGSTOP)
        threading.Timer(seconds, lambda: p.poll() is None and p.send_signal(signal.SIGCONT)).start()


class Stranger:
    """Sends what is no message, or one that lies, to both ports."""

    def __init__(self, port, rng):
        self.port, self.rng, self.context = port, rng, zmq.Context()

    def visit(self):
        for port in (self.port, self.port + 1):
            s = self.context.socket(zmq.DEALER)
            s.setsockopt(zmq.LINGER, 100)
            s.connect('tcp://127.0.0.1:%d' % port)
            for _ in range(self.rng.randrange(1, 6)):
                s.send(self.rng.randbytes(self.rng.choice((0, 1, 63, 64, 65, 1000, 70000, 2000000))))
            s.close()
        with socket.create_connection(('127.0.0.1', self.port)) as raw:
            raw.sendall(self.rng.randbytes(200))


def mishaps(lab, service, workers, counts):
    """Until the time is over, one mishap every second or so."""
    rng = random.Random(lab.options.seed)
    stranger = Stranger(service.port, rng)
    kinds = ['kill', 'interrupt', 'stall', 'stranger', 'engine', 'daemon']
    weights = [6, 4, 6, 6, 2, 3]
    end = time.monotonic() + lab.options.seconds
    while time.monotonic() < end and not lab.over.is_set():
        lab.over.wait(rng.uniform(0.5, 1.5))
        what, worker = rng.choices(kinds, weights)[0], rng.choice(workers)
        counts[what] = counts.get(what, 0) + 1
        if what == 'kill':
            worker.strike(signal.SIGKILL, 'killed')
        elif what == 'interrupt':
            worker.strike(signal.SIGINT, 'interrupted')
        elif what == 'stall':
            worker.stall(rng.uniform(1, 4))
        elif what == 'engine':
            service.kill_engine(rng.choice(list(KAPPA)))
        elif what == 'daemon':
            service.kill()
        else:
            try:
                stranger.visit()
            except OSError:
                pass  # there is no daemon at the moment
        service.measure()
        if lab.options.verbose:
            print('# %6.1f s  %-9s %s' % (lab.options.seconds - (end - time.monotonic()), what, lab.count), flush=True)
    lab.over.set()


def table(lab, service, counts, seconds):
    c = lab.count
    rows = [('seed', lab.options.seed), ('seconds', '%.0f' % seconds), ('clients', lab.options.clients),
            ('requests judged', c['requests']), ('right-hand sides judged', c['rhs']),
            ('RHS a second', '%.1f' % (c['rhs'] / seconds)),
            ('largest residual / tolerance', '%.3f' % lab.worst),
            ('clients killed, interrupted', '%d, %d' % (c['killed'], c['interrupted'])),
            ('told to try again', c['again']), ('engines adopted', service.adoptions()),
            ('setups loaded, dropped', '%d, %d' % (c['loads'], c['drops'])),
            ('right-hand sides of these', c['rhs_of_others']), ('dropped under a client', c['dropped_under'])]
    rows += [('mishaps: ' + k, n) for k, n in sorted(counts.items())]
    if service.resident:
        rows.append(('resident MB of quarkd: least, most', '%.1f, %.1f' % (min(service.resident) / 1e6, max(service.resident) / 1e6)))
    for name, value in rows:
        print('# %-36s %s' % (name, value))


def check_end(lab, service, state):
    """Nobody is there any more: nothing may be left."""
    service.wait(lambda s: s['counters']['sessions'] == 1 and s['counters']['requests'] == 0, 'no session is left but that of who asks')
    s = service.wait(lambda s: s['memory']['used'] == 0, 'all memory is back')
    if max(service.resident, default=0) > 200e6:
        lab.fault('quarkd grew to %d bytes' % max(service.resident))
    code = service.stop()
    if code != 0:
        lab.fault('quarkd left with %d' % code)
    left = [n for n in glob.glob('/dev/shm/quarkd-*') if re.search(r'quarkd-%d-' % service.process.pid, n)]
    left += glob.glob(os.path.join(state, 'spool', '*')) + glob.glob(os.path.join(service.run, '*'))
    if left:
        lab.fault('left behind: %s' % left)
    return s


def soak(options):
    """Runs it all; returns the list of faults."""
    with tempfile.TemporaryDirectory(prefix='qk-soak-') as folder:
        lab, counts = Lab(options, folder), {}
        service = Service(options, folder)
        begun = time.monotonic()
        try:
            service.wait(lambda s: s['ready'], 'the daemon is ready')
            workers, curator = [Worker(lab, service, n) for n in range(options.clients)], Curator(lab, service)
            for w in (*workers, curator):
                w.start()
            mishaps(lab, service, workers, counts)
            for w in (*workers, curator):
                w.join(PATIENCE * 2)
                if w.is_alive():
                    lab.fault('%s hangs' % w.name)
            table(lab, service, counts, time.monotonic() - begun)
            check_end(lab, service, os.path.join(folder, 'state'))
        except (AssertionError, subprocess.SubprocessError) as e:
            lab.fault(str(e))
        finally:
            for w in threading.enumerate():
                if isinstance(w, Worker) and w.process and w.process.poll() is None:
                    w.process.kill()
            if service.process.poll() is None:
                service.process.kill()
                service.process.wait()
            service.log.close()
            if lab.faults:
                with open(service.log.name, encoding='utf-8') as f:
                    print(''.join('# quarkd: ' + line for line in f.readlines()[-60:]), end='')
        for path in glob.glob('/dev/shm/quarkd-s*'):
            if lab.faults:
                os.unlink(path)
        return lab.faults


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ('quarkd', 'quarkctl', 'quark_gauge'):
        p.add_argument(name)
    p.add_argument('--clients', type=int, default=32)
    p.add_argument('--seconds', type=float, default=600)
    p.add_argument('--dims', default='8x8x8x16')
    p.add_argument('--seed', type=int, default=random.SystemRandom().randrange(10**6))
    p.add_argument('--verbose', action='store_true', help='a line for each mishap')
    return p.parse_args(argv)


def main():
    options = parse(sys.argv[1:])
    print('1..1\n# seed %d' % options.seed, flush=True)
    faults = soak(options)
    for text in faults:
        print('# ' + text.replace('\n', '\n# '))
    print('%s 1 - everything that was accepted was answered' % ('not ok' if faults else 'ok'))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
