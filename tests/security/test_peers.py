#!/usr/bin/env python3
"""Peers without keys that claim, take or guess what is others', or speak what is not ZMTP 3: test_peers.py QUARKD"""
import contextlib
import ctypes
import os
import sys

import tap

try:
    import zmtp
    from front_case import Case, check_solves, fake, field, once_more
    from front_driver import BIND, BOUND, STATUS, UPLOAD, Client, checksum, frame, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

HELD = dict(source=qk.SOURCE_Z2, max_iter=fake.HOLD)


def message(**body):
    return qk.ClientMessage(**body).SerializeToString()


LEAVE, ASK = message(shutdown=qk.Shutdown(now=True)), message(status=qk.StatusRequest())


def answer(data):
    m = qk.ServerMessage.FromString(data)
    name = m.WhichOneof('body')
    return name, getattr(m, name)


def check_untouched(d, sessions=0):
    """Nothing has come of what strangers said, and others are served."""
    s = d.status()
    assert (s.counters.sessions, s.counters.accepted, len(s.setups), s.state) == (sessions, 0, 1, qk.STATE_READY), s
    with Client(d) as c:
        check_solves(c)


def foreseen(sockets):
    """Where the routing ids of a process begin that has not seeded rand(), socket by socket: libzmq's generate_random."""
    libc = ctypes.CDLL('libc.so.6')
    libc.srand(1)
    return [(libc.rand() | libc.rand() << 31) & 0xffffffff for _ in range(sockets)]


def claims(begin, count=12):
    return [b'\0' + ((begin + i) & 0xffffffff).to_bytes(4, 'big') for i in range(count)]


# ---- routing ids


@tap.test
def foreseen_routing_ids_end_nobody(case):
    """Who has the id that is to be the next one's, when that one comes."""
    with case.daemon() as d, contextlib.ExitStack() as stack:
        for routing_id in (r for begin in foreseen(3) for r in claims(begin)):
            for endpoint, question in ((d.endpoint, ASK), (d.data_endpoint, None)):
                p = stack.enter_context(zmtp.Peer(endpoint))
                p.greet(routing_id)
                if question:
                    p.say(question)
                    assert answer(p.receive())[0] == 'status'
        for _ in range(3):
            with Client(d) as c:
                check_solves(c)
        assert d.process.poll() is None


@tap.test
def who_takes_a_broken_connection_takes_no_session(case):
    """Whatever it says there: it is a stranger, hears nothing that is the session's, and ends nothing."""
    with case.daemon() as d:
        victim = Client(d, routing_id=b'victim')
        victim.submit(1, **HELD)
        accepted = victim.submit(2)
        b = [field(), field()]
        victim.upload(accepted, b[:1])
        victim.expect('result')
        victim.close()
        thief, first = zmtp.heir(d.endpoint, b'victim', message(ping=qk.Ping()))
        with thief:
            name, body = answer(first)
            assert name == 'error' and body.status == STATUS['NOT_FOUND'], (name, body)
            thief.say(message(goodbye=qk.Goodbye()), message(cancel=qk.Cancel(request=1)))
            assert [answer(thief.receive())[0] for _ in range(2)] == ['error'] * 2
        with Client(d, client_id=victim.client_id, bind=False) as again:
            assert again.welcome.resumed
            lies = [frame(UPLOAD, 2, 1, b'x' * 16, accepted.field_bytes, 0), frame(UPLOAD, 2, 1, b'x' * 8, 16, 8, checksum(b'x'))]
            zmtp.heir(d.data_endpoint, b'victim', *lies, heard=lambda _: d.status().counters.dropped >= 2)[0].socket.close()
            again.bind()
            assert once_more(again, 1, 1, **HELD).field_bytes
            repeated = once_more(again, 2, 2)
            assert repeated.upload_next == accepted.field_bytes
            result = again.expect('result')
            assert (again.fetch(result) == 2 * b[0]).all()
            again.upload(repeated, b, begin=repeated.upload_next)
            assert (again.fetch(again.expect('result')) == 2 * b[1]).all()


@tap.test
def a_routing_id_that_is_too_long_is_nobodys(case):
    """Of 6 + 256 bytes, whose first six are another one's: its length in a byte is that of the other."""
    with case.daemon() as d, zmtp.Peer(d.endpoint) as victim, zmtp.Peer(d.endpoint) as thief:
        victim.greet(b'victim')
        victim.say(message(hello=qk.Hello(version=1, client_id=bytes(16), user='ada', program='test')))
        assert answer(victim.receive())[0] == 'welcome'
        thief.greet(b'victim' + bytes(256))
        thief.say(ASK, message(hello=qk.Hello(version=9, client_id=bytes(16))))
        assert thief.receive() is None  # it has been hung up on
        victim.say(message(ping=qk.Ping()))
        assert answer(victim.receive())[0] == 'pong'
        assert d.status().counters.sessions == 1


@tap.test
def an_heir_hears_nothing_that_comes_later(case):
    """Once it has said a word, the end of the session's daemon is not told to it either."""
    with case.daemon() as d:
        victim = Client(d, routing_id=b'victim')
        victim.submit(1, **HELD)
        victim.close()
        thief, first = zmtp.heir(d.endpoint, b'victim', ASK)
        with thief:
            assert answer(first)[0] == 'status'
            with Client(d, hello=False) as operator:
                operator.send(shutdown=qk.Shutdown(now=True))
                operator.expect('shutdown')
            assert thief.receive() is None, 'the heir hears of the session'
        assert d.wait() == 0


@tap.test
def a_connection_has_one_session(case):
    """HELLO and BIND for another one are refused, and end neither."""
    with case.daemon() as d, Client(d) as c, Client(d) as other:
        c.submit(1, **HELD)
        c.send(hello=qk.Hello(version=1, client_id=os.urandom(16), user='eve'))
        assert 'has a session' in c.error('BAD_PROTOCOL', fatal=False).text
        c.send(hello=qk.Hello(version=1, client_id=other.client_id, user='eve'))
        c.error('BAD_PROTOCOL', fatal=False)
        c.data.send(frame(BIND, payload=other.client_id + other.welcome.token, field_bytes=32))
        assert 'belongs to another session' in other.error('BAD_PROTOCOL', fatal=False).text
        check_solves(other)
        c.send(cancel=qk.Cancel(request=1))
        assert c.expect('result').status == STATUS['CANCELLED']
        check_solves(c)
        assert d.status().counters.sessions == 2


@tap.test
def what_a_client_says_before_it_leaves_is_heard(case):
    """Of the end of its connection the daemon may hear before it has read the last words."""
    submit = qk.Submit(request=1, nrhs=1, dtype=qk.DTYPE_F64, tol=1e-8, column=[qk.Column(seed=1)], sink=qk.SINK_NONE, **HELD)
    with case.daemon() as d:
        for i in range(20):
            with zmtp.Peer(d.endpoint) as p:
                p.greet()
                p.say(message(hello=qk.Hello(version=1, client_id=bytes([i + 1] * 16), user='brief', program='test')))
                assert answer(p.receive())[0] == 'welcome'
                p.say(message(submit=submit), message(goodbye=qk.Goodbye()))
        d.status_when(lambda s: s.counters.accepted == 20 and s.counters.sessions == 0)


# ---- what is not ZMTP 3


@tap.test
def old_zmtp_is_refused(case):
    """1.0 and 2.0 have no handshake that could be asked for anything."""
    one = zmtp.old_frame(b'') + zmtp.old_frame(LEAVE)
    two = b'\xff' + bytes(7) + b'\x01\x7f' + b'\x01\x05' + zmtp.frame(b'') + zmtp.frame(LEAVE)
    with case.daemon() as d:
        for endpoint in (d.endpoint, d.data_endpoint):
            for data in (one, two):
                with zmtp.Peer(endpoint) as p:
                    p.send(data)
                    assert b'\x3a' not in p.ended()[12:], 'something was answered'
        check_untouched(d)


def page(path, messages):
    """What a browser sends for a page that has it POST text: to a peer of ZMTP 1.0 its header is frames of junk, and behind some
    letters that end the last one come messages."""
    head = ('POST %s HTTP/1.1\r\nHost: 127.0.0.1:5555\r\nConnection: keep-alive\r\nContent-Length: 500\r\nOrigin: https://example.org\r\n'
            'User-Agent: Mozilla/5.0\r\nContent-Type: text/plain;charset=UTF-8\r\nAccept: */*\r\n\r\n' % path).encode()
    end = 0
    while end < len(head):
        end += 1 + head[end]
    return head.ljust(end, b' ') + zmtp.old_frame(b'') + b''.join(zmtp.old_frame(m) for m in messages)


@tap.test
def a_page_in_a_browser_commands_nothing(case):
    submit = qk.Submit(request=1, nrhs=1, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_POINT, column=[qk.Column()], sink=qk.SINK_NONE)
    orders = [message(hello=qk.Hello(version=1, client_id=bytes(range(16)), user='eve')), message(submit=submit),
              message(load=qk.Load(name='second', kappa=0.1)), LEAVE]
    with case.daemon() as d:
        for path in ('/', '/a', '/ab', '/abc'):
            for endpoint in (d.endpoint, d.data_endpoint):
                with zmtp.Peer(endpoint) as p:
                    p.send(page(path, orders))
                    p.ended()
        check_untouched(d)


@tap.test
def what_comes_behind_junk_is_not_looked_at(case):
    """A stranger is told, and its connection ends; a message in the same packet is lost with it."""
    with case.daemon() as d, Client(d, bind=False) as c:
        for junk in (b'', b'\xff' * 50, b'GET / HTTP/1.1', bytes(1000)):
            with zmtp.Peer(d.endpoint) as p:
                p.greet()
                p.say(junk, LEAVE, message(load=qk.Load(name='second', kappa=0.1)), LEAVE)
                name, body = answer(p.receive())
                assert name == 'error' and body.status == STATUS['BAD_PROTOCOL'] and body.fatal
                assert p.receive() is None
            with zmtp.Peer(d.data_endpoint) as p:
                p.greet()
                p.say(junk, frame(BIND, payload=c.client_id + c.welcome.token, field_bytes=32))
                assert p.receive() is None, 'it is bound'
        with zmtp.Peer(d.data_endpoint) as p:  # as it is without junk
            p.greet()
            p.say(frame(BIND, payload=c.client_id + c.welcome.token, field_bytes=32))
            assert p.receive()[6] == BOUND
        check_untouched(d, sessions=1)


@tap.test
def who_stops_in_the_middle_disturbs_nobody(case):
    """Handshakes that are cut at every byte, and connections that go on to stay."""
    whole = zmtp.greeting() + zmtp.ready(b'x' * 200)
    with case.daemon() as d:
        with zmtp.peers(d.endpoint, len(whole)) as some, zmtp.peers(d.data_endpoint, 64) as others:
            for n, p in enumerate(some):
                p.send(whole[:n])
            for n, p in enumerate(others):
                p.send(zmtp.greeting(minor=n % 3, mechanism=(b'NULL', b'CURVE', b'PLAIN', b'X' * 20)[n % 4])[:64 - n % 2])
            check_untouched(d)
        with Client(d) as c:
            check_solves(c)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
