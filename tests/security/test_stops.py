#!/usr/bin/env python3
"""Processes that are stopped for a while, as scontrol suspend, a hung disk or a paused machine stop them: test_stops.py QUARKD QUARK_ENGINE"""
import contextlib
import os
import signal
import socket
import sys
import tempfile
import time

import tap

try:
    from front_case import Case, check_solves, fake
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

ENGINE = sys.argv[2] if len(sys.argv) > 2 else None


def state_of(pid):
    with open('/proc/%d/stat' % pid, encoding='utf-8') as f:
        return f.read().rsplit(')', 1)[1].split()[0]


def waits_of(pid):
    """How often the process has waited for something."""
    with open('/proc/%d/status' % pid, encoding='utf-8') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('voluntary_ctxt_switches'))


@contextlib.contextmanager
def stopped(seconds, *pids):
    """They stand still for so long; the last one goes on first, and has looked about before the next one does."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        while any(state_of(pid) != 'T' for pid in pids):
            time.sleep(0.01)
        yield
        time.sleep(seconds)
    finally:
        for pid in reversed(pids):
            before = waits_of(pid)
            os.kill(pid, signal.SIGCONT)
            while state_of(pid) not in 'Z' and waits_of(pid) == before:
                time.sleep(0.01)


def live_on(d, seconds):
    """Waits until the daemon has been about for so long from now on."""
    until = d.status().uptime + seconds
    d.status_when(lambda s: s.uptime >= until)


@tap.test
def a_front_that_was_stopped_throws_nobody_out(case):
    """Neither sessions nor what they have, nor a connection that was about to say whose it is; later their leases go on."""
    with case.daemon('--lease', '3', '--keep-time', '3') as d, Client(d) as c:
        kept = c.keep()
        held = c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD).request
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as local:
            local.connect(c.welcome.local_path)
            c.ping()
            with stopped(6, d.process.pid):
                pass
            live_on(d, 0.5)
            s = d.status().counters
            assert (s.sessions, s.requests) == (1, 2), s
            local.sendall(qk.LocalRequest(bind=qk.LocalBind(client_id=c.client_id, token=c.welcome.token)).SerializeToString())
            assert d.log('fields go by shared memory')
        c.contract(kept)
        assert c.expect('result').status == 0
        c.send(cancel=qk.Cancel(request=held))
        assert c.expect('result').request == held
        check_solves(c)
        assert not any('lease expired' in line or 'has not said' in line for line in d.lines)
        d.status_when(lambda s: s.counters.sessions == 0)
        assert d.log('lease expired: nothing came from this client for 3')


@tap.test
def what_came_while_the_front_was_stopped_is_heard(case):
    """A client that has pinged all the time, and one that has not."""
    with case.daemon('--lease', '1') as d, Client(d) as c, Client(d) as quiet:
        with stopped(2, d.process.pid):
            for _ in range(3):
                c.send(ping=qk.Ping())
        for _ in range(3):
            assert c.expect('pong')
        quiet.ping()
        c.ping()
        assert d.status().counters.sessions == 2


@tap.test
def engine_and_front_that_were_stopped_go_on(case):
    """For longer than either may be silent to the other; in which order they go on does not matter."""
    if not ENGINE:
        raise tap.Skip('no engine was named')
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'engine')
        with open(program, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\nexec "%s" "$@" --silence 4000\n' % ENGINE)
        os.chmod(program, 0o755)
        with case.daemon('--engine-timeout', '4', engine=program, gauge='builtin:weak:4x4x4x4:7') as d, Client(d) as c:
            before = d.status().engine
            for pids in (d.process.pid, before.pid), (before.pid, d.process.pid):
                with stopped(4.5, *pids):
                    pass
                c.ping()
                live_on(d, 0.5)
            c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_NONE)
            assert c.expect('result').status == 0
            after = d.status().engine
            assert (after.pid, after.restarts) == (before.pid, 0), after
            assert not any('silent' in line for line in d.lines)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]), beside=4)
