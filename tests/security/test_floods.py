#!/usr/bin/env python3
"""Who takes as much as can be had: sessions, memory for messages, descriptors: test_floods.py QUARKD"""
import contextlib
import os
import re
import resource
import select
import socket
import sys
import threading
import time

import tap

try:
    import zmq
    import zmtp
    from front_case import Case, check_solves, descriptors, fake
    from front_driver import BIND, BOUND, MIB, STATUS, Client, frame, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

SHARE = 256  # of the sessions that one user may have in any case


# ---- sessions


def open_sessions(daemon, user, n):
    """One after the other; the sessions stay when their connections have gone."""
    for _ in range(n):
        with Client(daemon, user=user, bind=False):
            pass


def resident(daemon):
    """Bytes of its memory."""
    with open('/proc/%d/statm' % daemon.process.pid, encoding='ascii') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGESIZE')


def keep_busy(client):
    """A request whose upload never comes."""
    client.submit(1)
    return client


@tap.test
def one_user_does_not_take_all_sessions(case):
    """Each session has a request, so that none makes room. Whoever has used up the share is told so; others have theirs."""
    with case.daemon('--max-sessions', str(SHARE + 2)) as d:
        for _ in range(SHARE):
            with Client(d, user='greedy', bind=False) as c:
                keep_busy(c)
        assert d.status().counters.sessions == SHARE
        with Client(d, hello=False) as c:
            c.send(hello=qk.Hello(version=1, client_id=c.client_id, user='greedy', program='test'))
            text = c.error('BUSY').text
            assert 'sessions of this user' in text and 'quarter of %d sessions (max-sessions' % (SHARE + 2) in text, text
        with Client(d, user='modest') as first, Client(d, user='modest') as second:
            for c in (first, second):
                keep_busy(c).ping()
            with Client(d, hello=False) as c:  # now all are taken, and none is idle
                c.send(hello=qk.Hello(version=1, client_id=c.client_id, user='late', program='test'))
                assert 'all %d sessions (max-sessions' % (SHARE + 2) in c.error('BUSY').text
        assert d.status().counters.sessions == SHARE + 2


@tap.test
def idle_sessions_give_way(case):
    """To a newcomer: of who has most sessions the one that was silent the longest, and never one with a request."""
    with case.daemon('--max-sessions', '4') as d, Client(d, user='many') as busy, Client(d, user='few') as few:
        keep_busy(busy)
        old, new = Client(d, user='many', bind=False), Client(d, user='many', bind=False)
        with old, new, Client(d, user='newcomer') as newcomer:
            assert d.log('%s: ended to make room' % old.client_id[:4].hex())
            for c in (busy, few, new, newcomer):
                c.ping()
            old.send(ping=qk.Ping())
            old.error('NOT_FOUND')  # on which libquark says HELLO
            old.hello('many')  # and another makes room: of the two who have most, the idle one
            assert not old.welcome.resumed
            assert d.log('%s: ended to make room' % new.client_id[:4].hex())
            for c in (busy, few, newcomer, old):
                c.ping()
            assert d.status().counters.sessions == 4


@tap.test
def who_has_few_sessions_does_not_lose_them(case):
    """Whoever opens one after the other takes its own place again and again."""
    with case.daemon('--max-sessions', '8') as d, Client(d, user='few') as few:
        open_sessions(d, 'many', 50)
        few.ping()
        assert d.status().counters.sessions == 8


@tap.test
def as_many_sessions_as_are_allowed(case):
    """They are found by id and by both connections, however many there are and of whomever."""
    with case.daemon('--max-sessions', '8192') as d, Client(d, user='first') as first:
        open_sessions(d, 'many', 800)
        for i in range(300):
            open_sessions(d, 'user %d' % i, 1)
        assert d.status().counters.sessions == 1101
        check_solves(first)
        with Client(d, first.client_id, user='first') as again:
            assert again.welcome.resumed
            again.request = first.request
            check_solves(again)


# ---- messages


def narrow(client, endpoint):
    """A socket that takes little while nobody reads it."""
    s = client._socket()
    s.set(zmq.RCVHWM, 1)
    s.set(zmq.RCVBUF, 65536)
    s.connect(endpoint)
    return s


@tap.test
def reports_do_not_pile_up_for_who_does_not_read(case):
    """They are left out for it until it reads; others are served, and it, too, afterwards."""
    with case.daemon() as d:
        for i in range(256):
            open_sessions(d, '%064d' % i, 1)
        size = len(d.status(activity=True).SerializeToString())
        assert size > 15000, size
        before = resident(d)
        with Client(d, hello=False) as deaf:
            deaf.control.close()
            deaf.control = narrow(deaf, d.endpoint)
            deaf.hello('deaf')
            deaf.submit(600, source=qk.SOURCE_Z2, column=[qk.Column(seed=1 << 63)] * 600, sink=qk.SINK_NONE)
            deaf.results(600)
            for _ in range(6000):
                deaf.send(status=qk.StatusRequest(activity=True))
            for _ in range(100):  # of which some fit where those do not
                deaf.send(status=qk.StatusRequest())
            deaf.send(attach=qk.Attach(request=1))  # longer than these
            deaf.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, expect=None)
            d.status_when(lambda s: s.counters.requests == 2)  # all that came before was served, or left out
            assert is_sanitized(d) or resident(d) - before < 32 * MIB, (before, resident(d))
            accepted = deaf.expect('accepted', skip=('status', 'progress'))  # before what is left out
            assert accepted.request == 2
            deaf.ping()
            heard = {name: body for name, body in deaf.later}
            end = time.monotonic() + 30
            while not {'status', 'attached', 'result'} <= set(heard):  # once it has read for a second; the running request tells its progress
                assert time.monotonic() < end, 'it hears only of ' + ', '.join(heard)
                deaf.send(status=qk.StatusRequest(activity=True))
                if deaf.control.poll(100):
                    name, body = deaf.receive_new()
                    heard[name] = body
            assert heard['status'].counters.requests == 2
            assert heard['attached'].accepted.request == heard['result'].request == 1


def is_sanitized(daemon):
    with open('/proc/%d/maps' % daemon.process.pid, encoding='ascii', errors='replace') as f:
        return re.search(r'lib[at]san\.so', f.read()) is not None


def share_of_a_core(daemon):
    begin, since = seconds_of(daemon), time.monotonic()
    time.sleep(2)
    return (seconds_of(daemon) - begin) / (time.monotonic() - since)


@contextlib.contextmanager
def deaf(daemon):
    """A client that asks for two solutions and does not read them."""
    with Client(daemon, hello=False) as c:
        c.data.close()
        c.data = narrow(c, daemon.data_endpoint)
        c.hello('deaf')
        c.bind()
        c.submit(2, source=qk.SOURCE_Z2)
        for r in c.results(2):
            c.send(grant=qk.Grant(request=1, rhs=r.rhs, until=r.bytes))
        c.ping()
        yield c


@tap.test
def downloads_that_nobody_reads_cost_nothing(case):
    """What does not fit is not copied again and again."""
    with case.daemon('--max-memory', '1G', dims='16x16x16x16') as d, contextlib.ExitStack() as stack:
        if is_sanitized(d):
            raise tap.Skip('a sanitizer has costs of its own')
        for _ in range(12):
            stack.enter_context(deaf(d))
        sent = d.status_when(lambda s: s.counters.bytes_out > 0).counters.bytes_out - 1
        while d.status().counters.bytes_out > sent:  # until it is full
            sent = d.status().counters.bytes_out
            time.sleep(0.2)
        used = [share_of_a_core(d)]
        while used[-1] > 0.02 and len(used) < 6:  # what else goes on makes it more now and then, and never less
            used.append(share_of_a_core(d))
        assert used[-1] <= 0.02, used


def bound(daemon):
    """A session by its two peers."""
    control, data = zmtp.Peer(daemon.endpoint), zmtp.Peer(daemon.data_endpoint)
    client_id = os.urandom(16)
    control.greet()
    control.say(qk.ClientMessage(hello=qk.Hello(version=1, client_id=client_id, user='many')).SerializeToString())
    token = qk.ServerMessage.FromString(control.receive()).welcome.token
    data.greet()
    data.say(frame(BIND, payload=client_id + token, field_bytes=32))
    assert data.receive()[6] == BOUND
    return control, data


@tap.test
def a_message_of_very_many_parts_ends_its_connection(case):
    """And its session; what comes behind it is lost, and all others are heard."""
    more = zmtp.frame(b'', zmtp.MORE)
    with case.daemon() as d, Client(d) as other:
        for door in range(2):
            pair = bound(d)
            with pair[0], pair[1]:
                pair[door].send(more * 300000 + zmtp.frame(b''))
                other.ping()
                assert b'PING' not in pair[door].ended(), 'it is still wanted after 5 s'
        check_solves(other)
        for parts in (2, 4000):  # a mistake, of which it hears
            with bound(d)[0] as p:
                p.send(more * parts + zmtp.frame(b''))
                assert qk.ServerMessage.FromString(p.receive()).error.status == STATUS['BAD_PROTOCOL']
        assert d.status_when(lambda s: s.counters.sessions == 1)


def ends_while_it_sends(peer, data, limit):
    """Whether the connection ends before so many bytes; who has been hung up on may have no room to send any more, but reads the end."""
    s, sent = peer.socket, 0
    s.setblocking(False)
    with contextlib.suppress(ConnectionError):
        while sent < limit:
            readable, writable, _ = select.select([s], [s], [], zmtp.TIMEOUT)
            assert readable or writable, 'nobody reads'
            if readable and not s.recv(65536):
                return True
            if writable:
                sent += s.send(data[sent % len(data):])
        return False
    return True


@tap.test
def a_message_without_an_end_ends_its_connection(case):
    """libzmq keeps the parts of a message until the last one comes, however many."""
    parts = zmtp.frame(bytes(1000), zmtp.MORE) * 1000
    with case.daemon() as d, Client(d) as other:
        for endpoint in (d.endpoint, d.data_endpoint):
            with zmtp.Peer(endpoint) as p:
                p.greet()
                assert ends_while_it_sends(p, parts, 1024 * MIB), 'it takes all of it'
            other.ping()
        check_solves(other)


# ---- connections


def seconds_of(daemon):
    """Processor time."""
    with open('/proc/%d/stat' % daemon.process.pid, encoding='ascii') as f:
        ticks = f.read().rpartition(')')[2].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf('SC_CLK_TCK')


def get_in(daemon):
    """A client that tries until it has a session with both connections, as libquark does."""
    for _ in range(100):
        client = Client(daemon, hello=False)
        client.send(hello=qk.Hello(version=1, client_id=client.client_id, user='late', program='test'))
        if client.control.poll(500):
            client.welcome = client.expect('welcome')
            client.data.send(frame(BIND, payload=client.client_id + client.welcome.token, field_bytes=32))
            if client.data.poll(500):
                assert client.chunk()['kind'] == BOUND
                return client
        client.close()
    raise TimeoutError('no session')


@tap.test
def idle_connections_leave_descriptors_for_others(case):
    """Some have said nothing at all, some have greeted as ZeroMQ does and say nothing more. The daemon does not try in vain to take them all."""
    with case.daemon() as d, Client(d) as first:
        check_solves(first)
        limit = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (descriptors(d) + 24, limit[1]))
        host, port = d.endpoint.rpartition('/')[2].split(':')
        with contextlib.ExitStack() as crowd:
            for _ in range(60):
                crowd.enter_context(socket.create_connection((host, int(port)), timeout=20))
                idle = crowd.enter_context(d.context.socket(zmq.DEALER))
                idle.connect(d.endpoint)
            assert d.log('connections closed')  # within a second it knows what it may have now
            first.ping()
            began, before = time.monotonic(), seconds_of(d)
            time.sleep(3)
            spent = (seconds_of(d) - before) / (time.monotonic() - began)
            assert spent < 0.25, spent
            with get_in(d) as late:
                check_solves(late)
                check_solves(first)


@tap.test
def who_comes_gets_in_where_others_are_silent(case):
    """At the first attempt, whichever descriptors the hundreds have that sit there."""
    crowd, newcomers = 850, 60
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < crowd + newcomers + 100:
        raise tap.Skip('no more than %d descriptors' % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with case.daemon() as d, Client(d) as first, contextlib.ExitStack() as stack:
            open_before = descriptors(d)
            for n in range(1, crowd + 1):
                stack.enter_context(socket.create_connection(zmtp.address(d.endpoint), timeout=20))
                while n % 50 == 0 and descriptors(d) < open_before + n:  # or the queue of the listening socket is full
                    first.ping()
            resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (open_before + crowd + 40, hard))
            assert d.log('connections closed')
            for _ in range(newcomers):
                p = stack.enter_context(zmtp.Peer(d.endpoint))
                p.greet()
                p.say(qk.ClientMessage(status=qk.StatusRequest()).SerializeToString())
                assert p.receive()
            first.ping()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def again_and_again(count, action):
    """In threads of their own, until the end of the block; what ends their connections is no matter."""
    over = threading.Event()

    def work():
        while not over.is_set():
            with contextlib.suppress(OSError):
                action(over)
    threads = [threading.Thread(target=work) for _ in range(count)]
    for t in threads:
        t.start()
    try:
        yield
    finally:
        over.set()
        for t in threads:
            t.join()


@tap.test
def newcomers_get_in_while_others_come_and_go(case):
    """To a daemon that has messages to read all the time: each of its turns takes a while, and in each some connection begins or ends."""
    def come_and_go(over):
        """Without waiting: where the queue of the listening socket is full the system would have it wait for a second."""
        with contextlib.closing(socket.socket()) as s:
            s.setblocking(False)
            s.connect_ex(zmtp.address(d.endpoint))
            over.wait(0.0005)
            came.append(1)

    came = []
    submit = dict(request=1, nrhs=1, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_Z2, sink=qk.SINK_NONE)
    cancel = qk.ClientMessage(cancel=qk.Cancel(request=1))  # of a request that is over: nothing to do
    slow = qk.ClientMessage(submit=qk.Submit(**submit, column=[qk.Column(seed=1)] * 1024))  # to take apart; but what comes last is meant
    nothing = b''.join([zmtp.frame(slow.SerializeToString() + cancel.SerializeToString())] * 100)

    def talk(over):
        with zmtp.Peer(d.endpoint) as p:
            p.greet()
            p.say(qk.ClientMessage(hello=qk.Hello(version=1, client_id=os.urandom(16), user='busy')).SerializeToString())
            p.receive()
            p.say(qk.ClientMessage(submit=qk.Submit(**submit, column=[qk.Column(seed=1)])).SerializeToString())
            while not over.is_set():
                p.send(nothing)

    with case.daemon() as d:
        with again_and_again(1, talk), again_and_again(2, come_and_go):
            before = len(came)
            for _ in range(10):
                with Client(d) as late:
                    late.ping()
            assert len(came) - before < 10000, '%d were faster' % (len(came) - before)


@tap.test
def want_of_descriptors_ends_no_right_hand_side(case):
    """Their solutions have no objects while that lasts; each turn of the daemon, of which pings make many, tries one of them at most."""
    with case.daemon('--slots', '8') as d, Client(d) as c:
        check_solves(c)
        limit = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (3, limit[1]))
        c.submit(64, source=qk.SOURCE_Z2)
        assert d.log('rhs 0 is tried again')
        for _ in range(50):
            c.ping()
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, limit)
        assert [r.status for r in c.results(64)] == [0] * 64


# ---- the processor


class Flood(threading.Thread):
    """Sends one message again and again, by connections of its own that take what comes back."""

    def __init__(self, daemon, message, endpoint=None, peers=4):
        super().__init__(daemon=True)
        self.context, self.message, self.over = zmq.Context(), message, threading.Event()
        self.sockets = [self.context.socket(zmq.DEALER) for _ in range(peers)]
        for s in self.sockets:
            s.setsockopt(zmq.LINGER, 0)
            s.connect(endpoint or daemon.endpoint)
        self.answers = 0

    def run(self):
        while not self.over.is_set():
            for s in self.sockets:
                with contextlib.suppress(zmq.Again):
                    for _ in range(8):
                        s.send(self.message, zmq.DONTWAIT)
                with contextlib.suppress(zmq.Again):
                    while True:
                        s.recv(zmq.DONTWAIT)
                        self.answers += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.context.destroy(linger=0)


def main_thread(daemon):
    """Seconds of processor so far of the thread that answers, and how often it has waited for something."""
    task = '/proc/%d/task/%d/' % (daemon.process.pid, daemon.process.pid)
    with open(task + 'stat', encoding='utf-8') as f:
        ticks = sum(map(int, f.read().rsplit(')', 1)[1].split()[11:13]))
    with open(task + 'status', encoding='utf-8') as f:
        return ticks / os.sysconf('SC_CLK_TCK'), int(re.search(r'\nvoluntary_ctxt_switches:\s*(\d+)', f.read())[1])


def taken_by(daemon, flood, seconds=3):
    """The share of a processor that answering it takes."""
    with flood:
        begin, before = time.monotonic(), main_thread(daemon)[0]
        flood.over.wait(seconds)
        return (main_thread(daemon)[0] - before) / (time.monotonic() - begin)


@tap.test
def talk_leaves_the_processor_to_engines(case):
    """While a right-hand side is in its slot, strangers who ask for the status or send data of no session get a 16th of a processor, and what
    turning the loop takes beside; without a limit they get all that the machine has."""
    ask = qk.ClientMessage(status=qk.StatusRequest(activity=True)).SerializeToString()
    with case.daemon('--log-level', 'info') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        for name, flood in (('status', Flood(d, ask)),
                            ('data', Flood(d, frame(BIND, payload=bytes(32), field_bytes=32), d.data_endpoint))):
            share = taken_by(d, flood)
            print('# %s: %.3f of a processor' % (name, share))
            assert share < 0.3, name
        c.ping()


@tap.test
def connections_do_not_turn_the_loop_each(case):
    """Those that come and go again and again are looked at together: not more often than a thousand times a second, and a few for
    everything else."""
    with case.daemon('--log-level', 'info') as d:
        host, port = d.endpoint[len('tcp://'):].rsplit(':', 1)
        begin, before, n = time.monotonic(), main_thread(d)[1], 0
        while time.monotonic() < begin + 2:
            with socket.socket() as s:
                s.setblocking(False)
                s.connect_ex((host, int(port)))  # it does not wait until quarkd has a place for it
                n += select.select([], [s], [], 0.01)[1] == [s]
        waits, seconds = main_thread(d)[1] - before, time.monotonic() - begin
        print('# %d connections, %d waits in %.1f s' % (n, waits, seconds))
        assert waits < 1300 * seconds + 100


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
