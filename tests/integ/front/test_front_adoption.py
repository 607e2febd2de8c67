#!/usr/bin/env python3
"""Engines that outlive a front that was killed, and the next front that takes them over: test_front_adoption.py QUARKD"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import Case, State, fake, field, gone, kill, once_more
    from front_driver import TIMEOUT, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


def starts(daemon):
    return len([line for line in daemon.lines if 'engine started' in line])


def left_by(front, *options, **more):
    """The pid of the engine of a front that was killed."""
    with front(*options, **more) as d:
        pid = d.status().engine.pid
        kill(d)
    assert fake.lives(pid)
    return pid


@tap.test
def the_next_front_goes_on_with_the_engine(case):
    """What was in slots and what waited is solved by it; what it says of the old slots counts for nothing."""
    with State(case) as state, state.fronts() as front:
        fields = [field() for _ in range(3)]
        with front('--slots', '2') as d, Client(d) as c:
            c.upload(c.submit(3, max_iter=fake.HOLD_ONCE), fields)
            pid = d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 1).engine.pid
            kill(d)
        with front('--slots', '2') as d, Client(d, c.client_id) as c2:
            assert d.log(r'engine adopted in \d+\.\d+ s, nothing was loaded again')
            once_more(c2, 3, 1, max_iter=fake.HOLD_ONCE)
            results = c2.results(3)
            for r, b in zip(results, fields):
                assert r.status == 0 and np.array_equal(c2.fetch(r), 2 * b), r
            c2.ack(1)
            s = d.status_when(lambda s: s.counters.requests == 0)
            assert (s.engine.pid, s.engine.restarts, s.counters.converged) == (pid, 0, 3) and starts(d) == 0, s
            assert d.terminate() == 0
            assert not fake.lives(pid)
        state.is_empty()


@tap.test
def fronts_may_be_killed_one_after_the_other(case):
    with State(case) as state, state.fronts() as front:
        pid = left_by(front)
        for _ in range(2):
            assert left_by(front) == pid
        with front() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2)
            assert c.expect('result').status == 0
            assert d.status().engine.pid == pid
            os.kill(pid, signal.SIGKILL)
            s = d.status_when(lambda s: s.state == qk.STATE_READY and s.engine.pid != pid)
            assert s.engine.restarts == 1 and d.log('engine lost: it ended, and its exit code is not known'), s


@tap.test
def a_contraction_under_way_is_made_again(case):
    with State(case) as state, state.fronts() as front:
        with front() as d, Client(d) as c:
            kept = c.keep()
            c.ack(kept)
            c.contract(kept, source=fake.HOLD_ONCE)
            pid = d.status_when(lambda s: s.counters.running == 1).engine.pid
            kill(d)
        with front() as d, Client(d, c.client_id) as c2:
            c2.contract(kept, request=c.request, source=fake.HOLD_ONCE, expect=None)
            c2.expect('accepted', skip=('progress', 'result'))
            while (r := c2.expect('result')).request != c.request:
                pass
            assert r.status == 0 and d.status().engine.pid == pid, r


@tap.test
def a_front_killed_while_its_engine_loads_leaves_it_too(case):
    """Once before LOAD has been answered; the engine then tells how far it is."""
    with State(case) as state, state.fronts() as front, tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, 'go')
        os.mkfifo(go)
        gauge = 'builtin:fake:wait=%s' % go
        with front(gauge=gauge, wait='engine started') as d:
            s = d.status_when(lambda s: s.state == qk.STATE_LOADING and s.phase == 'read')
            kill(d)
        with front(gauge=gauge, wait=None) as d:
            d.status_when(lambda s: s.state == qk.STATE_LOADING)
            with open(go, 'w', encoding='utf-8'):
                pass
            assert d.log('engine adopted in') and d.log('ready: ')
            after = d.status()
            assert (after.engine.pid, after.engine.restarts) == (s.engine.pid, 0) and starts(d) == 0, after


@tap.test
def an_engine_that_has_not_come_so_far_gets_its_load(case):
    """Its front was killed before it said HELLO."""
    with State(case) as state, state.fronts() as front:
        with front(wait='engine started') as d:
            d.process.kill()
        pids = front.engines()
        with front() as d, Client(d) as c:
            assert d.log('engine adopted: nothing is loaded yet') and starts(d) == 0
            c.submit(1, source=qk.SOURCE_Z2)
            assert c.expect('result').status == 0 and front.engines() == pids


@tap.test
def what_an_adopted_engine_says_is_heard(case):
    """It can say what it likes while nobody listens, and neither waits nor meets a signal."""
    with State(case) as state, state.fronts() as front:
        pid = left_by(front)
        for number in (1, 2):
            with open('/proc/%d/fdinfo/%d' % (pid, number), encoding='utf-8') as f:
                flags = int(re.search(r'flags:\s*(\d+)', f.read())[1], 8)
            assert flags & os.O_NONBLOCK and flags & os.O_ACCMODE == os.O_RDWR, oct(flags)
        with front() as d, Client(d) as c:
            assert d.log('fake engine: adopted')
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.DIE)
            assert d.log(r'engine lost: it ended, and its exit code is not known: assert: x\.c:7: assertion failed')


@tap.test
def another_operator_gets_another_engine(case):
    """Where there is room for one engine only."""
    with State(case) as state, tempfile.TemporaryDirectory() as room:
        with state.fronts(FAKE_ROOM=room, FAKE_ENGINES='1') as front:
            pid = left_by(front)
            with front('--csw', '1') as d, Client(d) as c:
                assert d.log('the engine of the previous front is not adopted: it was started with other settings')
                assert not fake.lives(pid) and starts(d) == 1
                b = field()
                (r, x), = c.solve([b])
                assert r.status == 0 and np.array_equal(x, 3 * b)


@tap.test
def a_gauge_file_that_was_replaced_is_loaded(case):
    with State(case) as state, state.fronts() as front, tempfile.NamedTemporaryFile() as gauge:
        pid = left_by(front, gauge=gauge.name)
        with open(gauge.name, 'w', encoding='utf-8') as f:
            f.write('another configuration')
        with front(gauge=gauge.name) as d:
            assert not fake.lives(pid) and starts(d) == 1


@tap.test
def one_that_does_not_answer_as_it_should_is_ended(case):
    for how, why in (('mute', 'silent for'), ('version', 'it speaks another version'), ('fatal', 'fallen off'),
                     ('die', 'x.c:7: assertion failed')):
        with State(case) as state, state.fronts(FAKE_ADOPT=how) as front:
            pid = left_by(front)
            with front(*(['--engine-timeout', '4'] if how == 'mute' else [])) as d:
                assert d.log('is not adopted: .*' + why), d.lines
                assert not fake.lives(pid)
                s = d.status()
                assert s.state == qk.STATE_READY and s.engine.restarts == 0, s


@tap.test
def an_engine_that_died_meanwhile_is_replaced(case):
    with State(case) as state, state.fronts() as front:
        pid = left_by(front)
        os.kill(pid, signal.SIGKILL)
        gone(pid)
        with front() as d:
            assert d.log('the engine of the previous front is gone') and d.status().engine.pid != pid


@tap.test
def a_process_that_only_has_the_pid_is_left_alone(case):
    with State(case) as state, state.fronts() as front:
        pid = left_by(front)
        os.kill(pid, signal.SIGKILL)
        gone(pid)
        with subprocess.Popen(['sleep', '1000'], start_new_session=True) as other:
            with contextlib.closing(state.journal()) as db, db:
                words, = db.execute("SELECT value FROM note WHERE key='engine 0'").fetchone()
                db.execute("UPDATE note SET value=? WHERE key='engine 0'", (' '.join([str(other.pid)] + words.split(' ')[1:]),))
            with front() as d:
                assert d.log('the engine of the previous front is gone')
                assert d.terminate() == 0
            assert other.poll() is None
            other.kill()


@tap.test
def without_a_grace_engines_end_with_their_front(case):
    """An engine of a front that had one is ended by the next."""
    with State(case) as state, state.fronts() as front:
        pid = left_by(front)
        with front('--engine-grace', '0') as d:
            assert d.log('is not adopted: engine-grace is 0 now') and not fake.lives(pid)
            with open('/proc/%d/cmdline' % d.status().engine.pid, encoding='utf-8') as f:
                assert '--grace' not in f.read()
            assert d.terminate() == 0


@tap.test
def a_folder_that_others_may_look_into_is_not_used(case):
    with State(case) as state, state.fronts() as front:
        pid = left_by(front)
        with contextlib.closing(state.journal()) as db:
            folder, = db.execute("SELECT value FROM note WHERE key='runtime'").fetchone()
        os.chmod(folder, 0o755)
        with front() as d, Client(d) as c:
            assert d.log('is not adopted: its sockets are in a folder that quarkd no longer owns') and not fake.lives(pid)
            assert not c.welcome.local_path.startswith(folder + '/')
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


@tap.test
def all_setups_are_taken_over(case):
    """One that was dropped meanwhile has no engine any more."""
    with State(case) as state, state.fronts() as front:
        with front() as d, Client(d) as c:
            for name in ('second', 'third'):
                c.send(load=qk.Load(name=name, gauge='builtin:fake:digest=9', mass=0.2))
                c.expect('setup')
            d.status_when(lambda s: [x.state for x in s.setups] == 3 * [qk.STATE_READY])
            pids = front.engines()
            c.submit(1, source=qk.SOURCE_Z2, setup='second', max_iter=fake.HOLD_ONCE)
            d.status_when(lambda s: s.counters.running == 1)
            kill(d)
        with front() as d, Client(d, c.client_id) as c2:
            assert d.log('third: engine adopted') and d.log('second: engine adopted')
            once_more(c2, 1, 1, source=qk.SOURCE_Z2, setup='second', max_iter=fake.HOLD_ONCE)
            assert c2.expect('result').status == 0
            c2.ack(1)
            d.status_when(lambda s: [x.state for x in s.setups] == 3 * [qk.STATE_READY])
            assert front.engines() == pids and starts(d) == 0
            kill(d)
        with contextlib.closing(state.journal()) as db, db:
            db.execute('DELETE FROM setup WHERE id=2')
        with front() as d:
            assert d.log('ending the engine of a setup that no longer exists')
            assert len(d.status().setups) == 2 and len(front.engines()) == 2
            assert d.terminate() == 0


@tap.test
def a_front_that_cannot_serve_leaves_the_engine_alone(case):
    """The address is taken: requests and engine wait for the next."""
    with State(case) as state, state.fronts() as front, case.daemon() as other:
        with front() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
            pid = d.status_when(lambda s: s.counters.running == 1).engine.pid
            kill(d)
        with front('--listen', other.endpoint, wait=None) as d:
            assert d.process.wait(TIMEOUT) == 69 and fake.lives(pid)
        with front() as d, Client(d, c.client_id) as c2:
            once_more(c2, 1, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
            assert c2.expect('result').status == 0 and d.status().engine.pid == pid


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
