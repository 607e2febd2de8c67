#!/usr/bin/env python3
"""Private setups that are loaded again in place, with their engines: test_front_in_place.py QUARKD QUARKCTL"""
import contextlib
import os
import re
import signal
import sys
import tempfile

import tap

try:
    import numpy as np
    from field_links import noisy, send
    from front_case import State, fake, field, gone, kill, once_more
    from front_driver import STATUS, Client, qk
    from setups_case import FAKE, Setups, check, drop, load, refused, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

DIMS = (4, 4, 4, 4)
LINKS, OTHER = noisy(DIMS, 1), noisy(DIMS, 2)


def gauge_of(client, links=LINKS):
    r = send(client, links)
    client.ack(r.request)
    return 'digest:%016x' % r.digest


def engine(daemon, name='mine'):
    """Pid and number of restarts."""
    e = daemon.status(setup='tester/' + name).engine
    return e.pid, e.restarts


def ready(daemon, csw, name='mine'):
    """Of that csw."""
    def there(s):
        return [x for x in s.setups if x.name == name and x.state == qk.STATE_READY and x.csw == csw]
    return there(daemon.status_when(there))[0]


@contextlib.contextmanager
def loaded(case, *options, **more):
    """A daemon with a client who has `mine` with csw 1, its links, and the pid of its engine."""
    with case.daemon(*options, **more) as d, Client(d) as c:
        gauge = gauge_of(c)
        load(c, 'mine', gauge=gauge, kappa=0.12)
        wait_for(d, 'mine', qk.STATE_READY)
        yield d, c, gauge, engine(d)[0]


@tap.test
def another_operator_and_other_links_go_to_the_same_engine(case):
    with loaded(case) as (d, c, gauge, pid):
        check(c, 3, setup='mine')
        kept = c.submit(1, setup='mine', sink=qk.SINK_KEEP)
        c.upload(kept, [field()])
        assert c.expect('result').status == 0
        c.ack(kept.request)
        other = gauge_of(c, OTHER)
        for n, (csw, links) in enumerate(((2, gauge), (2, other), (5, other), (1, gauge))):
            s = load(c, 'mine', gauge=links, kappa=0.12, csw=csw)
            assert (s.state, s.csw, s.gauge, s.name, s.owner, s.HasField('digest')) == (qk.STATE_LOADING, csw, links, 'mine', 'tester', False), s
            assert ready(d, csw).gauge == links
            check(c, 2 + csw, setup='mine')
            assert engine(d) == (pid, 0) and set(setups(d)) == {'main', 'mine'}
            assert load(c, 'mine', gauge=links, kappa=0.12, csw=csw).state == qk.STATE_READY  # the same again has no effect
            if n == 0:  # it has ended with its setup, though the links are the same
                r = c.submit(source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept.request)], setup='mine', expect='rejected')
                assert r.status == STATUS['NOT_FOUND'] and '%d' % kept.request in r.text, r
        assert sum('engine started' in line for line in d.lines) == 2, d.said()
        drop(c, 'mine')
        wait_for(d, 'mine', None)


@tap.test
def it_waits_for_what_was_accepted_and_the_name_means_the_new_one(case):
    with loaded(case) as (d, c, gauge, pid):
        b = field()
        c.upload(c.submit(1, setup='mine', max_iter=fake.HOLD), [field()])
        waiting = c.submit(1, setup='mine')
        d.status_when(lambda s: s.counters.running == 1)
        for csw in 3, 2, 4, 2:  # the last one counts
            s = load(c, 'mine', gauge=gauge, kappa=0.12, csw=csw)
            assert (s.state, s.phase, s.csw, s.open) == (qk.STATE_LOADING, 'earlier requests', csw, 2), s
            s = load(c, 'mine', gauge=gauge, kappa=0.12, csw=csw)  # the same again
            assert (s.state, s.csw, s.open) == (qk.STATE_LOADING, csw, 2), s
            r = c.submit(1, setup='mine', expect='rejected')
            assert r.status == STATUS['NOT_READY'] and '2 right-hand sides of the one before are open' in r.text, r
        assert 'there are main, mine' in refused(c, 'NOT_FOUND', status=qk.StatusRequest(setup='nothing'))
        c.send(cancel=qk.Cancel(request=waiting.request - 1))
        assert c.expect('result').status == STATUS['CANCELLED']
        c.upload(waiting, [b])  # accepted for csw 1
        result = c.expect('result')
        assert np.array_equal(c.fetch(result), 3 * b)
        c.ack(waiting.request)
        ready(d, 2)
        check(c, 4, setup='mine')
        assert engine(d) == (pid, 0)
        assert sum('takes the place' in line for line in d.lines) == 1, d.said()


@tap.test
def dropped_before_it_has_begun_both_go(case):
    for now in False, True:
        with loaded(case) as (d, c, gauge, _):
            request = c.submit(1, setup='mine', max_iter=fake.HOLD)
            c.upload(request, [field()])
            d.status_when(lambda s: s.counters.running == 1)
            load(c, 'mine', gauge=gauge, kappa=0.12, csw=2)
            assert drop(c, 'mine', now).state == qk.STATE_DRAINING
            if not now:
                assert setups(d)['mine'].open == 1
                # what is being dropped is loaded again in place, too
                s = load(c, 'mine', gauge=gauge, kappa=0.12, csw=1)
                assert s.state == qk.STATE_LOADING, s
                c.send(cancel=qk.Cancel(request=request.request))
                assert c.expect('result').status == STATUS['CANCELLED']
                ready(d, 1)
                drop(c, 'mine')
            wait_for(d, 'mine', None)
            assert not now or c.expect('result').status == STATUS['CANCELLED']


@tap.test
def the_third_one_succeeds_the_one_that_was_idle_longest(case):
    with loaded(case, '--user-setups', '2') as (d, c, gauge, pid), Client(d, user='else') as other:
        load(other, 'mine', gauge=gauge_of(other), kappa=0.12)
        d.status_when(lambda s: all(x.state == qk.STATE_READY for x in s.setups))
        load(c, 'second', gauge=gauge, kappa=0.12, csw=2)
        ready(d, 2, 'second')
        s = load(c, 'third', gauge=gauge, kappa=0.12, csw=3)
        assert re.fullmatch(r'setup mine was dropped to make room: idle for \d+ s \(--user-setups 2\)', s.text) and not s.HasField('status'), s
        s = ready(d, 3, 'third')
        assert 'setup mine was dropped' in s.text, s
        assert engine(d, 'third') == (pid, 0)
        check(c, 5, setup='third')
        check(c, 4, setup='second')
        check(other, 3, setup='mine')
        assert {(s.name, s.owner) for s in d.status().setups} == {('main', ''), ('mine', 'else'), ('second', 'tester'), ('third', 'tester')}
        assert 'no setup of this name' in refused(c, 'NOT_FOUND', status=qk.StatusRequest(setup='tester/mine'))
        for csw in range(4, 10):  # many at once: each is told, none is there twice
            c.send(load=qk.Load(name='new%d' % csw, gauge=gauge, kappa=0.12, csw=csw))
            c.send(load=qk.Load(name='new%d' % csw, gauge=gauge, kappa=0.12, csw=csw))
        for _ in range(12):
            name, body = c.receive()
            assert name == 'setup' or 'none is idle' in body.text, body
        d.status_when(lambda s: all(x.state == qk.STATE_READY for x in s.setups))
        assert len(setups(d)) == 4


@tap.test
def what_another_user_has_is_not_named(case):
    with loaded(case, '--max-setups', '2') as (d, _, _, _), Client(d, user='else') as other:
        s = load(other, 'its', gauge=gauge_of(other), kappa=0.12)
        assert re.fullmatch(r'setup of another user was dropped to make room: idle for \d+ s \(--max-setups 2\)', s.text), s
        wait_for(d, 'its', qk.STATE_READY)


@tap.test
def a_load_that_fails_in_place_says_why_and_another_one_starts_anew(case):
    with tempfile.TemporaryDirectory() as folder, loaded(case) as (d, c, gauge, pid):
        need = os.path.join(folder, 'file')
        open(need, 'w', encoding='utf-8').close()
        load(c, 'public', gauge='%s:digest=8:needs=%s' % (FAKE, need), kappa=0.12)
        wait_for(d, 'public', qk.STATE_READY)
        os.unlink(need)
        load(c, 'mine', gauge='digest:%016x' % 8, kappa=0.12)
        s = wait_for(d, 'mine', qk.STATE_FAILED)
        assert (s.status, 'no such file' in s.text) == (113, True), s
        r = c.submit(1, setup='mine', expect='rejected')
        assert r.status == STATUS['NOT_FOUND'] and 'no such file' in r.text, r
        load(c, 'mine', gauge=gauge, kappa=0.12, csw=2)
        ready(d, 2)
        check(c, 4, setup='mine')
        assert engine(d)[0] != pid
        check(c, 3, setup='public')
        # a bad one whose place is taken before the engine has said so
        load(c, 'mine', gauge='digest:%016x' % 8, kappa=0.12)
        load(c, 'mine', gauge=gauge, kappa=0.12, csw=7)
        ready(d, 7)
        check(c, 9, setup='mine')
        assert 'kappa = 1e+09' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='mine', gauge=gauge, kappa=1e9)) or True
        check(c, 9, setup='mine')  # what cannot be costs nothing


@tap.test
def engines_that_are_killed_come_back_with_the_new_one(case):
    with tempfile.TemporaryDirectory() as folder, loaded(case) as (d, c, gauge, pid):
        fifo = os.path.join(folder, 'fifo')
        os.mkfifo(fifo)

        def go():
            with open(fifo, 'w', encoding='utf-8'):
                pass
        load(c, 'public', gauge='%s:digest=8:wait=%s' % (FAKE, fifo), kappa=0.12)
        go()
        wait_for(d, 'public', qk.STATE_READY)
        # while it loads in place
        load(c, 'mine', gauge='digest:%016x' % 8, kappa=0.12, csw=2)
        d.status_when(lambda s: s.setups and [x.phase for x in s.setups if x.name == 'mine'] == ['read'])
        os.kill(pid, signal.SIGKILL)
        gone(pid)
        go()
        ready(d, 2)
        check(c, 4, setup='mine')
        new, restarts = engine(d)
        assert new != pid and restarts == 1, (new, restarts)
        # while what was accepted runs
        held = c.submit(1, setup='mine', max_iter=fake.HOLD)
        c.upload(held, [field()])
        d.status_when(lambda s: s.counters.running == 1)
        load(c, 'mine', gauge=gauge, kappa=0.12, csw=3)
        os.kill(new, signal.SIGKILL)
        gone(new)
        go()  # it is loaded once more for that
        d.status_when(lambda s: s.counters.running == 1 and s.engine.restarts == 2, setup='tester/mine')
        c.send(cancel=qk.Cancel(request=held.request))
        assert c.expect('result').status == STATUS['CANCELLED']
        ready(d, 3)
        check(c, 5, setup='mine')


@tap.test
def others_notice_nothing(case):
    with loaded(case, '--max-setups', '8') as (d, c, gauge, pid), Client(d, user='else') as other, Client(d, user='else') as main:
        load(other, 'mine', gauge=gauge_of(other), kappa=0.12, csw=6)
        d.status_when(lambda s: all(x.state == qk.STATE_READY for x in s.setups))
        b = [field() for _ in range(2)]
        other.upload(other.submit(1, setup='mine', max_iter=fake.HOLD), b[:1])
        main.upload(main.submit(1, max_iter=fake.HOLD), b[1:])
        d.status_when(lambda s: s.counters.running == 2)
        theirs = d.status(setup='else/mine').engine.pid
        for n in range(100):  # without a pause
            c.send(load=qk.Load(name='mine', gauge=gauge, kappa=0.12, csw=n % 7 + 1))
        for _ in range(100):
            assert c.expect('setup').setup.name == 'mine'
        ready(d, 99 % 7 + 1)
        check(c, 99 % 7 + 3, setup='mine')
        assert engine(d) == (pid, 0)
        e = d.status(setup='else/mine').engine
        assert (e.pid, e.restarts, d.status().counters.running) == (theirs, 0, 2), e
        check(other, 8, setup='mine')


@tap.test
def whose_links_were_replaced_lose_them(case):
    """Fields that no setup is made of any more expire; memory is as it was."""
    with loaded(case) as (d, c, gauge, _):
        load(c, 'mine', gauge=gauge_of(c, OTHER), kappa=0.12, csw=2)
        ready(d, 2)
        c.send(release=qk.Release(request=1))
        c.send(release=qk.Release(request=c.request))
        d.status_when(lambda s: 0 < s.counters.kept_bytes <= OTHER.nbytes * 1.1)
        drop(c, 'mine')
        d.status_when(lambda s: s.memory_used == 0)


@tap.test
def a_drop_that_comes_twice_leaves_the_setups_of_others(case):
    """Without CURVE everybody operates, and two users may have a setup of one name."""
    with loaded(case) as (d, c, gauge, _), Client(d, user='else') as other:
        load(other, 'mine', gauge=gauge_of(other), kappa=0.12)
        d.status_when(lambda s: [x.state for x in s.setups if x.owner == 'else'] == [qk.STATE_READY])
        drop(c, 'mine')
        d.status_when(lambda s: sum(x.name == 'mine' for x in s.setups) == 1)
        assert 'else/mine' in refused(c, 'NOT_FOUND', drop=qk.Drop(name='mine'))
        assert [x.state for x in d.status().setups if x.owner == 'else'] == [qk.STATE_READY]
        assert drop(c, 'else/mine').owner == 'else'


# ---- fronts that follow each other -------------------------------------------------------------------


def notes(state):
    with contextlib.closing(state.journal()) as db:
        return {int(k.split()[1]): v for k, v in db.execute("SELECT key, value FROM note WHERE key LIKE 'engine %'")}


def rows(state):
    with contextlib.closing(state.journal()) as db:
        return dict(db.execute('SELECT id, dropped FROM setup'))


@tap.test
def a_front_that_is_killed_while_it_waits(case):
    """The next one goes on waiting: with the same engine what was accepted ends, and the new one is loaded in place."""
    for held in True, False:
        with State(case) as state, state.fronts() as front:
            with loaded(front_of(front)) as (d, c, gauge, pid):
                c.upload(c.submit(1, setup='mine', max_iter=fake.HOLD_ONCE if held else fake.HOLD), [b := field()])
                d.status_when(lambda s: s.counters.running == 1)
                load(c, 'mine', gauge=gauge, kappa=0.12, csw=2)
                kill(d)
            with front() as d, Client(d, c.client_id) as c2:
                c2.request = c.request
                c2.send(attach=qk.Attach(request=c2.request))  # a result that was there before HELLO is not told otherwise
                c2.expect('attached', skip=('progress', 'credit', 'result'))
                if held:
                    result = c2.expect('result')
                    assert np.array_equal(c2.fetch(result), 3 * b), result
                    c2.ack(result.request)
                else:
                    d.status_when(lambda s: s.counters.running == 1)
                    s = setups(d)['mine']
                    assert (s.state, s.csw, s.open) == (qk.STATE_LOADING, 2, 1), s
                    c2.send(cancel=qk.Cancel(request=c2.request))
                    assert c2.expect('result').status == STATUS['CANCELLED']
                    c2.ack(c2.request)
                ready(d, 2)
                check(c2, 4, setup='mine')
                assert engine(d) == (pid, 0)
                drop(c2, 'mine')
                wait_for(d, 'mine', None)
                assert d.terminate() == 0


def front_of(front):
    class Of:
        daemon = staticmethod(front)
    return Of


@tap.test
def a_front_that_is_killed_while_it_is_loaded(case):
    with tempfile.TemporaryDirectory() as folder, State(case) as state, state.fronts() as front:
        fifo = os.path.join(folder, 'fifo')
        os.mkfifo(fifo)

        def go():
            with open(fifo, 'w', encoding='utf-8'):
                pass
        with loaded(front_of(front)) as (d, c, gauge, pid):
            load(c, 'public', gauge='%s:digest=8:wait=%s' % (FAKE, fifo), kappa=0.12)
            go()
            wait_for(d, 'public', qk.STATE_READY)
            load(c, 'mine', gauge='digest:%016x' % 8, kappa=0.12, csw=2)
            d.status_when(lambda s: [x.phase for x in s.setups if x.name == 'mine'] == ['read'])
            kill(d)
        assert len(notes(state)) == 3
        go()
        with front() as d, Client(d, c.client_id) as c2:
            c2.request = c.request
            ready(d, 2)
            assert engine(d) == (pid, 0)
            check(c2, 4, setup='mine')
            assert d.log('nothing was loaded again', 3)
            for name in 'mine', 'public':
                drop(c2, name)
                wait_for(d, name, None)
            assert d.terminate() == 0


@tap.test
def a_journal_that_ends_between_two_steps(case):
    """Rows and notes of the old setup that are there still, as a front leaves them that is killed between one write and the next."""
    for step in 'row', 'note', 'stale', 'lost', 'before':
        with State(case) as state, state.fronts() as front:
            with loaded(front_of(front)) as (d, c, gauge, pid):
                kill(d)
            old, = rows(state)
            of_old = notes(state)[old]
            with front() as d, Client(d, c.client_id) as c2:
                wait_for(d, 'mine', qk.STATE_READY)
                load(c2, 'mine', gauge=gauge, kappa=0.12, csw=2)
                ready(d, 2)
                kill(d)
            assert set(notes(state)) == {0, old + 1} and rows(state) == {old: 1, old + 1: 0}, (notes(state), rows(state))
            with contextlib.closing(state.journal()) as db, db:
                if step == 'row':  # the row of the old one is alive
                    db.execute('UPDATE setup SET dropped = 0 WHERE id = ?', (old,))
                elif step == 'note':  # the engine is noted for both
                    db.execute('INSERT INTO note VALUES (?, ?)', ('engine %d' % old, of_old))
                elif step == 'lost':  # for none
                    db.execute('DELETE FROM note WHERE key = ?', ('engine %d' % (old + 1),))
                elif step == 'before':  # for the old one alone, though it has got the LOAD of the new one
                    db.execute('UPDATE note SET key = ?, value = ? WHERE key = ?', ('engine %d' % old, of_old, 'engine %d' % (old + 1)))
            env = {'FAKE_ADOPT': 'stale'} if step == 'stale' else {}  # the engine has not got the LOAD of the new one
            with front(env=env) as d, Client(d, c.client_id) as c2:
                c2.request = c.request
                ready(d, 2)
                check(c2, 4, setup='mine')
                same = engine(d) == (pid, 0)
                assert same == (step != 'lost') and set(setups(d)) == {'main', 'mine'}, (step, engine(d), pid)
                drop(c2, 'mine')
                wait_for(d, 'mine', None)
                assert d.terminate() == 0
            if step == 'lost':
                os.kill(pid, signal.SIGKILL)
                gone(pid)


@tap.test
def both_are_killed_and_the_machine_too(case):
    for machine in False, True:
        with State(case) as state:
            with loaded(state) as (d, c, gauge, _):
                c.upload(c.submit(1, setup='mine', max_iter=fake.HOLD_ONCE), [b := field()])
                while len(state.spool()) < 2:
                    c.ping()
                d.status_when(lambda s: s.counters.running == 1)
                load(c, 'mine', gauge=gauge, kappa=0.12, csw=2)
                kill(d)
            if machine:
                state.end_the_machine()
            with state.daemon(env={'FAKE_BEFORE': '1'}) as d, Client(d, c.client_id) as c2:
                c2.request = c.request
                ready(d, 2)
                once_more(c2, 1, c.request, setup='mine', max_iter=fake.HOLD_ONCE)  # of the old one
                result = c2.expect('result')
                assert result.status == 0 and np.array_equal(c2.fetch(result), 3 * b), result
                c2.ack(result.request)
                check(c2, 4, setup='mine')
                assert d.terminate() == 0


if __name__ == '__main__':
    tap.run(Setups(*sys.argv[1:3]))
