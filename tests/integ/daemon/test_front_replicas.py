#!/usr/bin/env python3
"""One setup on several engines that only pretend: test_front_replicas.py QUARKD"""
import os
import signal
import sys
import tempfile
import urllib.request

import tap

try:
    import numpy as np
    from front_case import Case, State, check_solves, fake, field, gone, kill, once_more
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FAKE = 'builtin:fake'


def replicas(status):
    return status.engine.replica


def all_ready(daemon, n=2, **more):
    """Their reports, once they are."""
    return replicas(daemon.status_when(lambda s: len(replicas(s)) == n and all(r.state == qk.STATE_READY for r in replicas(s)), **more))


def shot(daemon, number):
    """That replica is killed; returns once the front has another engine for it."""
    before = replicas(daemon.status())[number]
    os.kill(before.pid, signal.SIGKILL)
    return replicas(daemon.status_when(lambda s: replicas(s)[number].restarts > before.restarts and replicas(s)[number].state == qk.STATE_READY))


@tap.test
def work_is_spread_over_all_engines(case):
    """One pool of slots: of right-hand sides that come together each engine has its part, and what waits goes where a slot is free."""
    with case.daemon('--replicas', '2', '--slots', '4') as d, Client(d) as c:
        all_ready(d)
        c.upload(c.submit(9, max_iter=fake.HOLD), [field() for _ in range(9)])
        s = d.status_when(lambda s: s.counters.running == 8 and s.counters.queued == 1, activity=True)
        assert (s.engine.slots, s.engine.slots_busy) == (8, 8), s.engine
        assert [(r.slots, r.slots_busy) for r in replicas(s)] == [(4, 4), (4, 4)], replicas(s)
        numbers = sorted(slot.slot for slot in s.activity.slot)
        assert numbers == [0, 1, 2, 3, 88, 89, 90, 91], numbers
        c.send(cancel=qk.Cancel(request=1))
        assert {r.status for r in c.results(9)} == {STATUS['CANCELLED']}
        c.ack(1)
        check_solves(c, 16)
        s = d.status_when(lambda s: s.counters.running == 0)
        assert [r.solved > 0 for r in replicas(s)] == [True, True] and sum(r.solved for r in replicas(s)) == 16, replicas(s)
        assert d.terminate() == 0


@tap.test
def a_setup_of_one_engine_says_nothing_of_replicas(case):
    with case.daemon() as d, Client(d) as c:
        check_solves(c)
        assert not replicas(d.status())
        assert d.terminate() == 0


@tap.test
def a_lost_engine_costs_only_what_it_had(case):
    """The other one goes on with its own, and takes what the lost one had."""
    with case.daemon('--replicas', '2', '--slots', '2') as d, Client(d) as c:
        all_ready(d)
        c.upload(c.submit(2, max_iter=fake.HOLD), [field() for _ in range(2)])
        d.status_when(lambda s: [r.slots_busy for r in replicas(s)] == [1, 1])
        there = shot(d, 0)
        assert there[1].restarts == 0 and there[1].slots_busy == 2, there
        check_solves(c, 3)
        c.send(cancel=qk.Cancel(request=1))
        assert {r.status for r in c.results(2)} == {STATUS['CANCELLED']}
        c.ack(1)
        assert d.terminate() == 0


@tap.test
def an_engine_that_is_lost_again_and_again_ends_no_right_hand_side(case):
    with case.daemon('--replicas', '2', '--slots', '2') as d, Client(d) as c, Client(d) as other:
        all_ready(d)
        for n in range(4):
            # one is held on each engine; what was lost with the first goes to the second
            a = c.submit(2, max_iter=fake.HOLD)
            c.upload(a, [field() for _ in range(2)])
            d.status_when(lambda s: [r.slots_busy for r in replicas(s)] == [1, 1])
            there = shot(d, 0)
            assert [r.restarts for r in there] == [n + 1, 0], there
            d.status_when(lambda s: [r.slots_busy for r in replicas(s)] == [0, 2])
            check_solves(other, 2)
            c.send(cancel=qk.Cancel(request=a.request))
            assert {r.status for r in c.results(2)} == {STATUS['CANCELLED']}
            c.ack(a.request)
        s = d.status()
        assert (s.counters.lost, s.counters.converged) == (0, 8), s.counters
        assert d.terminate() == 0


@tap.test
def a_right_hand_side_that_ends_engines_ends_two(case):
    """It is tried on another one, and then no more; all others are solved."""
    with case.daemon('--replicas', '3', '--slots', '2') as d, Client(d) as c, Client(d) as other:
        all_ready(d, 3)
        c.upload(c.submit(1, max_iter=fake.DIE), [field()])
        check_solves(other, 12)
        assert c.expect('result').status == STATUS['ENGINE_LOST']
        c.ack(1)
        check_solves(other, 12)
        s = d.status_when(lambda s: all(r.state == qk.STATE_READY for r in replicas(s)))
        assert sorted(r.restarts for r in replicas(s)) == [0, 1, 1], replicas(s)
        assert d.terminate() == 0


@tap.test
def users_have_equal_shares_of_the_pool(case):
    with case.daemon('--replicas', '2', '--slots', '1') as d, Client(d, user='ann') as a, Client(d, user='bob') as b:
        all_ready(d)
        requests = [a.submit(1, max_iter=fake.HOLD) for _ in range(4)]
        for r in requests:
            a.upload(r, [field()])
        d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 2)
        b.upload(b.submit(4, max_iter=fake.HOLD), [field() for _ in range(4)])
        d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 6)
        a.send(cancel=qk.Cancel(request=1))
        a.expect('result')
        s = d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 5, activity=True)
        assert {u.name: u.running for u in s.activity.user} == {'ann': 1, 'bob': 1}, s.activity.user


@tap.test
def contractions_are_made_by_any_engine(case):
    with case.daemon('--replicas', '2', '--slots', '12') as d, Client(d) as c:
        all_ready(d)
        kept = c.keep()
        for _ in range(3):
            c.contract(kept, source=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 1)


@tap.test
def engines_of_a_killed_front_are_adopted(case):
    """All of them, with what they had in flight."""
    with State(case) as state, state.fronts() as front:
        fields = [field() for _ in range(4)]
        with front('--replicas', '2', '--slots', '2') as d, Client(d) as c:
            pids = [r.pid for r in all_ready(d)]
            c.upload(c.submit(4, max_iter=fake.HOLD_ONCE), fields)
            d.status_when(lambda s: [r.slots_busy for r in replicas(s)] == [2, 2])
            kill(d)
        with front('--replicas', '2', '--slots', '2') as d, Client(d, c.client_id) as c2:
            assert d.log(r'replica 0: engine adopted in') and d.log(r'replica 1: engine adopted in')
            once_more(c2, 4, 1, max_iter=fake.HOLD_ONCE)
            for r in c2.results(4):
                assert r.status == 0 and np.array_equal(c2.fetch(r), 2 * fields[r.rhs]), r
            c2.ack(1)
            there = all_ready(d)
            assert [(r.pid, r.restarts) for r in there] == [(p, 0) for p in pids], there
            d.status_when(lambda s: s.counters.requests == 0)
            kill(d)
        with front('--replicas', '1', '--slots', '2') as d, Client(d) as c3:  # what is too many goes
            for pid in pids:
                gone(pid)
            check_solves(c3)
            assert d.terminate() == 0
        state.is_empty()


@tap.test
def the_others_wait_for_the_checkpoint_of_the_first(case):
    with tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, 'go')
        os.mkfifo(go)
        with case.daemon('--replicas', '2', '--solver', 'mg', '--mg-checkpoint', os.path.join(folder, 'mg'),
                         env={'FAKE_LOAD': 'save', 'FAKE_GO': go}) as d:
            s = d.status_when(lambda s: replicas(s)[1].phase)
            assert replicas(s)[0].state == qk.STATE_READY and replicas(s)[1].phase == 'files of another replica', replicas(s)
            with open(go, 'w', encoding='utf-8'):
                pass
            all_ready(d)
            with open(go, 'w', encoding='utf-8'):
                pass
            assert d.terminate() == 0


@tap.test
def multigrid_is_refreshed_by_all_or_none(case):
    """One engine wishes it. One is told to and writes the checkpoint, the other to read that, and so is one that is started again without."""
    with case.daemon('--replicas', '2', '--solver', 'mg', env={'FAKE_WISH': '1'}) as d, Client(d) as c:
        d.status_when(lambda s: [r.refreshes for r in replicas(s)] == [1, 1])
        assert d.log('multigrid of all replicas is refined')
        told = [line for line in d.lines if line.startswith('fake engine: refresh')]
        assert told == ['fake engine: refresh 1 of kind 1, writes\n', 'fake engine: refresh 1 of kind 3\n'], told
        shot(d, 1)  # it has not read the checkpoint, as it says
        s = d.status_when(lambda s: [r.refreshes for r in replicas(s)] == [1, 1])
        assert len([line for line in d.lines if line.startswith('fake engine: refresh 1 of kind 3')]) == 2, d.lines
        assert [r.restarts for r in replicas(s)] == [0, 1], replicas(s)
        check_solves(c, 4)
        assert d.terminate() == 0


VECTOR = dict(source=qk.SOURCE_VECTOR, vectors='low', column=[qk.Column(vector=i % 4) for i in range(8)])


def eigen(client, request, setup='main'):
    problem = qk.EigenProblem(name='low', kind=qk.EIGEN_NORMAL, count=4, tol=1e-8, space=4 + fake.SOLVE)
    client.send(eigen=qk.Eigen(request=request, setup=setup, problem=problem))


@tap.test
def eigenvectors_are_read_by_the_engines_that_have_not_made_them(case):
    with State(case) as state, state.daemon('--replicas', '2', '--slots', '4') as d, Client(d) as c:
        all_ready(d)
        eigen(c, 1)
        c.expect('accepted')
        assert c.expect('result').status == 0
        c.ack(1)
        assert d.log('fake engine: eigen low from -1') and d.log('fake engine: eigen low again from 255')
        shot(d, 0)
        assert d.log('fake engine: eigen low again from 255', 2)
        c.request = 1
        c.submit(8, **VECTOR)
        for r in c.results(8):
            assert r.status == 0 and c.fetch(r)[9] == r.rhs % 4, r
        c.ack(2)
        s = d.status()
        assert all(r.solved > 0 for r in replicas(s)) and s.eigen_used == 2 << 21, s
        assert d.terminate() == 0
    with case.daemon('--replicas', '2') as d, Client(d) as c:
        all_ready(d)
        eigen(c, 1)
        rejected = c.expect('rejected')
        assert rejected.status == STATUS['UNSUPPORTED'] and 'read eigenvectors from the state folder' in rejected.text, rejected
        assert d.terminate() == 0


@tap.test
def what_is_wrong_is_refused(case):
    for options, why in ((('--replicas', '0'), 'replicas'), (('--replicas', '17'), 'replicas'),
                         (('--replicas', '2', '--devices', '0'), '2 replicas of 1 ranks need 2; one that is to be shared is listed several times'),
                         (('--devices', '0,x'), 'must be numbers of devices'), (('--devices', ''), 'must be numbers of devices'),
                         (('--numa', 'never'), 'numa')):
        done = case.run('--gauge', 'fake', '--mass', '0.1', *options)
        assert done.returncode == 64 and why in done.stderr, (options, done.stderr)
    with case.daemon() as d, Client(d) as c:
        for more, why in ((dict(replicas=0), 'replicas = 0: must be 1 to 16'), (dict(replicas=17), 'replicas = 17: must be 1 to 16'),
                          (dict(replicas=3, devices='0,1'), '3 replicas of 1 ranks need 3'), (dict(devices='1,'), 'must be numbers of devices')):
            c.send(load=qk.Load(name='new', gauge=FAKE, csw=1.0, **more))
            error = c.expect('error')
            assert error.status == STATUS['BAD_ARGUMENT'] and why in error.text, error
        c.send(load=qk.Load(name='new', gauge=FAKE, csw=1.0, replicas=2, devices='0,0'))
        c.expect('setup')
        all_ready(d, setup='new')
        b = field()
        for (r, x) in c.solve([b] * 6, setup='new'):
            assert r.status == 0 and np.array_equal(x, 3 * b), r
        c.send(load=qk.Load(name='new', gauge=FAKE, csw=1.0, replicas=3))
        assert 'exists with other parameters' in c.expect('error').text
        assert d.terminate() == 0


@tap.test
def metrics_show_each_engine(case):
    with case.daemon('--replicas', '2', '--slots', '2', '--http', '127.0.0.1:0') as d, Client(d) as c:
        all_ready(d)
        check_solves(c, 6)
        address = 'http://127.0.0.1:' + d.log(r'over HTTP on 127\.0\.0\.1:(\d+)')[1]
        with urllib.request.urlopen(address + '/metrics', timeout=20) as answer:
            text = answer.read().decode()
        samples = dict(line.rsplit(' ', 1) for line in text.splitlines() if line.startswith('quarkd_replica_'))
        assert samples['quarkd_replica_ready{setup="main",replica="1"}'] == '1', samples
        assert sum(float(samples['quarkd_replica_solved_total{setup="main",replica="%d"}' % r]) for r in range(2)) == 6, samples
        assert d.terminate() == 0


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
