#!/usr/bin/env python3
"""HTTP of those who do not mean well: slow, under another name, with two bodies in one: test_http.py QUARKD"""
import contextlib
import socket
import sys
import time

import tap

try:
    from front_case import Case, check_solves
    from front_driver import TIMEOUT, Client
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

HTTP = ('--http', '127.0.0.1:0')
SOON = 8  # seconds: before a connection that says nothing more is taken for dead


def connect(d, timeout=TIMEOUT):
    return socket.create_connection(('127.0.0.1', int(d.log(r'over HTTP on 127\.0\.0\.1:(\d+)')[1])), timeout=timeout)


def read_all(s):
    data = b''
    with contextlib.suppress(ConnectionResetError):
        while piece := s.recv(65536):
            data += piece
    return data


def ask(d, head, body=b''):
    """The status of the answer to a head without its end, which comes soon; None: the connection ended without one."""
    with connect(d, SOON) as s:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(head + b'Connection: close\r\n\r\n' + body)
        data = read_all(s)
    return int(data.split()[1]) if data else None


def named(d, host, page='/status.json'):
    return ask(d, b'GET %s HTTP/1.1\r\nHost: %s\r\n' % (page.encode(), host.encode()))


@tap.test
def slow_connections_keep_nobody_out(case):
    """Requests that never come to their end, three times as many as there is room for."""
    with case.daemon(*HTTP) as d, contextlib.ExitStack() as crowd:
        for i in range(200):
            s = crowd.enter_context(connect(d))
            with contextlib.suppress(ConnectionError):
                s.sendall((b'', b'GET ', b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n')[i % 3])
            if i % 10 == 9:
                assert named(d, '127.0.0.1', '/healthz') == 200 and named(d, '127.0.0.1', '/metrics') == 200, i
        with Client(d) as c:
            check_solves(c)


@tap.test
def a_request_has_a_time_to_come(case):
    """Which it does not outrun by a byte now and then."""
    with case.daemon(*HTTP) as d, connect(d) as slow:
        slow.sendall(b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ')
        slow.settimeout(0.5)
        began, ended = time.monotonic(), False
        while not ended:
            assert time.monotonic() - began < 100, 'it is still there'
            try:
                slow.sendall(b'y')
                ended = slow.recv(1) == b''
            except TimeoutError:
                pass
            except ConnectionError:
                ended = True
        assert named(d, '127.0.0.1', '/healthz') == 200


@tap.test
def only_who_knows_the_name_is_answered(case):
    """A page whose name leads here (DNS rebinding) names itself in Host, whatever it asks for."""
    host = socket.gethostname()
    with case.daemon(*HTTP, '--http-names', 'watch.example,other.example') as d:
        for name in ('127.0.0.1', '127.0.0.1:9100', '[::1]:80', '192.0.2.7', 'localhost', 'LocalHost:1', host, host + ':9100', host.split('.')[0],
                     'watch.example', 'other.example.:9100'):
            assert named(d, name) == 200, name
        for name in ('attacker.example', 'attacker.example:9100', 'localhost.attacker.example', '127.0.0.1.attacker.example', 'watch.example.com',
                     'example', 'watch.example,other.example', '', ':80', '[localhost]', '127.1', 'x' * 300):
            for page in ('/', '/status.json', '/metrics', '/healthz', '/nothing'):
                assert named(d, name, page) in (421, 400), (name, page)
        with connect(d) as s:
            s.sendall(b'GET / HTTP/1.1\r\nHost: attacker.example\r\n\r\n')
            assert b'attacker.example is not a name of this daemon' in read_all(s)  # and the connection ends
        assert ask(d, b'GET /healthz HTTP/1.0\r\n') == 200  # probes that are older than Host
        assert ask(d, b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: attacker.example\r\n') == 400
    for names in ('a b', 'a,', ',a', 'a:80', 'http://a', '', 'x' * 300):
        end = case.run('--gauge', 'x', '--mass', '0.1', '--http-names', names)
        assert end.returncode == 64 and 'http-names' in end.stderr, (names, end)


@tap.test
def two_lengths_are_refused(case):
    """Equal or not, and a length beside an encoding; what follows is not read as another request."""
    with case.daemon(*HTTP) as d:
        hidden = b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
        for lengths in (b'Content-Length: 0\r\nContent-Length: %d\r\n' % len(hidden), b'Content-Length: 5\r\ncontent-length: 5\r\n',
                        b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', b'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n'):
            for method in (b'GET', b'POST'):
                with connect(d) as s:
                    s.sendall(method + b' /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n' + lengths + b'\r\n' + hidden)
                    data = read_all(s)
                assert data.startswith(b'HTTP/1.1 400 ') and data.count(b'HTTP/1.') == 1, (lengths, data)
        assert ask(d, b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n', b'hello') == 200


@tap.test
def what_is_too_large_ends_its_connection(case):
    """A head, a name of a page, a body; and nobody else notices."""
    with case.daemon(*HTTP) as d, Client(d) as c:
        head = b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n'
        for much in (head + b'X: ' + b'y' * 200000 + b'\r\n', head + b'X: y\r\n' * 20000, b'GET /' + b'y' * 200000 + b' HTTP/1.1\r\nHost: 127.0.0.1\r\n'):
            assert ask(d, much) in (None, 400, 413, 414, 431), much[:40]
        assert ask(d, b'POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3000000\r\n', b'z' * 3000000) is None
        assert ask(d, b'POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 30000\r\n', b'z' * 30000) == 405
        check_solves(c)
        assert named(d, '127.0.0.1', '/healthz') == 200


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
