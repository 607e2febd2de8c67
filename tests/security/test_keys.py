#!/usr/bin/env python3
"""Peers with keys that want more than their keys allow, and folders of keys with trouble: test_keys.py QUARKD QUARKCTL"""
import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import tap

try:
    import zmq
    import zmq.utils.monitor
    from front_case import Case, check_solves, descriptors, fake, field, once_more
    from front_driver import STATUS, TIMEOUT, Client, qk
    from front_keys import end_of_handshake, guarded, refused, write
    from front_local import Local
    from test_peers import claims, foreseen
    tap.tests.clear()  # theirs
except (ImportError, OSError) as e:
    tap.skip_all(str(e))
if not zmq.has('curve'):
    tap.skip_all('this libzmq was built without CURVE')

IN_OPEN, IN_CLOSE_NOWRITE = 0x20, 0x10
PAUSE = 0.02  # seconds between questions
HELD = dict(source=qk.SOURCE_Z2, max_iter=fake.HOLD)


def heir(d, curve, routing_id, **message):
    """A peer with that key and the routing id of a connection that has ended, and the answer to its first message: tries until the daemon
    has noticed the end."""
    for _ in range(int(TIMEOUT / 0.3)):
        c = Client(d, hello=False, curve=curve, routing_id=routing_id)
        c.send(**message)
        if c.control.poll(300):
            return c, c.receive()
        c.close()
    raise TimeoutError('the routing id never became free')


@contextlib.contextmanager
def victim(d, curve):
    """Its connection has broken; what it has goes on: request 1 is held, half of request 2 is there and solved."""
    b = [field(), field()]
    c = Client(d, curve=curve, routing_id=b'victim')
    c.submit(1, **HELD)
    c.upload(c.submit(2), b[:1])
    c.expect('result')
    c.close()
    yield
    with Client(d, client_id=c.client_id, curve=curve) as again:
        assert again.welcome.resumed
        once_more(again, 1, 1, **HELD)
        repeated = once_more(again, 2, 2)
        assert (again.fetch(again.expect('result')) == 2 * b[0]).all()
        again.upload(repeated, b, begin=repeated.upload_next)
        assert (again.fetch(again.expect('result')) == 2 * b[1]).all()


def knock(d, endpoint, curve, routing_id):
    """A socket that is connected, and says nothing."""
    s = d.context.socket(zmq.DEALER)
    s.linger = 0
    s.curve_serverkey, s.curve_publickey, s.curve_secretkey = curve
    s.setsockopt(zmq.ROUTING_ID, routing_id)
    monitor = s.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED, addr='inproc://' + os.urandom(8).hex())
    s.connect(endpoint)
    assert monitor.poll(int(1e3 * TIMEOUT)), 'it does not get in'
    s.disable_monitor()
    return s


# ---- others' connections


@tap.test
def a_message_on_anothers_connection_ends_nothing(case):
    """Of a key of any role, on the routing id of a connection that has broken."""
    with guarded(case) as (d, keys):
        ada = keys.add('ada')
        for role in ('read', 'submit', 'operate'):
            eve = keys.add('eve-' + role, role)
            for body in (dict(ping=qk.Ping()), dict(goodbye=qk.Goodbye()), dict(cancel=qk.Cancel(request=1))):
                with victim(d, ada):
                    thief, (name, e) = heir(d, eve, b'victim', **body)
                    assert name == 'error' and e.status in (STATUS['NOT_FOUND'], STATUS['DENIED']), (name, e)
                    thief.control.send(b'junk')
                    assert 'cannot be read' in thief.error('BAD_PROTOCOL').text
                    thief.close()


@tap.test
def a_reader_hears_nothing_of_a_broken_connection(case):
    """The routing ids that come first where nobody seeds rand(), each claimed by a key that may only look; it says nothing."""
    with guarded(case) as (d, keys), Client(d, hello=False) as look:
        ada, eve = keys.add('ada'), keys.add('eve', 'read')
        c = Client(d, curve=ada)
        accepted = c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
        c.send(grant=qk.Grant(request=1, rhs=0, until=accepted.field_bytes))
        pid = d.status_when(lambda s: s.counters.running == 1).engine.pid
        before = descriptors(d)
        c.close()
        while descriptors(d) > before - 2:
            look.status()
        with contextlib.ExitStack() as stack:
            thieves = [stack.enter_context(knock(d, endpoint, eve, routing_id)) for endpoint in (d.endpoint, d.data_endpoint)
                       for begin in foreseen(3) for routing_id in claims(begin, 6)]
            os.kill(pid, signal.SIGKILL)
            d.status_when(lambda s: s.counters.converged == 1)
            with Client(d, client_id=c.client_id, curve=ada) as again:
                once_more(again, 1, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
                result = again.expect('result')
                assert result.status == 0 and again.fetch(result).nbytes == result.bytes
            assert not any(t.poll(0) for t in thieves), 'a reader hears of the work of another user'


# ---- keys that come and go


class KeyFile:
    """Of ada."""

    def __init__(self, keys):
        self.folder, self.path, self.hidden = keys.folder, os.path.join(keys.folder, 'ada'), os.path.join(keys.folder, '.ada')  # no client's
        with open(self.path, encoding='utf-8') as f:
            self.text = f.read()

    def rewrite(self, text):
        with open(self.path, 'w', encoding='utf-8') as f:  # where it is
            f.write(text)


# What lets her in no more for a moment, and what mends it.
TROUBLES = {
    'a_folder_that_others_may_write_to': (lambda k: os.chmod(k.folder, 0o775), lambda k: os.chmod(k.folder, 0o755)),
    'a_folder_that_is_away': (lambda k: os.rename(k.folder, k.folder + '~'), lambda k: os.rename(k.folder + '~', k.folder)),
    'half_a_key_file': (lambda k: k.rewrite(k.text[:30]), lambda k: k.rewrite(k.text)),
    'a_key_file_that_is_away': (lambda k: os.rename(k.path, k.hidden), lambda k: os.rename(k.hidden, k.path)),
    'a_key_of_another_user': (lambda k: k.rewrite(k.text.replace('user = ada', 'user = bob')), lambda k: k.rewrite(k.text)),
}


def test_of(trouble, begin, end):
    def loses_no_work(case):
        """What was accepted waits for its client, who says HELLO again."""
        with guarded(case) as (d, keys):
            ada, b = keys.add('ada'), field()
            key_file = KeyFile(keys)
            with Client(d, curve=ada) as c:
                c.submit(1, **HELD)
                c.upload(c.submit(1), [b])
                c.expect('result')
                begin(key_file)
                e = until_refused(c)
                assert e.status in (STATUS['DENIED'], STATUS['NOT_FOUND']) and e.fatal, e  # the latter where it is another user's
                end(key_file)
                assert hello_again(c).resumed
                c.bind()
                once_more(c, 1, 1, **HELD)
                once_more(c, 1, 2)
                assert c.expect('result').status == 0
                c.submit(1, request=3, **HELD)
                c.send(grant=qk.Grant(request=2, rhs=0, until=b.nbytes))
                assert (c.fetch(qk.Result(request=2, rhs=0, bytes=b.nbytes)) == 2 * b).all()
                with Client(d) as look:
                    assert look.status().counters.requests == 3
    loses_no_work.__name__ = trouble + '_loses_no_work'
    tap.test(loses_no_work)


for name, (begin, end) in TROUBLES.items():
    test_of(name, begin, end)


def until_refused(c):
    """The error that it gets for what it says, sooner or later."""
    name = 'result'
    while name != 'error':
        c.send(ping=qk.Ping())
        name, body = c.receive()
        time.sleep(PAUSE)
    return body


def hello_again(c):
    """As often as it takes until the key is there."""
    while True:
        c.send(hello=qk.Hello(version=1, client_id=c.client_id, program='test'))
        name, body = c.receive()
        while name not in ('welcome', 'error'):
            name, body = c.receive()
        if name == 'error':
            time.sleep(PAUSE)
        else:
            while c.control.poll(200):  # what was sent before
                name, body = c.receive()
            c.welcome = body if name == 'welcome' else c.welcome
            return c.hello('ada')


def submit_when_allowed(c):
    """As often as it takes until the daemon has seen the role."""
    while True:
        c.submit(1, request=c.request + 1, expect=None)
        name = None
        while name not in ('accepted', 'rejected'):
            name, body = c.receive()
        if name == 'accepted':
            c.request += 1
            return body
        assert body.status == STATUS['DENIED'], body
        time.sleep(PAUSE)


def check_shares(c, local, accepted):
    x = field()
    local.put(accepted.request, 0, x.tobytes())
    assert (local.fetch(c.expect('result')) == 2 * x).all()


@tap.test
def a_key_that_is_taken_away_ends_shared_memory(case):
    """Its connection on the local socket ends at once, without a message, and none begins; those of others stay."""
    with guarded(case) as (d, keys):
        ada, bob = keys.add('ada'), keys.add('bob')
        with Client(d, curve=ada) as a, Client(d, curve=bob) as b, Local(a) as shared, Local(b) as other:
            check_shares(a, shared, a.submit(1))
            check_shares(b, other, b.submit(1))
            os.rename(os.path.join(keys.folder, 'ada'), os.path.join(keys.folder, '.ada'))
            assert shared.is_closed(), 'it goes on without its key'
            with Local(a) as again:
                assert again.is_closed(), 'it is bound again'
            check_shares(b, other, b.submit(1))


@tap.test
def another_role_or_user_ends_shared_memory(case):
    """But one that may do more."""
    with guarded(case) as (d, keys):
        ada = keys.add('ada')
        with Client(d, curve=ada) as c:
            with Local(c) as shared:
                check_shares(c, shared, c.submit(1))
                keys.authorise('ada', ada, role='operate')
                status = STATUS['DENIED']
                while status == STATUS['DENIED']:
                    c.send(drop=qk.Drop(name='nobody'))
                    status = c.expect('error').status
                    time.sleep(PAUSE)
                check_shares(c, shared, c.submit(1))
                keys.authorise('ada', ada, role='read')
                assert shared.is_closed(), 'a reader keeps it'
            with Local(c) as shared:
                shared.put(c.request, 0, field().tobytes())
                assert shared.is_closed(), 'a reader hands over fields'
            keys.authorise('ada', ada)
            accepted = submit_when_allowed(c)
            with Local(c) as shared:
                check_shares(c, shared, accepted)
                keys.authorise('ada', ada, user='bob')
                assert shared.is_closed(), 'another user keeps it'
            with Local(c) as shared:
                assert shared.is_closed(), 'another user begins it'


# ---- strangers


class Opens:
    """Counts how often a folder is opened, by inotify."""

    def __init__(self, path):
        libc = ctypes.CDLL('libc.so.6', use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, path.encode(), IN_OPEN | IN_CLOSE_NOWRITE) < 0:
            raise tap.Skip('no inotify: ' + os.strerror(ctypes.get_errno()))

    def count(self):
        """Events of the folder itself have no name. Those that are alike and follow each other become one, so it is told when it is closed, too."""
        n = 0
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.fd, 65536):
                at = 0
                while at < len(data):
                    _, mask, _, length = struct.unpack_from('iIII', data, at)
                    n += length == 0 and bool(mask & IN_OPEN)
                    at += 16 + length
        return n

    def close(self):
        os.close(self.fd)


@tap.test
def strangers_do_not_make_it_look_at_the_folder(case):
    """A thousand of them knock; and a key that comes meanwhile is let in all the same."""
    with guarded(case) as (d, keys):
        for n in range(100):
            keys.add('user-%d' % n)
        stranger = keys.pair()
        refused(d, stranger)
        opens = Opens(keys.folder)
        looks = 0
        for _ in range(1000 // 20):
            with contextlib.ExitStack() as stack:
                for _ in range(20):
                    s = stack.enter_context(d.context.socket(zmq.DEALER))
                    s.linger = 0
                    s.curve_serverkey, s.curve_publickey, s.curve_secretkey = stranger
                    s.connect(d.endpoint)
                refused(d, stranger)
                looks += opens.count()
        d.status_when(lambda s: s.counters.refused >= 500)
        looks += opens.count()
        opens.close()
        assert looks < 250, '%d looks at the folder' % looks
        with Client(d, curve=keys.add('late')) as c:
            check_solves(c)


@tap.test
def who_is_added_comes_in_at_once(case):
    """One right after the other, to a folder that takes a while to look at. Each look has a rest of twenty times as long, in which nobody
    new comes in, so that a machine which stops the daemon in one of them can make a few wait."""
    with guarded(case) as (d, keys):
        for n in range(200):
            keys.add('user-%d' % n)
        late = 0
        for n in range(30):
            curve = keys.add('new-%d' % n)
            late += not is_let_in(d, curve)
            while not is_let_in(d, curve):
                time.sleep(PAUSE)
        assert late < 10, late


def is_let_in(d, curve):
    return end_of_handshake(d, curve) == zmq.EVENT_HANDSHAKE_SUCCEEDED


# ---- quarkctl


class Relay:
    """Between clients and the control socket of a daemon, for as many connections as come one after the other."""

    def __init__(self, endpoint):
        host, port = endpoint.removeprefix('tcp://').split(':')
        self.to, self.pair = (host, int(port)), ()
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.endpoint = 'tcp://127.0.0.1:%d' % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):  # it is closed
            while True:
                client = self.listener.accept()[0]
                self.pair = client, socket.create_connection(self.to)
                pumps = [threading.Thread(target=self._pump, args=ends) for ends in (self.pair, self.pair[::-1])]
                for t in pumps:
                    t.start()
                for t in pumps:
                    t.join()
                for s in self.pair:
                    s.close()

    def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        self.cut()

    def cut(self):
        for s in self.pair:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        self.thread.join()
        self.listener.close()


@contextlib.contextmanager
def solving(case, d, keys, curve, endpoint):
    """A quarkctl whose solves wait for another engine: they go on, and it gets its file, after all that happens within."""
    with tempfile.TemporaryDirectory() as folder:
        out, key = os.path.join(folder, 'x.h5'), os.path.join(folder, 'key')
        write(key, curve[2].decode() + '\n', 0o600)
        command = [case.quarkctl, 'propagator', '--source=point:0,0,0,0', '--max-iter=%d' % fake.HOLD_ONCE, '--out=' + out, '--endpoint', endpoint,
                   '--key', key, '--server-key', keys.server_public.decode()]
        env = {k: v for k, v in os.environ.items() if not k.startswith('QUARKD_')}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ctl:
            try:
                s = d.status_when(lambda s: s.counters.running == 12)
                yield s
                os.kill(s.engine.pid, signal.SIGKILL)
                text = ctl.communicate(timeout=60)[0]
            finally:
                ctl.kill()
            assert ctl.returncode == 0 and os.path.getsize(out) > 0, text


@tap.test
def quarkctl_goes_on_when_its_key_is_back(case):
    """It asks while its key is away, and is denied."""
    with guarded(case, '--lease', '12') as (d, keys):
        ada = keys.add('ada')
        path, hidden = os.path.join(keys.folder, 'ada'), os.path.join(keys.folder, '.ada')
        with solving(case, d, keys, ada, d.endpoint) as s:
            os.rename(path, hidden)
            d.status_when(lambda now: now.counters.dropped > s.counters.dropped)
            os.rename(hidden, path)
            assert d.log('resumed: user ada'), 'it does not come back'


@tap.test
def quarkctl_connects_again_when_its_key_is_back(case):
    """Its connection breaks while its key is away, and the next one is refused, after which libzmq tries no more."""
    with guarded(case) as (d, keys), Relay(d.endpoint) as relay:
        ada = keys.add('ada')
        path, hidden = os.path.join(keys.folder, 'ada'), os.path.join(keys.folder, '.ada')
        with solving(case, d, keys, ada, relay.endpoint) as s:
            os.rename(path, hidden)
            relay.cut()
            d.status_when(lambda now: now.counters.refused > s.counters.refused)
            os.rename(hidden, path)
            assert d.log('resumed: user ada'), 'it does not come back'


if __name__ == '__main__':
    the_case = Case(sys.argv[1])
    the_case.quarkctl = os.path.abspath(sys.argv[2])
    tap.run(the_case, beside=4)
