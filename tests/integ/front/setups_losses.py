"""Part of test_front_setups.py: engines and fronts that are killed, engines that do not start."""
import contextlib
import os
import signal
import tempfile
import threading

import tap

try:
    import numpy as np
    from front_case import LATER, State, check_solves, fake, field, kill, once_more
    from front_driver import STATUS, Client, qk
    from setups_case import FAKE, check, drop, load, load_and_wait, results_of, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


@tap.test
def the_loss_of_one_engine_is_not_noticed_by_another(case):
    with case.daemon('--slots', '1') as d, Client(d) as c, Client(d) as other:
        load_and_wait(d, c, 'heavy')
        other.upload(other.submit(1, max_iter=fake.HOLD), [field()])
        d.status_when(lambda s: s.counters.running == 1)
        c.upload(c.submit(1, setup='heavy', max_iter=fake.DIE), [field()])
        assert c.expect('result').status == STATUS['ENGINE_LOST']
        c.ack(1)
        assert setups(d)['main'].restarts == 0 and d.status().counters.running == 1
        wait_for(d, 'heavy', qk.STATE_READY)
        os.kill(d.status(setup='heavy').engine.pid, signal.SIGKILL)
        d.log('heavy: engine lost', 3)
        wait_for(d, 'heavy', qk.STATE_READY)
        check(c, 3, setup='heavy')
        other.send(cancel=qk.Cancel(request=1))
        assert other.expect('result').status == STATUS['CANCELLED']
        other.ack(1)
        os.kill(d.status().engine.pid, signal.SIGKILL)  # and the default
        check(c, 3, setup='heavy')
        d.log(r'\bengine lost', 4)
        wait_for(d, 'main', qk.STATE_READY)
        check(c, 2)
        assert d.terminate() == 0


@tap.test
def setups_come_back_with_their_requests_after_a_kill(case):
    with State(case) as state:
        b, fields = field(), [field() for _ in range(3)]
        with state.daemon('--slots', '1') as d, Client(d) as c:
            for name, csw in (('heavy', 1.0), ('gone', 5.0), ('bad', 0.0)):
                load(c, name, gauge=FAKE + (':refuse=104' if name == 'bad' else ''), csw=csw)
            wait_for(d, 'bad', qk.STATE_FAILED)
            for name in ('heavy', 'gone'):
                wait_for(d, name, qk.STATE_READY)
            c.upload(c.submit(1, setup='gone'), [b])
            c.expect('result')
            drop(c, 'gone')
            wait_for(d, 'gone', None)
            c.upload(c.submit(3, setup='heavy', max_iter=fake.HOLD_ONCE), fields)
            c.upload(c.submit(1), [b])
            c.expect('result')
            c.send(make_default=qk.MakeDefault(name='heavy'))
            c.expect('setup')
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
            kill(d)
        with state.daemon('--slots', '1', '--csw', '9', env=LATER, wait=None) as d:
            d.process.wait()
            assert any('holds requests for another operator' in line for line in d.lines)
        with state.daemon('--slots', '1', env=LATER) as d, Client(d, c.client_id) as c2:
            d.status_when(lambda s: all(x.state == qk.STATE_READY for x in s.setups))
            there = setups(d)
            assert set(there) == {'main', 'heavy'} and there['heavy'].is_default, there
            c2.request = c.request
            once_more(c2, 1, 1, setup='gone')
            assert np.array_equal(c2.fetch(c2.expect('result')), 7 * b)
            once_more(c2, 3, 2, setup='heavy', max_iter=fake.HOLD_ONCE)
            results = {r.rhs: r for r in results_of(c2, 2, 3)}
            for i in range(3):
                assert np.array_equal(c2.fetch(results[i]), 3 * fields[i])
            once_more(c2, 1, 3)
            (r,) = results_of(c2, 3, 1)
            assert np.array_equal(c2.fetch(r), 2 * b)
            for request in (1, 2, 3):
                c2.ack(request)
            c2.request = 3
            check(c2, 3)
            c2.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 0)
            assert d.terminate() == 0
        with state.daemon() as d:  # the row of the one that was dropped went with its last request
            assert set(setups(d)) == {'main', 'heavy'}
            assert d.terminate() == 0
        assert state.rows('setup') == 1
        state.is_empty()


@tap.test
def what_waits_for_a_setup_that_cannot_come_back_is_told(case):
    with State(case) as state:
        file = os.path.join(state.dir, 'cfg')
        gauge = FAKE + ':needs=' + file
        open(file, 'w', encoding='utf-8').close()
        with state.daemon('--slots', '1') as d, Client(d) as c:
            load_and_wait(d, c, 'heavy', gauge=gauge)
            c.upload(c.submit(2, setup='heavy', max_iter=fake.HOLD), [field(), field()])
            c.submit(1, setup='heavy')  # nothing of it has come
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 1)
            kill(d)
        os.unlink(file)
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            s = wait_for(d, 'heavy', qk.STATE_FAILED)
            assert s.status == STATUS['IO_ERROR'] and file in s.text, s
            once_more(c2, 2, 1, setup='heavy', max_iter=fake.HOLD)
            for r in results_of(c2, 1, 2):
                assert r.status == STATUS['ENGINE_LOST'] and file in r.text, r
            once_more(c2, 1, 2, setup='heavy')
            assert results_of(c2, 2, 1)[0].status == STATUS['ENGINE_LOST']
            for request in (1, 2):
                c2.ack(request)
            c2.request = 2
            check_solves(c2)
            open(file, 'w', encoding='utf-8').close()
            load_and_wait(d, c2, 'heavy', gauge=gauge)
            check(c2, 3, setup='heavy')
            assert d.terminate() == 0


@tap.test
def a_load_goes_on_after_a_kill(case):
    """It becomes the default as was asked for; that it was so once is no reason later."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            go = os.path.join(state.dir, 'go')
            os.mkfifo(go)
            load(c, 'next', gauge=FAKE + ':wait=' + go, make_default=True)
            d.status_when(lambda s: any(x.phase == 'read' for x in s.setups))
            kill(d)
        with state.daemon(wait=None) as d, Client(d) as c:
            with open(go, 'w', encoding='utf-8'):
                pass
            d.status_when(lambda s: s.setup.name == 'next')
            wait_for(d, 'main', qk.STATE_READY)
            c.send(make_default=qk.MakeDefault(name='main'))
            c.expect('setup')
            kill(d)
        with state.daemon() as d:
            with open(go, 'w', encoding='utf-8'):
                pass
            wait_for(d, 'next', qk.STATE_READY)
            assert setups(d)['main'].is_default


@tap.test
def a_drop_goes_on_after_a_kill(case):
    with State(case) as state:
        b = field()
        with state.daemon() as d, Client(d) as c:
            load_and_wait(d, c, 'heavy')
            c.upload(c.submit(1, setup='heavy', max_iter=fake.HOLD_ONCE), [b])
            d.status_when(lambda s: s.counters.running == 1)
            drop(c, 'heavy')
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            once_more(c2, 1, 1, setup='heavy', max_iter=fake.HOLD_ONCE)
            (r,) = results_of(c2, 1, 1)
            assert r.status == 0 and np.array_equal(c2.fetch(r), 3 * b)
            wait_for(d, 'heavy', None)
            c2.ack(1)


@tap.test
def journals_of_versions_before_are_read(case):
    drop_wall = 'ALTER TABLE rhs DROP COLUMN wall;'
    drop_parts = drop_wall + 'ALTER TABLE job DROP COLUMN token; ALTER TABLE job DROP COLUMN arrived;'
    drop_hq = drop_parts + 'ALTER TABLE rhs DROP COLUMN hq_residual;'
    drop_digest = drop_hq + 'ALTER TABLE rhs DROP COLUMN digest;'
    drop_lattice = drop_digest + 'ALTER TABLE job DROP COLUMN lattice;'
    drop_setups = drop_lattice + 'ALTER TABLE job DROP COLUMN setup; DROP TABLE setup;'
    for version, change in ((8, drop_wall), (7, drop_parts), (6, drop_hq), (5, drop_hq), (4, drop_hq), (3, drop_digest), (2, drop_lattice), (1, drop_setups)):
        with State(case) as state:
            with state.daemon() as d, Client(d) as c:
                c.upload(c.submit(1, max_iter=fake.HOLD_ONCE), [field()])
                d.status_when(lambda s: s.counters.running == 1)
                kill(d)
            with contextlib.closing(state.journal()) as db:
                db.executescript(change + "UPDATE note SET value='%d' WHERE key='version'" % version)
            with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
                once_more(c2, 1, 1, max_iter=fake.HOLD_ONCE)
                assert results_of(c2, 1, 1)[0].status == 0
                c2.ack(1)
                load_and_wait(d, c2, 'heavy')


@tap.test
def random_loads_and_drops_under_traffic_lose_nothing(case):
    """Clients solve on setups that come and go: each request is answered rightly, or told that its setup is not there."""
    rng = np.random.default_rng(11)
    with case.daemon('--max-setups', '3', '--slots', '2') as d, Client(d) as operator:
        stop, wrong, solved = threading.Event(), [], [0]

        def traffic(name, factor):
            with Client(d, user=name) as c:
                while not stop.is_set():
                    accepted = c.submit(1, setup=name, expect=None)
                    kind, body = c.receive()
                    if kind == 'rejected':
                        if body.status not in (STATUS['NOT_FOUND'], STATUS['NOT_READY']):
                            wrong.append(body)
                        continue
                    b = field()
                    c.upload(body, [b])
                    r = c.expect('result')
                    if r.status == 0 and np.array_equal(c.fetch(r), factor * b):
                        solved[0] += 1
                    elif r.status != STATUS['CANCELLED']:
                        wrong.append(r)
                    c.ack(c.request)
                del accepted

        threads = [threading.Thread(target=traffic, args=(n, f)) for n, f in (('main', 2), ('a', 3), ('b', 4), ('c', 5))]
        for t in threads:
            t.start()
        try:
            for _ in range(40):
                name = 'abc'[rng.integers(3)]
                if rng.integers(3):
                    operator.send(load=qk.Load(name=name, gauge=FAKE, csw='abc'.index(name) + 1))
                else:
                    operator.send(drop=qk.Drop(name=name, now=bool(rng.integers(2))))
                kind, body = operator.receive()
                assert kind in ('setup', 'error'), body
                operator.control.poll(50)
        finally:
            stop.set()
            for t in threads:
                t.join()
        assert not wrong and solved[0] > 0, (wrong, solved)
        d.status_when(lambda s: s.counters.requests == 0 and s.counters.running == 0)
        assert d.status().memory_used == 0
        check_solves(operator)
        assert d.terminate() == 0


# Every setup but the first waits for ever, unless there is a file that lets it go.
LAUNCHER = """#!/bin/sh
shift 2
case "$*" in *engine-*-0-*) exec "$@" ;; esac
[ ! -e "$(dirname "$0")/go" ] || exec "$@"
echo 'launcher: Job 7 step creation temporarily disabled, retrying' >&2
echo 'launcher: Requested nodes are busy' >&2
exec sleep 1000
"""


@tap.test
def a_setup_whose_engine_does_not_start_says_why(case):
    with tempfile.TemporaryDirectory() as folder:
        launcher, go = os.path.join(folder, 'launcher'), os.path.join(folder, 'go')
        with open(launcher, 'w', encoding='utf-8') as f:
            f.write(LAUNCHER)
        os.chmod(launcher, 0o755)
        with case.daemon('--ranks', '2', '--mpirun', launcher, '--start-timeout', '3') as d, Client(d) as c:
            done = case.ctl(d, 'load', 'other', '--kappa', '0.12')
            assert done.returncode == 75, done
            why = 'it did not start within 3 s (start-timeout); the last lines of its output: ' \
                'launcher: Job 7 step creation temporarily disabled, retrying / launcher: Requested nodes are busy'
            assert 'other: %s (ENGINE_LOST)' % why in done.stderr, done
            failed = setups(d)['other']
            assert (failed.state, failed.status, failed.text) == (qk.STATE_FAILED, STATUS['ENGINE_LOST'], why), failed
            assert d.status(setup='other').engine.last_error == why
            assert why in case.ctl(d, 'status').stdout
            assert c.submit(1, setup='other', expect='rejected').status == STATUS['NOT_FOUND']
            check(c, 2)  # the first one serves on
            with open(go, 'w', encoding='utf-8'):
                pass
            done = case.ctl(d, 'load', 'other', '--kappa', '0.12')
            assert done.returncode == 0, done
            check(c, 2, setup='other')
            assert d.terminate() == 0
