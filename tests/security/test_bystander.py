#!/usr/bin/env python3
"""A solve beside attacks has the same bits as alone: test_bystander.py QUARKD QUARK_ENGINE [REPEATS]

What an attack makes of the time that it takes is printed and not judged; with REPEATS as medians of so many. The attackers have a core
of their own where there are two, and attack another quarkd there as often, so that what they take themselves can be told from what
quarkd gives them.
"""
import contextlib
import glob
import multiprocessing
import os
import random
import select
import socket
import statistics
import sys
import time
import traceback

import tap

try:
    import zmq
    from front_case import Case, field
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

GAUGE, SITES = 'builtin:weak:4x4x8x8:7', 4 * 4 * 8 * 8
DAY = 86400000  # milliseconds
GREETING = b'\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL'.ljust(64, b'\0')


def port_of(endpoint):
    return int(endpoint.rsplit(':', 1)[1])


class Attack:
    """What an attack has at hand: where quarkd is, and what is open. Another process goes through its steps."""

    def __init__(self, how, d):
        self.d = d
        self.ports = port_of(d.endpoint), port_of(d.data_endpoint)
        self.rng = random.Random(how.__name__)
        self.open = []

    def connect(self, port):
        s = socket.create_connection(('127.0.0.1', port), timeout=5)
        s.setblocking(False)
        self.open.append(s)
        return s

    def say(self, s, data):
        """As much as goes; False where the other side has closed."""
        with contextlib.suppress(BlockingIOError):
            try:
                s.send(data)
            except OSError:
                return False
        return True

    def forget(self, s):
        self.open.remove(s)
        s.close()

    def dealer(self, endpoint):
        s = self.d.context.socket(zmq.DEALER)
        s.setsockopt(zmq.LINGER, 0)
        s.connect(endpoint)
        self.open.append(s)
        return s


class Target:
    """What an attacker knows of a quarkd."""
    curve = None

    def __init__(self, d):
        self.endpoint, self.data_endpoint, self.http = d.endpoint, d.data_endpoint, d.http

    def said(self):
        return ''


def go_on(how, target, pipe, count):
    """Until the other side says something: how many steps."""
    attack = Attack(how, target)
    try:
        with contextlib.closing(how(attack)) as steps:
            for _ in steps:
                count.value += 1
                if pipe.poll():
                    return
    finally:
        for s in attack.open:
            s.close()


def attack_when_told(name, cores, pipe, count):
    """A process of its own: what it takes of the interpreter is not the bystander's."""
    os.sched_setaffinity(0, cores)
    context = zmq.Context()
    while target := pipe.recv():
        target.context = context
        try:
            go_on(globals()[name], target, pipe, count)
        except Exception:
            pipe.send(traceback.format_exc())
            return
        pipe.recv()
        pipe.send(None)


class Attacker:
    """A process that attacks within `with attacker.on(daemon):`."""

    def __init__(self, how, cores):
        spawn = multiprocessing.get_context('spawn')
        self.pipe, other = spawn.Pipe()
        self.steps = spawn.Value('Q', lock=False)
        self.process = spawn.Process(target=attack_when_told, args=(how.__name__, cores, other, self.steps), daemon=True)
        self.process.start()

    def until(self, count):
        """Waits for a step behind so many."""
        end = time.monotonic() + 60
        while self.steps.value <= count:
            assert not self.pipe.poll(), self.pipe.recv()
            assert self.process.is_alive() and time.monotonic() < end, 'the attack stands still'
            time.sleep(0.001)

    @contextlib.contextmanager
    def on(self, d):
        before = self.steps.value
        self.pipe.send(Target(d))
        self.until(before)
        yield
        self.pipe.send('enough')
        fault = self.pipe.recv()
        assert fault is None, fault

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join(10)
        self.process.kill()


# ---- attacks: each `yield` is something that was done

def junk(a):
    """Connections that say nothing sensible, one after the other."""
    while True:
        for port in a.ports:
            s = a.connect(port)
            for _ in range(8):
                if not a.say(s, a.rng.randbytes(4096)):
                    break
            a.forget(s)
            yield


def half_handshakes(a):
    """Up to 200 that begin as libzmq does and say no more."""
    while True:
        for port in a.ports:
            s = a.connect(port)
            a.say(s, GREETING[:a.rng.randrange(1, 64)])
            if len(a.open) > 200:
                a.forget(a.open[0])
            yield


def come_and_go(a):
    """Connections that say nothing, and do not wait until quarkd has a place for them."""
    while True:
        for port in a.ports:
            with socket.socket() as s:
                s.setblocking(False)
                s.connect_ex(('127.0.0.1', port))
                select.select([], [s], [], 0.01)
            yield


def posts(a):
    """What a browser would send for a web page."""
    body = a.rng.randbytes(30000)
    head = 'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n' % len(body)
    while True:
        for port in (*a.ports, a.d.http):
            s = a.connect(port)
            a.say(s, head.encode() + body)
            select.select([s], [], [], 0.01)
            a.forget(s)
            yield


def slow_http(a):
    """Requests that come byte by byte."""
    text = b'GET /status.json HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ' + b'x' * 4000
    at = {}
    while True:
        if len(at) < 32:
            at[a.connect(a.d.http)] = 0
        for s, i in list(at.items()):
            at[s] = i + 1
            if not a.say(s, text[i:i + 1]) or at[s] == len(text):
                a.forget(s)
                del at[s]
        yield
        time.sleep(0.001)


def status_flood(a):
    """One who asks and does not read, and one who reads."""
    ask = qk.ClientMessage(status=qk.StatusRequest(activity=True)).SerializeToString()
    deaf, eager = (a.dealer(a.d.endpoint) for _ in range(2))
    while True:
        for s in (deaf, eager):
            with contextlib.suppress(zmq.Again):
                s.send(ask, zmq.DONTWAIT)
        with contextlib.suppress(zmq.Again):
            while True:
                eager.recv(zmq.DONTWAIT)
        yield


def malformed(a):
    """Messages of random bytes, and of a client's with some changed, on both channels."""
    control, data = (a.dealer(e) for e in (a.d.endpoint, a.d.data_endpoint))
    good = qk.ClientMessage(ping=qk.Ping()).SerializeToString() + a.rng.randbytes(20)
    while True:
        for s in (control, data):
            message = bytearray(good if a.rng.random() < 0.5 else a.rng.randbytes(a.rng.randrange(2000)))
            if message:
                message[a.rng.randrange(len(message))] ^= 1 << a.rng.randrange(8)
            with contextlib.suppress(zmq.Again):
                s.send(bytes(message), zmq.DONTWAIT)
            with contextlib.suppress(zmq.Again):
                s.recv(zmq.DONTWAIT)
        yield


def fill_the_queue(a, urgency):
    columns = [qk.Column(seed=i) for i in range(1024)]
    while True:
        with Client(a.d, user='attacker', bind=False) as c:
            try:
                for i in range(200):
                    c.submit(1024, source=qk.SOURCE_Z2, column=columns, sink=qk.SINK_NONE, max_iter=1, expect=None, **urgency(i))
                    while c.receive()[0] not in ('accepted', 'rejected'):
                        continue
                    yield
            finally:
                c.send(goodbye=qk.Goodbye())


def a_full_queue(a):
    """No attack: another user has as much to do, and is in no hurry. What falling deadlines do beyond this is theirs."""
    return fill_the_queue(a, lambda i: {})


def falling_deadlines(a):
    """Another user fills the queue, the most urgent last."""
    return fill_the_queue(a, lambda i: dict(priority=9, deadline_ms=300 * DAY - i * DAY))


ATTACKS = junk, half_handshakes, come_and_go, posts, slow_http, status_flood, malformed, a_full_queue, falling_deadlines


# ---- the bystander

CORES = sorted(os.sched_getaffinity(0))
THEIRS, OURS = set(CORES[:1]), set(CORES[1:] or CORES)


@contextlib.contextmanager
def daemon(case, cores):
    """On these cores alone, with its engine."""
    os.sched_setaffinity(0, cores)
    try:
        with case.daemon('--http', '127.0.0.1:0', '--slots', '8', '--single-rhs-solver', 'no', '--log-level', 'info', engine=case.engine,
                         gauge=GAUGE, env={'OMP_NUM_THREADS': str(len(cores))}) as d:
            os.sched_setaffinity(0, OURS)
            d.http = int(d.log(r'over HTTP on 127\.0\.0\.1:(\d+)')[1])
            yield d
    finally:
        os.sched_setaffinity(0, OURS)


def cpu(d):
    """Seconds of CPU so far: of what answers, and of libzmq's threads."""
    spent, ticks = [0, 0], os.sysconf('SC_CLK_TCK')
    for path in glob.glob('/proc/%d/task/*/stat' % d.process.pid):
        with open(path, encoding='utf-8') as f:
            name, rest = f.read().rsplit(')', 1)
        spent['ZMQ' in name] += sum(map(int, rest.split()[11:13])) / ticks
    return spent


def solve(c, fields):
    """What came back, to the last bit, and the time."""
    begin = time.monotonic()
    answers = c.solve(fields, tol=1e-12)
    assert all(r.status == 0 for r, _ in answers), answers
    return [(r.iterations, r.true_residual, r.norm_x, x.tobytes()) for r, x in answers], time.monotonic() - begin


def test_of(how):
    def beside(case):
        fields, right = [field(SITES) for _ in range(6)], []
        seconds, spent, steps = {w: [] for w in (None, 'other', 'same')}, {None: [], 'same': []}, 0
        with daemon(case, THEIRS) as other, daemon(case, OURS) as d, Attacker(how, THEIRS) as attacker:
            def once(whom):
                nonlocal steps
                with contextlib.ExitStack() as stack:
                    c = stack.enter_context(Client(d, user='bystander'))
                    if whom:
                        stack.enter_context(attacker.on(other if whom == 'other' else d))
                    count, before = attacker.steps.value, cpu(d)
                    got, took = solve(c, fields)
                    if whom:
                        attacker.until(count)
                    if whom == 'same':
                        steps += attacker.steps.value - count
                    if whom in spent:
                        spent[whom].append([b - a for a, b in zip(before, cpu(d))])
                    right.append(got)
                    assert got == right[0]
                    seconds[whom].append(took)
                    c.send(goodbye=qk.Goodbye())

            once(None)
            seconds[None].clear()
            spent[None].clear()
            order = list(seconds)
            for _ in range(case.repeats):
                for whom in order:
                    once(whom)
                order.append(order.pop(0))
            once(None)
            assert d.status().engine.restarts == 0
        alone, control, attacked = (statistics.median(seconds[w]) for w in (None, 'other', 'same'))
        more = [1e6 * (statistics.fmean(x) - statistics.fmean(y)) * case.repeats / steps for x, y in zip(zip(*spent['same']), zip(*spent[None]))]
        print('# alone %.1f ms; while another quarkd is attacked x %.2f, while this one is x %.2f: %.0f steps a ms, quarkd %.1f us of CPU a step, '
              'libzmq in it %.1f' % (1e3 * alone, control / alone, attacked / alone, steps / sum(seconds['same']) / 1e3, *more))
    beside.__name__ = 'a_solve_has_the_same_bits_beside_' + how.__name__
    return beside


class Bystander(Case):
    def __init__(self, binary, engine, repeats='1'):
        super().__init__(binary)
        self.engine, self.repeats = engine, int(repeats)


if __name__ == '__main__':
    for attack in ATTACKS:
        tap.test(test_of(attack))
    tap.run(Bystander(*sys.argv[1:]))
