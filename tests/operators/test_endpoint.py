#!/usr/bin/env python3
"""How clients find a daemon, and what they do when it has gone: test_endpoint.py QUARKD QUARKCTL"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import tap

try:
    from front_case import LATER, Case, State, check_solves, fake
    from front_driver import Client
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

LIMIT = 120
POINT = ('propagator', '--source', 'point:0,0,0,0')
UNAVAILABLE, CONFIG = 69, 78


class Endpoint(Case):
    def __init__(self, quarkd, quarkctl):
        super().__init__(quarkd)
        self.quarkctl = quarkctl

    def ctl(self, *args, env=None, cwd=None):
        return subprocess.run([os.path.abspath(self.quarkctl), *map(str, args)], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, **(env or {})})


class Waiting:
    """A quarkctl that goes on while its daemon does not; what it says is heard line by line."""

    def __init__(self, case, *args):
        self.process = subprocess.Popen([case.quarkctl, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.lines, self.ended, self.news = [], False, threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stderr:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def says(self, pattern):
        def found():
            return next((m for m in (re.search(pattern, line) for line in self.lines) if m), None)
        with self.news:
            assert self.news.wait_for(lambda: found() or self.ended, LIMIT), self.lines
            assert found(), self.lines
            return found()


def free_ports():
    """The first of two that are free."""
    while True:
        with socket.socket() as a, socket.socket() as b:
            a.bind(('127.0.0.1', 0))
            port = a.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                b.bind(('127.0.0.1', port + 1))
                return port


@tap.test
def an_endpoint_file_tells_where_and_who(case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'endpoint')
        with case.daemon('--endpoint-file', path, env={'SLURM_JOB_ID': '77'}) as d:
            with open(path, encoding='utf-8') as f:
                text = f.read()
            first, rest = text.split('\n', 1)
            assert first == d.endpoint, text
            assert re.fullmatch(r'# quarkd %d on %s, Slurm job 77, since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n'
                                % (d.process.pid, re.escape(socket.gethostname())), rest), text
            # by its path, or by what cat says of it
            for given in (path, text, first):
                done = case.ctl('status', '--json', env={'QUARKD_ENDPOINT': given})
                assert done.returncode == 0 and '"state": "ready"' in done.stdout, (given, done)
                done = case.ctl('top', '--once', '--endpoint', given)
                assert done.returncode == 0, (given, done)
            done = case.ctl('status', '--endpoint', os.path.basename(path), cwd=folder)
            assert done.returncode == 0, done
            assert d.terminate() == 0
        assert os.listdir(folder) == []
        done = case.ctl('status', '--endpoint', path)
        assert done.returncode == UNAVAILABLE and path in done.stderr and 'no such file' in done.stderr, done
        with open(path, 'w', encoding='utf-8') as f:
            f.write('nonsense\n')
        done = case.ctl('status', '--endpoint', path)
        assert done.returncode == CONFIG and 'is not an endpoint' in done.stderr, done


@tap.test
def a_file_that_a_killed_daemon_left_is_told_from_one_that_lives(case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'endpoint')
        with case.daemon('--endpoint-file', path, env={'SLURM_JOB_ID': '77'}) as d:
            d.process.send_signal(signal.SIGSTOP)
            done = case.ctl('status', '--timeout', '0.5', '--endpoint', path)
            assert done.returncode == UNAVAILABLE and 'Slurm job 77' in done.stderr and 'runs, but does not answer' in done.stderr, done
            d.process.kill()
            d.process.wait()
            done = case.ctl('status', '--timeout', '0.5', '--endpoint', path)
            who = 'quarkd %d on %s, Slurm job 77, since ' % (d.process.pid, socket.gethostname())
            assert done.returncode == UNAVAILABLE and who in done.stderr and 'has ended and left %s' % path in done.stderr, done
            with open(path, encoding='utf-8') as f:
                done = case.ctl('status', '--timeout', '0.5', env={'QUARKD_ENDPOINT': f.read()})
            assert done.returncode == UNAVAILABLE and 'that was the endpoint of ' + who in done.stderr, done
            # the next one takes the file over, and the end of another daemon does not take it away
            with case.daemon('--endpoint-file', path) as late:
                with case.daemon('--endpoint-file', path) as d2:
                    assert late.terminate() == 0 and os.path.exists(path)
                    with Client(d2) as c:
                        check_solves(c)
                    assert d2.terminate() == 0
            assert os.listdir(folder) == []


@tap.test
def a_daemon_with_a_journal_is_sought_longer(case):
    """All at once: with a journal, without one, and with times that were given."""
    with contextlib.ExitStack() as stack:
        state = stack.enter_context(State(case))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        listen = ('--listen', 'tcp://127.0.0.1:%d' % free_ports())
        kept = stack.enter_context(state.daemon(*listen))
        plain = stack.enter_context(case.daemon())

        def waiting(d, name, *options):
            out = os.path.join(folder, name + '.h5')
            return stack.enter_context(Waiting(case, *POINT, '--max-iter', fake.HOLD_ONCE, '--endpoint', d.endpoint, '--out', out, *options))
        for d in (kept, plain):
            d.clients = [waiting(d, '%d-0' % d.process.pid), waiting(d, '%d-1' % d.process.pid, '--timeout', '1'),
                         waiting(d, '%d-2' % d.process.pid, '--timeout', '100')]
            d.status_when(lambda s: s.counters.requests == 3)
            d.process.kill()
            d.process.wait()
        pattern = r'no daemon at %s for (\d+) s: it is sought for (\d+) s more'
        for d, patience in ((kept, 900), (plain, 30)):
            for client, whole in zip(d.clients, (patience, 30, 100)):
                m = client.says(pattern % re.escape(d.endpoint))
                assert int(m[1]) >= 5 and whole - 2 <= int(m[1]) + int(m[2]) <= whole, (m[0], whole)
                assert ('goes on when it is back' in client.lines[-1]) == (d is kept), client.lines
        with state.daemon(*listen, env=LATER) as again:
            for client in kept.clients[::2]:  # that with 30 s may have given up where the machine is slow
                client.says('the daemon at %s is back after' % re.escape(again.endpoint))
                assert client.process.wait(LIMIT) == 0, client.lines


@tap.test
def a_ticket_finds_the_daemon_and_says_what_is_missing(case):
    with State(case) as state, tempfile.TemporaryDirectory() as folder:
        path, out, ticket = (os.path.join(folder, n) for n in ('endpoint', 'p.h5', 'p.h5.ticket'))
        with state.daemon('--endpoint-file', path) as d:
            done = subprocess.run([case.quarkctl, *POINT, '--out', out, '--detach', '--endpoint', './endpoint'], cwd=folder, timeout=LIMIT)
            assert done.returncode == 0
            with open(ticket, encoding='utf-8') as f:
                words = json.load(f)
            assert words['endpoint'] == os.path.realpath(path), words
            with Client(d, bytes.fromhex(words['client'])) as c:  # of whose upload nothing comes
                c.submit(1, request=1 << 60, detach_ms=10**6)
            with open(ticket, 'w', encoding='utf-8') as f:
                json.dump({**words, 'requests': [{'request': 1 << 60, 'nrhs': 1}]}, f)
            done = case.ctl('fetch', ticket)
            assert done.returncode == 65 and 'the daemon lacks' in done.stderr and '(not sent, or lost' in done.stderr, done
            with open(ticket, 'w', encoding='utf-8') as f:
                json.dump(words, f)
            d.process.kill()
            d.process.wait()
        with state.daemon('--endpoint-file', path, env=LATER):  # at another port
            done = case.ctl('fetch', ticket)
            assert done.returncode == 0 and os.path.exists(out), done


if __name__ == '__main__':
    tap.run(Endpoint(*map(os.path.abspath, sys.argv[1:])))
