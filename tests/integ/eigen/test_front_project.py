#!/usr/bin/env python3
"""SINK_PROJECT from the client to the engine, which only pretends: test_front_project.py QUARKD QUARKCTL"""
import json
import os
import signal
import subprocess
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import LATER, State, check_solves, fake, gone, kill
    from front_driver import STATUS, Client, qk
    from setups_case import Setups, refused
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

try:
    import h5py
except ImportError:
    h5py = None

FEATURE, COUNT, T = 16, 6, 4


def make(client, name='lap', kind=qk.EIGEN_LAPLACIAN, count=COUNT, action=0, wait=True):
    client.request += 1
    problem = qk.EigenProblem(name=name, kind=kind, count=count, tol=1e-8, space=count + action if action else 0)
    client.send(eigen=qk.Eigen(request=client.request, problem=problem))
    client.expect('accepted', skip=('progress', 'credit', 'result'))
    if wait:
        assert client.expect('result').status == 0
        client.ack(client.request)


def asked(**more):
    return dict(dict(source=qk.SOURCE_VECTOR, vectors='lap', sink=qk.SINK_PROJECT, project='lap', project_count=COUNT), **more)


def project(client, column, **more):
    """tau of each column, [T][4][count]."""
    body = asked(column=column, **more)
    a = client.submit(len(column), **body)
    single = body.get('dtype') == qk.DTYPE_F32
    assert a.field_bytes == 64 // (1 + single) * T * body['project_count'] and a.upload_until == 0, a
    out = []
    for r in client.results(len(column)):
        assert r.status == 0 and r.bytes == a.field_bytes, r
        out.append(client.fetch(r, np.complex64 if single else np.complex128).reshape(T, 4, -1))
    client.ack(a.request)
    return out


def expected(count=COUNT, vector=0, t=0, spin=0, seed=0):
    return seed + 1000 * vector + 100 * t + 10 * spin + 1j * np.arange(T * 4 * count).reshape(T, 4, count)


@tap.test
def products_take_the_place_of_solutions(case):
    with case.daemon() as d, Client(d) as c:
        assert FEATURE in c.welcome.feature
        make(c)
        tau = project(c, [qk.Column(vector=n, t=2, spin=3) for n in range(3)])
        assert all(np.array_equal(tau[n], expected(vector=n, t=2, spin=3)) for n in range(3))
        tau, = project(c, [qk.Column(seed=5)], source=qk.SOURCE_POINT, vectors=None, project_count=2, dtype=qk.DTYPE_F32)
        assert tau.dtype == np.complex64 and np.array_equal(tau, expected(2, seed=5))
        k = c.keep(1)  # of what is kept, without a solve
        tau, = project(c, [qk.Column(request=k, rhs=0, t=-1)], source=qk.SOURCE_SEQUENTIAL, vectors=None, work=qk.WORK_SMEAR)
        assert np.array_equal(tau, expected(seed=8))  # a work is 1 + its number times as much
        c.send(release=qk.Release(request=k))
        with Client(d, user='other') as o:
            assert len(project(o, [qk.Column()])) == 1
        check_solves(c)
        assert d.terminate() == 0


@tap.test
def each_field_is_checked(case):
    with case.daemon() as d, Client(d) as c:
        make(c)
        make(c, 'low', qk.EIGEN_NORMAL)
        make(c, 'late', action=fake.HOLD, wait=False)
        for how, words, more in (
                ('BAD_ARGUMENT', 'project: sink = 5 needs the name', dict(project=None)),
                ('BAD_ARGUMENT', 'project of 4 bytes', dict(project='a/bc')),
                ('BAD_ARGUMENT', 'project_count = 0 is outside 1 .. 4096', dict(project_count=0)),
                ('BAD_ARGUMENT', 'project_count = 0 is outside', dict(project_count=None)),
                ('BAD_ARGUMENT', 'project_count = 4294967295 is outside', dict(project_count=2 ** 32 - 1)),
                ('BAD_ARGUMENT', 'project_count = 7: lap has 6 vectors of each time slice', dict(project_count=7)),
                ('NOT_FOUND', 'project = "none": setup main has no eigenvectors of this name; it has', dict(project='none')),
                ('BAD_ARGUMENT', 'project = low: its eigenvectors are of kind normal', dict(project='low')),
                ('BUSY', 'project = late: they are being made', dict(project='late')),
                ('BAD_ARGUMENT', 'source = 0: with sink = 5 sources are generated', dict(source=qk.SOURCE_UPLOAD, vectors=None, column=[])),
                ('BAD_ARGUMENT', 'source = 6: with sink = 5', dict(source=qk.SOURCE_FILE, vectors=None, column=[], source_file=qk.File(path='/x'))),
                ('BAD_ARGUMENT', 'parity = 1: a projection', dict(parity=qk.PARITY_EVEN)),
                ('BAD_ARGUMENT', 'grid: what is projected', dict(grid=[1, 1, 1, 2])),
                ('BAD_ARGUMENT', 'keep_ms', dict(keep_ms=5)),
                ('BAD_ARGUMENT', 'sink_file', dict(sink_file=qk.File(path='/x'))),
                ('BAD_ARGUMENT', 'project: it is for sink = 5 only, not for 1', dict(sink=qk.SINK_DOWNLOAD)),
                ('BAD_ARGUMENT', 'project_count: it is for sink = 5 only, not for 3', dict(sink=qk.SINK_KEEP, project=None))):
            r = c.submit(request=99, expect='rejected', **asked(**more))
            assert r.status == STATUS[how] and words in r.text, (r, words)
        a = c.submit(**asked())
        c.results(1)
        r = c.submit(request=a.request, expect='rejected', **asked(project_count=2))
        assert 'exists with other parameters' in r.text, r
        c.send(attach=qk.Attach(request=a.request))
        told = c.expect('attached').submit
        assert (told.sink, told.project, told.project_count) == (qk.SINK_PROJECT, 'lap', COUNT), told
        c.results(1)
        c.ack(a.request)
        r = c.submit(request=99, expect='rejected', source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=a.request, t=-1)])
        assert r.status == STATUS['NOT_FOUND'], r
        check_solves(c)


@tap.test
def a_doublet_is_refused(case):
    with case.daemon('--action', 'doublet', '--set', 'mu=0.1', '--set', 'epsilon=0.05', gauge='builtin:fake:site_reals=48:columns=24') as d, Client(d) as c:
        make(c)
        r = c.submit(expect='rejected', **asked())
        assert r.status == STATUS['UNSUPPORTED'] and 'doublet' in r.text, r


@tap.test
def vectors_in_use_are_not_dropped(case):
    with case.daemon() as d, Client(d) as c, Client(d) as busy:
        make(c)
        make(c, 'sink')
        a = busy.submit(**asked(project='sink', max_iter=fake.HOLD))
        for name in 'lap', 'sink':
            text = refused(c, 'BUSY', eigen_drop=qk.EigenDrop(name=name))
            assert '1 right-hand sides that use them have not ended' in text, text
        busy.send(cancel=qk.Cancel(request=a.request))
        busy.expect('result')
        busy.ack(a.request)
        c.send(eigen_drop=qk.EigenDrop(name='sink'))
        c.expect('setup')
        r = c.submit(request=99, expect='rejected', **asked(project='sink'))
        assert r.status == STATUS['NOT_FOUND'], r


@tap.test
def a_lost_engine_is_waited_for(case):
    with State(case) as state, state.daemon() as d, Client(d) as c:
        make(c)
        pid = d.status().engine.pid
        a = c.submit(**asked(source=qk.SOURCE_POINT, vectors=None, max_iter=fake.HOLD_ONCE))
        d.status_when(lambda s: s.counters.running == 1)
        os.kill(pid, signal.SIGKILL)
        gone(pid)
        r, = c.results(1)  # once the next engine has the vectors
        assert r.status == 0 and np.array_equal(c.fetch(r).reshape(T, 4, -1), expected()), r
        c.ack(a.request)
    with case.daemon() as d, Client(d) as c:  # without a state folder they are gone
        make(c)
        pid = d.status().engine.pid
        c.submit(**asked(source=qk.SOURCE_POINT, vectors=None, max_iter=fake.HOLD_ONCE))
        d.status_when(lambda s: s.counters.running == 1)
        os.kill(pid, signal.SIGKILL)
        gone(pid)
        r, = c.results(1)
        assert r.status == STATUS['NOT_FOUND'], r


@tap.test
def results_outlive_a_killed_daemon_and_their_vectors(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            make(c)
            body = asked(column=[qk.Column(vector=3)], detach_ms=60000)
            held = dict(asked(column=[qk.Column(vector=2)], detach_ms=60000, max_iter=fake.HOLD_ONCE))
            a = c.submit(**body)
            assert c.results(1)[0].status == 0
            b = c.submit(**held)
            d.status_when(lambda s: s.counters.running == 1)
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, client_id=c.client_id) as again:
            assert again.submit(request=a.request, **body).repeated_submit
            r, = again.results(1)
            assert np.array_equal(again.fetch(r).reshape(T, 4, -1), expected(vector=3)), r
            again.ack(a.request)
            assert again.submit(request=b.request, **held).repeated_submit
            r, = again.results(1)
            assert np.array_equal(again.fetch(r).reshape(T, 4, -1), expected(vector=2)), r
            again.send(eigen_drop=qk.EigenDrop(name='lap'))
            again.expect('setup')
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, client_id=c.client_id) as again:  # results need no vectors
            assert again.submit(request=b.request, **held).repeated_submit
            r, = again.results(1)
            assert np.array_equal(again.fetch(r).reshape(T, 4, -1), expected(vector=2)), r
            again.ack(b.request)
            assert d.terminate() == 0


@tap.test
def want_of_shared_memory_is_waited_for(case):
    with case.daemon() as d, Client(d) as c:
        make(c)
        a = c.submit(**asked(max_iter=fake.NO_ROOM))
        r, = c.results(1)
        assert r.status == STATUS['NO_MEMORY'], r
        c.ack(a.request)
        assert len(project(c, [qk.Column()])) == 1


def perambulator(case, d, out, *more, times='0,2', **how):
    return case.ctl(d, 'perambulator', '--vectors=lap', '--t-sources=' + times, '--out=' + out, *more, **how)


def check_file(path, times, count=COUNT, dtype='c16'):
    with h5py.File(path) as f:
        tau = f['perambulator']
        assert tau.shape == (len(times), 4, count, T, 4, count) and tau.dtype == np.dtype(dtype), tau
        assert list(f['t_source']) == list(times) and list(f['complete']) == [1] * len(times)
        assert np.all(f['true_residual'][:] > 0)
        z = tau[:]
        for i, t in enumerate(times):
            for s in range(4):
                for n in range(count):
                    assert np.array_equal(z[i, s, n], expected(count, n, t, s)), (t, s, n)
        return dict(f.attrs)


@tap.test
def quarkctl_writes_perambulators(case):
    with case.daemon() as d, Client(d) as c, tempfile.TemporaryDirectory() as folder:
        make(c)
        make(c, 'low', qk.EIGEN_NORMAL)
        out, single = os.path.join(folder, 'p.h5'), os.path.join(folder, 's.h5')
        done = perambulator(case, d, out)
        assert done.returncode == 0 and 'written ' + out in done.stdout and '48 solves' in done.stdout, done
        if h5py:
            attrs = check_file(out, (0, 2))
            assert (attrs['vectors'], attrs['count'], attrs['basis'], attrs['tolerance'], list(attrs['dims'])) == ('lap', COUNT, 'degrand-rossi', 1e-10, [4] * 4)
        done = perambulator(case, d, single, '--count=2', '--dtype=f32', '--json', '--tol=1e-6', times='all')
        said = json.loads(done.stdout)
        assert (said['slices'], said['vectors'], said['solved'], said['failed'], said['residual']) == (4, 2, 32, 0, 5e-7), said
        assert (said['bytes'], said['plain_bytes']) == (32 * T * 8 * 8, 32 * 256 * 24 * 4), said
        if h5py:
            check_file(single, range(4), 2, 'c8')
        said = json.loads(perambulator(case, d, out, '--json').stdout)  # it is there
        assert said['solved'] == 0
        for words, code, text in ((['--tol=1e-9'], 65, 'its tolerance is 1e-10, and not'), (['--count=3'], 65, 'its count is 6, and not 3'),
                                  (['--dtype=f32'], 65, 'its dataset perambulator has other extents or numbers'),
                                  (['--t-sources=0,1'], 65, 'source 1 is on time slice 2, and not 1'),
                                  (['--t-sources=0,4'], 64, '4 is outside the lattice (0 to 3)'),
                                  (['--t-sources=1,1'], 64, 'time slice 1 stands there twice'), (['--t-sources=x'], 64, '--t-sources'),
                                  (['--count=7'], 64, '--count=7: lap has 6 vectors'), (['--vectors=low'], 65, 'of kind normal, and not laplacian'),
                                  (['--vectors=none'], 65, 'no eigenvectors none'), (['--smear=gauss:1,1'], 64, '--smear=gauss:1,1'),
                                  (['--detach'], 64, '--detach')):
            done = perambulator(case, d, out, *words)
            assert done.returncode == code and text in done.stderr, (words, done)
        for words in ([], ['--vectors=lap'], ['--t-sources=0']):
            assert case.ctl(d, 'perambulator', '--out=' + out + 'x', *words).returncode == 64
        done = perambulator(case, d, '/dev/null/p.h5')
        assert done.returncode == 65 and 'cannot be created' in done.stderr, done
        assert sorted(os.listdir(folder)) == ['p.h5', 's.h5']


@tap.test
def an_unfinished_perambulator_goes_on(case):
    with case.daemon() as d, Client(d) as c, tempfile.TemporaryDirectory() as folder:
        make(c)
        out = os.path.join(folder, 'p.h5')
        p = subprocess.Popen([case.quarkctl, 'perambulator', '--vectors=lap', '--t-sources=0,2', '--out=' + out, '--max-iter=%d' % fake.HOLD],
                             env=dict(os.environ, QUARKD_ENDPOINT=d.endpoint), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        d.status_when(lambda s: s.counters.running > 0)
        done = perambulator(case, d, out)  # by another process
        assert done.returncode == 65 and 'another process writes it' in done.stderr, done
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
        assert p.returncode == 75 and 'goes on with' in err, (p.returncode, err)
        assert os.listdir(folder) == ['p.h5.part']
        done = perambulator(case, d, out, '--max-iter=%d' % fake.ODD_STATUS)
        assert done.returncode == 65 and '48 of 48 solves failed' in done.stderr and 'time slice 2, spin 3, vector 5: ' in done.stderr, done
        assert os.listdir(folder) == ['p.h5.part']
        done = perambulator(case, d, out)
        assert done.returncode == 0 and '48 solves' in done.stdout and os.listdir(folder) == ['p.h5'], done
        if not h5py:
            return
        os.rename(out, out + '.part')
        with h5py.File(out + '.part', 'r+') as f:
            f['complete'][1] = 0
            f['perambulator'][1] = np.zeros(f['perambulator'].shape[1:], f['perambulator'].dtype)
        done = perambulator(case, d, out)
        assert done.returncode == 0 and '24 solves' in done.stdout and 'has 1 of 2 time slices' in done.stdout, done
        check_file(out, (0, 2))
        # vectors of the same name, and not the same ones
        os.rename(out, out + '.part')
        c.send(eigen_drop=qk.EigenDrop(name='lap'))
        c.expect('setup')
        make(c, count=COUNT + 1)
        done = perambulator(case, d, out, '--count=%d' % COUNT)
        assert done.returncode == 65 and 'its highest is 3, and not 3.5' in done.stderr, done
        with open(out + '.part', 'r+b') as f:
            f.truncate(100)
        done = perambulator(case, d, out)
        assert done.returncode == 65 and 'damaged' in done.stderr, done


if __name__ == '__main__':
    tap.run(Setups(*sys.argv[1:3]))
