#!/usr/bin/env python3
"""The real engine outlives a quarkd that was killed, judged by the numpy oracle: test_adoption.py QUARKD QUARK_ENGINE QUARK_GAUGE [RANKS]"""
import contextlib
import glob
import os
import signal
import sys
import tempfile
import time

import tap

try:
    from daemon_case import GAUGE, DaemonCase
    from front_case import State, fake, gone, kill, once_more
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

LARGE = 'builtin:weak:12x12x12x16:7'  # solves that can be met under way
SLOW = 'builtin:weak:8x8x8x8:7'       # a setup of multigrid that can


class Case(DaemonCase):
    def lasting_engine(self, _):
        return self.engine


def check_solve(case, client, seed=1):
    b = case.noise(seed)
    (r, x), = client.solve([b], tol=1e-10)
    assert r.status == 0 and case.residual(x, b) <= 1e-10, r


def left_by(front, *options, **more):
    """The pid of the engine of a front that was killed."""
    with front(*options, **more) as d:
        pid = d.status().engine.pid
        kill(d)
    return pid


def column(seed):
    return qk.Column(seed=seed, t=-1, spin=-1, colour=-1)


ENDLESS = dict(source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8)


@tap.test
def accepted_work_is_finished_by_the_same_engine(case):
    """Right-hand sides in slots, in the queue and on their way when the front is killed, three times: each is answered once, and rightly."""
    with State(case) as state, state.fronts() as front:
        fields, pid, seen = [case.noise(s) for s in range(24)], None, []
        with front('--slots', '4') as d, Client(d) as c:
            pid = d.status().engine.pid
            c.upload(c.submit(len(fields), tol=1e-12), fields)
            d.status_when(lambda s: s.counters.running > 0 and s.counters.bytes_in == sum(f.nbytes for f in fields))
            kill(d)
        for _ in range(2):
            with front('--slots', '4') as d:
                assert d.log('engine adopted in')
                d.status_when(lambda s: s.counters.running > 0 or s.counters.queued == 0)
                kill(d)
        begun = time.monotonic()
        with front('--slots', '4') as d, Client(d, c.client_id) as c2:
            print('# ready %.2f s after its start' % (time.monotonic() - begun))
            once_more(c2, len(fields), 1, tol=1e-12)
            for r in c2.results(len(fields)):
                seen.append(r.rhs)
                assert r.status == 0 and r.attempt == 0 and case.residual(c2.fetch(r), fields[r.rhs]) <= 1e-12, r
            c2.ack(1)
            s = d.status_when(lambda s: s.counters.requests == 0)
            assert sorted(seen) == list(range(len(fields))), seen  # a loaded machine may end them in another order
            assert (s.engine.pid, s.engine.restarts, s.memory_used) == (pid, 0, 0), s
            assert not [line for line in d.lines if 'loading' in line or 'engine started' in line], d.lines
            assert d.terminate() == 0
        state.is_empty()


@tap.test
def solves_without_end_are_dropped_and_begin_anew(case):
    """The engine iterates all the time while there is no front."""
    options = '--slots', '2', '--staging', '0'
    with State(case) as state, state.fronts() as front:
        with front(*options, gauge=LARGE) as d, Client(d) as c:
            c.submit(3, column=[column(k) for k in range(3)], **ENDLESS)
            pid = d.status_when(lambda s: s.counters.running == 2).engine.pid
            kill(d)
        with front(*options, gauge=LARGE) as d, Client(d, c.client_id) as c2:
            once_more(c2, 3, 1, column=[column(k) for k in range(3)], **ENDLESS)
            d.status_when(lambda s: any(x.iterations > 0 for x in s.activity.slot), activity=True)
            c2.send(cancel=qk.Cancel(request=1))
            c2.results(3)
            c2.ack(1)
            c2.request = 1
            again = c2.submit(1, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, tol=1e-10, column=[column(0)])
            assert c2.expect('result').status == 0
            c2.ack(again.request)
            s = d.status_when(lambda s: s.counters.requests == 0)
            assert (s.engine.pid, s.engine.restarts, s.memory_used) == (pid, 0, 0), s


@tap.test
def a_front_killed_while_the_engine_loads(case):
    """Multigrid is being set up: the next front sees how far it is, and the setup is there once."""
    mg = '--solver', 'mg', '--mg-checkpoint', 'off', '--slots', '2'
    with State(case) as state, state.fronts() as front:
        with front(*mg, gauge=SLOW, wait=None) as d:
            s = d.status_when(lambda s: s.state == qk.STATE_LOADING and s.phase == 'null vectors')
            kill(d)
        with front(*mg, gauge=SLOW, wait=None) as d, Client(d) as c:
            d.status_when(lambda s: s.phase not in ('', 'adoption'))
            assert d.log('engine adopted in') and d.log('ready: ')
            after = d.status()
            assert (after.engine.pid, after.engine.restarts) == (s.engine.pid, 0), after
            c.submit(1, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, tol=1e-10, column=[column(0)])
            assert c.expect('result').status == 0


@tap.test
def nobody_comes(case):
    """The grace runs out, of one that solves and of one that is idle: no process is left."""
    for busy in (True, False):
        with State(case) as state, state.fronts() as front:
            with front('--engine-grace', '1', gauge=LARGE) as d, Client(d) as c:
                if busy:
                    c.submit(1, column=[column(1)], **ENDLESS)
                    d.status_when(lambda s: s.counters.running == 1)
                kill(d)
            for pid in front.engines():
                gone(pid)
            with front('--engine-grace', '1', gauge=LARGE) as d:
                assert d.log('the engine of the previous front is gone') and d.log('engine started')


def open_in(pid):
    """What the process has open now, by name; a descriptor may be closed while we look."""
    found = set()
    for path in glob.glob('/proc/%d/fd/*' % pid):
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(path))
    return found


@tap.test
def a_front_that_is_only_slow_keeps_its_engine(case):
    """The grace is for one that has gone; nothing that the front has open is the engine's, too."""
    with State(case) as state, state.fronts() as front, front('--engine-grace', '0.5', '--http', '127.0.0.1:0') as d:
        pid = d.status().engine.pid
        shared = {name for name in open_in(d.process.pid) & open_in(pid) if not name.startswith(('/dev/', 'anon_inode', front.run))}
        assert not shared, shared
        d.process.send_signal(signal.SIGSTOP)
        time.sleep(2)  # longer than the grace
        d.process.send_signal(signal.SIGCONT)
        s = d.status()
        assert (s.engine.pid, s.engine.restarts, s.state) == (pid, 0, qk.STATE_READY), s


@tap.test
def an_engine_killed_while_there_is_no_front(case):
    with State(case) as state, state.fronts() as front:
        pid = left_by(front)
        everyone = front.engines()
        os.kill(pid, signal.SIGKILL)
        for one in everyone:
            gone(one)
        with front() as d, Client(d) as c:
            check_solve(case, c)
            assert d.status().engine.pid != pid


@tap.test
def another_mass_or_gauge_file_is_another_engine(case):
    """The old one is gone before the new one is started."""
    with State(case) as state, state.fronts() as front, tempfile.TemporaryDirectory() as folder:
        gauge = case.convert('builtin:weak:4x4x8x8:8', folder)
        pid = left_by(front, gauge=gauge)
        with front(gauge=gauge, mass='0.2') as d:
            assert d.log('is not adopted: it was started with other settings') and not fake.lives(pid)
            pid = d.status().engine.pid
            kill(d)
        case.convert(GAUGE, folder)
        with front(gauge=gauge) as d, Client(d) as c:
            assert d.log('is not adopted') and not fake.lives(pid)
            check_solve(case, c)


@tap.test
def words_of_an_adopted_engine(case):
    """Its log goes on in that of the new front, the last words with it."""
    with State(case) as state, state.fronts() as front:
        left_by(front)
        with front() as d, Client(d) as c:
            check_solve(case, c)
            assert d.log('channel: the front has gone: waiting 30 s for another one')
            os.kill(d.status().engine.pid, signal.SIGKILL)
            assert d.log('engine lost: it ended')
            assert d.log('ready: ', 2)
            check_solve(case, c)


@tap.test
def named_setups_keep_their_engines(case):
    with State(case) as state, state.fronts() as front:
        with front() as d, Client(d) as c:
            c.send(load=qk.Load(name='light', mass=0.05))
            c.expect('setup')
            d.status_when(lambda s: [x.state for x in s.setups] == 2 * [qk.STATE_READY])
            everyone = front.engines()
            kill(d)
        with front() as d, Client(d) as c:
            assert d.log('light: engine adopted in')
            d.status_when(lambda s: [x.state for x in s.setups] == 2 * [qk.STATE_READY])
            assert front.engines() == everyone
            check_solve(case, c)
            c.submit(1, source=qk.SOURCE_Z4, setup='light', sink=qk.SINK_NONE, tol=1e-10, column=[column(0)])
            assert c.expect('result').status == 0


@tap.test
def engines_that_are_not_to_wait_end_with_their_front(case):
    if case.ranks != '1':
        raise tap.Skip('ranks of mpirun notice by silence')
    with State(case) as state, state.fronts() as front:
        with front('--engine-grace', '0') as d:
            pid = d.status().engine.pid
            kill(d)
            gone(pid)
        with contextlib.closing(state.journal()) as db:
            assert not db.execute("SELECT * FROM note WHERE key LIKE 'engine %'").fetchall()
        with front() as d:
            assert d.log('engine started') and d.terminate() == 0  # which clears the folder


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
