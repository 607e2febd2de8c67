#!/usr/bin/env python3
"""EIGEN from the client to the engine, which only pretends: test_front_eigen.py QUARKD QUARKCTL"""
import json
import os
import signal
import subprocess
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import LATER, State, check_solves, fake, field, gone, kill
    from front_driver import STATUS, Client, qk
    from setups_case import Setups, drop, load, load_and_wait, refused, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

try:
    import h5py
except ImportError:
    h5py = None

FEATURE, COUNT = 13, 4


def problem(name='low', count=COUNT, tol=1e-8, action=None, **more):
    if action is not None:
        more['space'] = count + action
    return qk.EigenProblem(**{'name': name, 'kind': qk.EIGEN_NORMAL, 'count': count, 'tol': tol, **more})


def ask(client, p, request=None, expect='accepted', **more):
    if request is None:
        client.request += 1
        request = client.request
    client.send(eigen=qk.Eigen(request=request, problem=p, **more))
    return client.expect(expect, skip=('progress', 'credit', 'result')) if expect else None


def make(client, name='low', **more):
    """The eigenvalues."""
    accepted = ask(client, problem(name, **more))
    result = client.expect('result')
    assert result.status == 0 and result.bytes == accepted.field_bytes, result
    values = client.fetch(result, np.float64).reshape(-1, 2)
    client.ack(accepted.request)
    return values


def sets(daemon, **asked):
    return {s.name: s for s in daemon.status(**asked).setup.eigen}


def vectors(client, name='low', numbers=(0,), request=None, **more):
    """Those of these numbers, as they are."""
    column = more.pop('column', [qk.Column(vector=n) for n in numbers])
    a = client.submit(len(column), request=request, source=qk.SOURCE_VECTOR, vectors=name, work=qk.WORK_SMEAR, tol=0, column=column, **more)
    out = [client.fetch(r) for r in client.results(len(column)) if r.status == 0]
    client.ack(a.request)
    return out


def restart_is(daemon, name, n, again=False):
    assert daemon.log('fake engine: eigen %s%s from %d' % (name, ' again' if again else '', n))


@tap.test
def eigenvectors_are_made_told_and_fetched(case):
    with case.daemon() as d, Client(d) as c:
        assert FEATURE in c.welcome.feature
        values = make(c)
        assert np.array_equal(values, [[0.125, 1e-9], [0.25, 1e-9], [0.375, 1e-9], [0.5, 1e-9]]), values
        s = sets(d)['low']
        assert (s.state, s.kind, s.count, s.tol, s.user) == (qk.EIGEN_KEPT, qk.EIGEN_NORMAL, COUNT, 1e-8, 'tester'), s
        assert (s.lowest, s.highest, s.residual, s.seconds, s.device_bytes, s.host_bytes) == (0.125, 0.5, 1e-9, 0.5, 1 << 20, 1 << 21), s
        x = vectors(c, numbers=(0, 3))
        assert [v[9] for v in x] == [7 * 1.0 * 0 + 8 * n for n in (0, 3)], [v[9] for v in x]  # a work is 1 + its number times as much
        with Client(d, user='other') as o:  # they are the setup's, whoever made them
            assert vectors(o, numbers=(2,))[0][9] == 16
        x, = vectors(c, column=[qk.Column(vector=1)], parity=qk.PARITY_EVEN)
        assert len(x) == 128 * 12 and x[9] == 8 * 1.5
        # a solve, which begins with one
        a = c.submit(source=qk.SOURCE_VECTOR, vectors='low', column=[qk.Column(vector=3)])
        r, = c.results(1)
        assert r.status == 0 and c.fetch(r)[9] == 3
        c.ack(a.request)
        values = make(c, 'lap', kind=qk.EIGEN_LAPLACIAN, links=qk.Smearing(alpha=0, steps=0, links=qk.LINK_SMEAR_STOUT, link_param=[0.1], link_steps=3))
        assert values.shape == (4 * COUNT, 2)
        x, = vectors(c, 'lap', column=[qk.Column(vector=2, t=-1, spin=3)])
        assert list(x[9:13]) == [16, -8, 24, 0]
        check_solves(c)
        assert d.terminate() == 0


def recall(client, name='low', expect='accepted', **more):
    """The values of a set that is there; what else the problem says does not count."""
    accepted = ask(client, problem(name, count=99, tol=1e-3), kept=True, expect=expect, **more)
    if expect != 'accepted':
        return accepted
    result = client.expect('result', skip=('progress', 'credit'))
    assert result.status == 0 and result.bytes == accepted.field_bytes, result
    values = client.fetch(result, np.float64).reshape(-1, 2)
    client.ack(accepted.request)
    return values


@tap.test
def values_of_what_is_kept_are_fetched_again(case):
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state:
        with case.daemon('--state', state) as d, Client(d) as c, Client(d, user='other') as o:
            assert 22 in c.welcome.feature
            values = make(c, space=COUNT + 7)
            slices = make(c, 'lap', kind=qk.EIGEN_LAPLACIAN, links=qk.Smearing(alpha=0, steps=0, links=qk.LINK_SMEAR_STOUT, link_param=[0.1], link_steps=3))
            before = sets(d)['low']
            assert sets(d)['lap'].links.link_steps == 3
            for who in (c, o):
                assert np.array_equal(recall(who), values) and np.array_equal(recall(who, 'lap'), slices)
            assert sets(d)['low'] == before  # neither its time nor its owner
            r = recall(c, 'none', expect='rejected')
            assert r.status == STATUS['NOT_FOUND'] and 'name = "none": setup main has no eigenvectors of this name; it has low, lap' in r.text, r
            c.request -= 1
            held = Client(d, user='third')
            a = ask(held, problem('held', action=fake.HOLD))
            r = recall(c, 'held', expect='rejected')
            assert r.status == STATUS['BUSY'] and 'they are being made' in r.text, r
            c.request -= 1
            # one that waits for its turn uses the set
            b = ask(o, problem('low'), kept=True)
            text = refused(c, 'BUSY', eigen_drop=qk.EigenDrop(name='low'))
            assert '1 right-hand sides that use them have not ended' in text, text
            o.send(cancel=qk.Cancel(request=b.request))
            assert o.expect('result', skip=('progress', 'credit')).status == STATUS['CANCELLED']
            o.ack(b.request)
            b = ask(o, problem('low'), kept=True)
            held.send(cancel=qk.Cancel(request=a.request))
            assert held.expect('result', skip=('progress', 'credit')).status == STATUS['CANCELLED']
            result = o.expect('result', skip=('progress', 'credit'))
            assert np.array_equal(o.fetch(result, np.float64).reshape(-1, 2), values)
            o.ack(b.request)
            held.ack(a.request)
            held.close()
            assert set(sets(d)) == {'low', 'lap'} and d.terminate() == 0
        with case.daemon('--state', state) as d, Client(d) as c:  # it waits until they are back
            assert np.array_equal(recall(c), values)
            c.send(eigen_drop=qk.EigenDrop(name='low'))
            c.expect('setup')
            assert recall(c, expect='rejected').status == STATUS['NOT_FOUND']


@tap.test
def each_field_is_checked(case):
    with case.daemon() as d, Client(d) as c:
        make(c)
        for how, words, p in (('BAD_ARGUMENT', 'name of 0 bytes', problem('')),
                              ('BAD_ARGUMENT', 'name of 4 bytes', problem('../x')),
                              ('BAD_ARGUMENT', 'count = 0', problem('x', 0)),
                              ('TOO_LARGE', 'count = 4097 is over the limit of 4096', problem('x', 4097)),
                              ('BAD_ARGUMENT', 'tol = nan', problem('x', tol=float('nan'))),
                              ('BAD_ARGUMENT', 'space = 4: must be greater than count = 4', problem('x', space=4)),
                              ('BAD_ARGUMENT', 'order = 3: must be even', problem('x', order=3)),
                              ('BAD_ARGUMENT', 'count = 193: the Laplacian of a time slice has 192', problem('x', 193, kind=qk.EIGEN_LAPLACIAN)),
                              ('BAD_ARGUMENT', 'links: they are for the Laplacian only', problem('x', links=qk.Smearing(alpha=0, steps=0))),
                              ('BAD_ARGUMENT', 'name = low: setup main has eigenvectors of this name (kept)', problem())):
            r = ask(c, p, expect='rejected')
            assert r.status == STATUS[how] and words in r.text, r
            c.request -= 1
        for how, words, more in (('BAD_ARGUMENT', 'request = 0', dict(request=0)),
                                 ('NOT_FOUND', 'there is no setup of this name', dict(setup='x')),
                                 ('BAD_ARGUMENT', 'priority = 10', dict(priority=10)),
                                 ('BAD_ARGUMENT', 'detach_ms', dict(detach_ms=2 ** 40))):
            r = ask(c, problem('x'), expect='rejected', **{'request': 99, **more})
            assert r.status == STATUS[how] and words in r.text, r
        for how, words, more in (('NOT_FOUND', 'vectors = "none": setup main has no eigenvectors of this name; it has low', dict(vectors='none')),
                                 ('BAD_ARGUMENT', 'vectors: source = 7 needs the name', {}),
                                 ('BAD_ARGUMENT', 'vectors of 4 bytes', dict(vectors='a/bc')),
                                 ('BAD_ARGUMENT', 'vector = 4 is outside 0 .. 3 of low', dict(vectors='low', column=[qk.Column(vector=4)])),
                                 ('BAD_ARGUMENT', 'vector = 4096 is outside 0 .. 4095', dict(vectors='low', column=[qk.Column(vector=4096)])),
                                 ('BAD_ARGUMENT', 'slice = 96 is outside 0 .. 95', dict(vectors='low', column=[qk.Column(slice=96)])),
                                 ('BAD_ARGUMENT', 't and spin: those of low have none', dict(vectors='low', column=[qk.Column(spin=1)])),
                                 ('BAD_ARGUMENT', 'vectors: it is for source = 7 only', dict(vectors='low', source=qk.SOURCE_POINT)),
                                 ('BAD_ARGUMENT', 'vector = 1 is outside 0 .. 0', dict(source=qk.SOURCE_POINT, column=[qk.Column(vector=1)]))):
            r = c.submit(request=99, expect='rejected', **{'source': qk.SOURCE_VECTOR, **more})
            assert r.status == STATUS[how] and words in r.text, (r, words)
        for words, m in (('name = "x": setup main has no eigenvectors of this name; it has low', qk.EigenDrop(name='x')),
                         ('there is no setup', qk.EigenDrop(name='low', setup='x'))):
            text = refused(c, 'NOT_FOUND', eigen_drop=m)
            assert words in text, text
        check_solves(c)


@tap.test
def names_are_dropped_and_free_again(case):
    with case.daemon() as d, Client(d) as c, Client(d) as busy:
        make(c)
        a = busy.submit(source=qk.SOURCE_VECTOR, vectors='low', max_iter=fake.HOLD)
        text = refused(c, 'BUSY', eigen_drop=qk.EigenDrop(name='low'))
        assert '1 right-hand sides that use them have not ended' in text, text
        busy.send(cancel=qk.Cancel(request=a.request))
        busy.expect('result')
        busy.ack(a.request)
        c.send(eigen_drop=qk.EigenDrop(name='low'))
        assert c.expect('setup').setup.name == 'main'
        assert not sets(d)
        make(c, count=5)
        assert sets(d)['low'].count == 5
        # of a user, and of a setup, there are so many
        for i in range(3):
            make(c, 'n%d' % i)
        r = ask(c, problem('one-more'), expect='rejected')
        assert r.status == STATUS['BUSY'] and 'the limit is 4' in r.text, r
        for k in range(3):
            with Client(d, user='user%d' % k) as o:
                for i in range(4):
                    make(o, 'u%d-%d' % (k, i))
        with Client(d, user='last') as o:
            r = ask(o, problem('one-more'), expect='rejected')
            assert r.status == STATUS['BUSY'] and '16 names have eigenvectors of setup main, the limit is 16' in r.text, r
        load_and_wait(d, c, 'heavy', kappa=0.12)
        assert not sets(d, setup='heavy')
        ask(c, problem('low'), setup='heavy')
        assert c.expect('result').status == 0
        c.ack(c.request)
        assert set(sets(d, setup='heavy')) == {'low'}
        drop(c, 'heavy')
        wait_for(d, 'heavy', None)
        load_and_wait(d, c, 'heavy', kappa=0.12)
        assert not sets(d, setup='heavy')
        assert d.terminate() == 0


def matrices(rows):
    """Host memory of dense problems while vectors are computed: five matrices."""
    return 5 * 16 * rows ** 2


@tap.test
def their_host_memory_has_a_limit(case):
    with case.daemon('--eigen-memory', '5M', '--max-setups', '2') as d, Client(d) as c, Client(d, user='else') as o:
        s = d.status()
        assert (s.eigen_used, s.eigen_limit) == (0, 5 << 20), s
        whole = 192 << 10  # of 8 columns of 128 sites of 24 reals, at most in two floats each
        r = ask(c, problem('x', count=8 * 27), expect='rejected', request=99)
        words = 'count = 216: the vectors take up to %d bytes of host memory, and %d for matrices of space = 464 rows, the limit is 5242880 (eigen-memory)'
        assert r.status == STATUS['TOO_LARGE'] and words % (27 * whole, matrices(464)) in r.text, r
        r = ask(c, problem('x', count=8, space=264), expect='rejected', request=98)  # it is the matrices that do not fit
        assert r.status == STATUS['TOO_LARGE'] and '%d for matrices of space = 264 rows' % matrices(264) in r.text, r
        make(c)
        assert d.status().eigen_used == 2 << 20  # as the engine says
        load_and_wait(d, c, 'heavy', kappa=0.12)
        a = ask(c, problem('held', count=8, action=fake.HOLD), setup='heavy')
        held = whole + matrices(8 + fake.HOLD)
        assert d.status().eigen_used == (2 << 20) + held
        make(o, 'second')
        r = ask(o, problem('third', count=8 * 5), expect='rejected')
        words = 'up to %d bytes of host memory, and %d for matrices of space = 112 rows: other eigenvectors have %d, the limit is 5242880 (eigen-memory): drop some'
        words %= 5 * whole, matrices(112), (4 << 20) + held
        assert r.status == STATUS['BUSY'] and words in r.text, r
        r = ask(o, problem('third', count=8, kind=qk.EIGEN_LAPLACIAN, tol=1e-4), setup='heavy')  # a quarter of that, and single
        third = 8 * 256 * 6 * 4 + matrices(48)
        assert d.status().eigen_used == (4 << 20) + held + third
        done = json.loads(case.ctl(d, 'status', '--json').stdout)
        assert done['eigen_memory'] == {'used': (4 << 20) + held + third, 'limit': 5 << 20}, done
        assert 'of 5.0 MiB for eigenvectors' in case.ctl(d, 'status').stdout
        c.send(cancel=qk.Cancel(request=a.request))
        c.expect('result')
        assert o.expect('result').status == 0
        assert d.status().eigen_used == 6 << 20  # the fake engine takes more than it should
        c.send(eigen_drop=qk.EigenDrop(name='low'))
        c.expect('setup')
        d.status_when(lambda s: s.eigen_used == 4 << 20)
        drop(c, 'heavy')
        wait_for(d, 'heavy', None)
        assert d.status().eigen_used == 2 << 20
        make(c)
        check_solves(c)


@tap.test
def they_are_a_request_like_any_other(case):
    with case.daemon() as d, Client(d) as c:
        a = ask(c, problem(action=fake.HOLD))
        p = c.expect('progress', skip=())
        while not p.eigen.restart == 2:
            p = c.expect('progress', skip=())
        assert (p.ended, p.queued, len(p.running), p.eigen.converged, p.eigen.count, p.eigen.seconds) == (0, 0, 0, 2, COUNT, 0.5), p
        assert sets(d)['low'].state == qk.EIGEN_MAKING
        check_solves(c)  # beside it
        k = c.keep()
        c.contract(k)
        assert c.expect('result').status == 0
        with Client(d) as o:
            r = o.submit(source=qk.SOURCE_VECTOR, vectors='low', expect='rejected')
            assert r.status == STATUS['BUSY'] and 'they are being made' in r.text, r
            assert 'are being made: cancel the request' in refused(o, 'BUSY', eigen_drop=qk.EigenDrop(name='low'))
            second = ask(o, problem('second'))  # waits, and keeps no contraction waiting
            k = o.keep()
            o.contract(k)
            assert o.expect('result').status == 0
            assert d.status().counters.queued == 1
            # the same again is the same
            again = ask(c, problem(action=fake.HOLD), request=a.request)
            assert again.repeated_submit
            r = ask(c, problem('other'), request=a.request, expect='rejected')
            assert 'exists with other parameters' in r.text, r
            c.send(attach=qk.Attach(request=a.request))
            told = c.expect('attached')
            assert told.eigen.problem == problem(action=fake.HOLD), told
            c.send(cancel=qk.Cancel(request=a.request))
            assert c.expect('result').status == STATUS['CANCELLED']
            assert o.expect('result').status == 0
            o.ack(second.request)
        assert set(sets(d)) == {'second'}
        # whose client goes while it runs
        o = Client(d)
        ask(o, problem('lost', action=fake.HOLD))
        d.status_when(lambda s: any(e.name == 'lost' for e in s.setup.eigen))
        o.send(goodbye=qk.Goodbye())
        o.close()
        d.status_when(lambda s: {e.name for e in s.setup.eigen} == {'second'})
        a = ask(c, problem('late', action=fake.HOLD), deadline_ms=100)
        assert c.expect('result').status == STATUS['DEADLINE']
        assert set(sets(d)) == {'second'}


@tap.test
def what_an_engine_answers_is_told(case):
    with case.daemon() as d, Client(d) as c:
        for action, status, words in ((fake.FATAL, 'DEVICE_MEMORY', 'no room for these vectors'), (fake.ODD_STATUS, 'INTERNAL', '')):
            ask(c, problem('x', action=action))
            r = c.expect('result')
            assert r.status == STATUS[status] and words in r.text and r.bytes == 0, r
            c.ack(c.request)
            assert not sets(d)
        make(c, 'stale', action=fake.STALE_SERIAL)
        ask(c, problem('y', action=fake.DIE))  # twice: nothing is gained by the second engine
        r = c.expect('result')
        assert r.status == STATUS['ENGINE_LOST'], r
        c.ack(c.request)
        d.status_when(lambda s: s.state == qk.STATE_READY and not s.setup.eigen)  # without a state folder nothing outlives the engine
        check_solves(c)
        assert d.terminate() == 0


@tap.test
def a_lost_engine_costs_what_was_since_the_last_restart(case):
    with State(case) as state:
        folder = os.path.join(state.dir, 'eigen')
        with state.daemon() as d, Client(d) as c:
            make(c)
            assert os.listdir(folder) == ['main+low']
            values = make(c, 'second', action=fake.HOLD_ONCE)  # the first engine dies at restart 2
            restart_is(d, 'second', 2)
            restart_is(d, 'low', 255, again=True)
            assert values[0, 0] == 0.125
            assert sorted(os.listdir(folder)) == ['main+low', 'main+second']
            d.status_when(lambda s: {e.state for e in s.setup.eigen} == {qk.EIGEN_KEPT})
            pid = d.status().engine.pid
            a = c.submit(source=qk.SOURCE_VECTOR, vectors='second', column=[qk.Column(vector=1)], max_iter=fake.HOLD_TWICE)
            d.status_when(lambda s: s.counters.running == 1)
            os.kill(pid, signal.SIGKILL)
            gone(pid)
            r, = c.results(1)  # waits for the next engine to have them
            assert r.status == 0 and c.fetch(r)[9] == 1, r
            c.ack(a.request)
            assert vectors(c, numbers=(3,))[0][9] == 24
            c.send(eigen_drop=qk.EigenDrop(name='low'))
            c.expect('setup')
            assert os.listdir(folder) == ['main+second']
            # a file that has gone, or is another's
            with open(os.path.join(folder, 'main+second'), 'wb') as f:
                f.write(b'\xffanother')
            pid = d.status().engine.pid
            os.kill(pid, signal.SIGKILL)
            gone(pid)
            d.status_when(lambda s: s.state == qk.STATE_READY and not s.setup.eigen)
            r = c.submit(source=qk.SOURCE_VECTOR, vectors='second', expect='rejected')
            assert r.status == STATUS['NOT_FOUND'], r
            check_solves(c)
            assert d.terminate() == 0
        assert os.listdir(folder) == []


@tap.test
def a_killed_daemon_goes_on_with_its_eigenvectors(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            make(c)
            load_and_wait(d, c, 'heavy', kappa=0.12)
            ask(c, problem('low', count=6), setup='heavy')
            assert c.expect('result').status == 0
            c.ack(c.request)
            late = ask(c, problem('late', action=fake.WHEN_TOLD), detach_ms=60000)
            while c.expect('progress', skip=()).eigen.restart < 2:
                pass
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, client_id=c.client_id) as again:
            again.request = c.request
            accepted = ask(again, problem('late', action=fake.WHEN_TOLD), request=late.request, detach_ms=60000)
            assert accepted.repeated_submit
            restart_is(d, 'late', 2)
            r = again.expect('result')
            assert r.status == 0 and again.fetch(r, np.float64)[0] == 0.125
            again.ack(late.request)
            restart_is(d, 'low', 255, again=True)
            d.status_when(lambda s: {e.name: e.state for e in s.setup.eigen} == {'low': qk.EIGEN_KEPT, 'late': qk.EIGEN_KEPT})
            s = sets(d)['low']
            assert (s.user, s.count, s.lowest, s.seconds) == ('tester', COUNT, 0.125, 0.5), s
            wait_for(d, 'heavy', qk.STATE_READY)
            d.status_when(lambda s: [(e.name, e.count, e.state) for e in s.setup.eigen] == [('low', 6, qk.EIGEN_KEPT)], setup='heavy')
            assert vectors(again, 'low', numbers=(5,), setup='heavy')[0][9] == 40
            assert d.terminate() == 0


@tap.test
def an_engine_that_is_taken_over_has_them_still(case):
    with State(case) as state, state.fronts() as front:
        with front() as d, Client(d) as c:
            make(c)
            pid = d.status().engine.pid
            os.unlink(os.path.join(state.dir, 'eigen', 'main+low'))
            kill(d)
        with front(env=LATER) as d, Client(d) as c:
            d.status_when(lambda s: [e.state for e in s.setup.eigen] == [qk.EIGEN_KEPT])
            assert d.status().engine.pid == pid
            assert vectors(c, numbers=(1,))[0][9] == 8
            assert d.terminate() == 0


@tap.test
def quarkctl_computes_lists_writes_and_drops(case):
    with case.daemon() as d, tempfile.TemporaryDirectory() as folder:
        values, out = os.path.join(folder, 'values.h5'), os.path.join(folder, 'vectors.h5')
        done = case.ctl(d, 'eigen', 'low', '--count=4', '--tol=1e-7', '--values=' + values, '--out=' + out, '--progress')
        assert done.returncode == 0, done
        lines = done.stdout.splitlines()
        assert lines[1].split() == ['0', '0.125', '1e-09'] and len(lines) == 8, lines
        assert lines[5].startswith('low: kept   4 normal   tol 1e-07   0.125 to 0.5, residual 1e-09   0.50 s   3.0 MiB'), lines
        assert lines[6:] == ['written ' + values, 'written ' + out], lines
        if h5py:
            with h5py.File(values) as f:
                assert list(f['eigenvalue']) == [0.125, 0.25, 0.375, 0.5] and list(f['residual']) == [1e-9] * 4
                assert (f.attrs['name'], f.attrs['kind'], list(f.attrs['dims']), f.attrs['tolerance']) == ('low', 'normal', [4, 4, 4, 4], 1e-7), dict(f.attrs)
            with h5py.File(out) as f:
                x = f['field'][:].reshape(4, -1)
                assert x.shape == (4, 3072) and list(x[:, 9].real) == [0, 8, 16, 24] and f.attrs['kind'] == 'eigenvectors'
        found = json.loads(case.ctl(d, 'eigen', 'lap', '--count=2', '--kind=laplacian', '--smear-links=stout:0.1,3', '--json').stdout)
        assert (found['name'], found['kind'], len(found['eigenvalues']), found['eigenvalues'][7]) == ('lap', 'laplacian', 8, [1.0, 1e-9]), found
        found = json.loads(case.ctl(d, 'eigen', '--list', '--json').stdout)
        assert [(e['name'], e['state'], e['count']) for e in found['eigenvectors']] == [('low', 'kept', 4), ('lap', 'kept', 2)], found
        assert case.ctl(d, 'eigen', '--list').stdout.count('\n') == 2
        done = case.ctl(d, 'eigen', 'lap', '--out=' + out, '--dtype=f32', '--json')
        assert done.returncode == 0 and json.loads(done.stdout)['eigenvalues'] == [], done
        assert case.ctl(d, 'eigen', 'low', '--drop').returncode == 0
        done = case.ctl(d, 'eigen', 'low', '--out=' + out)
        assert done.returncode == 65 and 'setup main has no eigenvectors low' in done.stderr, done
        done = case.ctl(d, 'eigen', 'lap', '--count=2')
        assert done.returncode != 0 and 'has eigenvectors of this name' in done.stderr, done
        done = case.ctl(d, 'eigen', 'x', '--count=4', '--space=%d' % (4 + fake.FATAL))
        assert done.returncode == 65 and 'no room for these vectors' in done.stderr, done
        for words in (['low'], ['--list', 'low'], ['low', '--drop', '--count=1'], ['low', '--count=4097'], ['low', '--count=1', '--kind=x'], ['--count=1'],
                      ['low', '--values=x', '--from=y'], ['low', '--count=1', '--smear-links=ape:0.6,1'], ['low', '--count=1', '--vectors-out=x'],
                      ['low', '--count=1', '--out=x', '--values=x'], ['low', '--count=1', '--out=' + folder], ['low', '--count=1', '--values=no/x']):
            assert case.ctl(d, 'eigen', *words).returncode == 64, words
        assert set(os.listdir(folder)) == {'values.h5', 'vectors.h5'}


@tap.test
def an_interrupted_quarkctl_cancels(case):
    with case.daemon() as d:
        p = subprocess.Popen([case.quarkctl, 'eigen', 'low', '--count=4', '--space=%d' % (4 + fake.HOLD)], env=dict(os.environ, QUARKD_ENDPOINT=d.endpoint),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        d.status_when(lambda s: s.counters.running == 1)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
        assert p.returncode == 75 and 'CANCELLED' in err, (p.returncode, err)
        d.status_when(lambda s: not s.setup.eigen)


if __name__ == '__main__':
    tap.run(Setups(*sys.argv[1:3]))
