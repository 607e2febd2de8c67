#!/usr/bin/env python3
"""Vectors that a client sends, and the eigenvectors that a setup has of them: test_front_vectors.py QUARKD QUARKCTL"""
import json
import os
import random
import sys
import tempfile

import tap

try:
    import numpy as np
    from field_links import noisy, open_field, send
    from field_vectors import as_seen, open_vectors, orthonormal, send_vectors, vectors_digest
    from front_case import LATER, State, check_solves, fake, kill
    from front_driver import STATUS, UPLOAD, Client, frame, qk
    from front_parts import feed, join, place
    from setups_case import Setups, load_and_wait, refused, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

try:
    import h5py
except ImportError:
    h5py = None

FEATURE, DIMS, COUNT = 17, (4, 4, 4, 4), 3
V, OTHER = orthonormal(DIMS, COUNT, 1), orthonormal(DIMS, COUNT, 2)


def settled(daemon):
    daemon.status_when(lambda s: s.memory_used == 0 and s.counters.kept_bytes == 0)


def problem(field, name='given', count=COUNT, tol=1e-8, **more):
    return qk.EigenProblem(**{'name': name, 'kind': qk.EIGEN_LAPLACIAN, 'count': count, 'tol': tol, 'field': field, **more})


def ask(client, p, request=None, expect='accepted', **more):
    if request is None:
        client.request += 1
        request = client.request
    client.send(eigen=qk.Eigen(request=request, problem=p, **more))
    return client.expect(expect, skip=('progress', 'credit', 'result'))


def text_of(result, status):
    assert result.status == STATUS[status], result
    return result.text


def source(client, column, name='given'):
    """The vectors of a set [t][z][y][x][spin][colour], as a solve would see them."""
    a = client.submit(1, source=qk.SOURCE_VECTOR, vectors=name, work=qk.WORK_SMEAR, tol=0, column=[column])
    r, = client.results(1)
    assert r.status == 0, r
    x = client.fetch(r).reshape(*DIMS[::-1], 4, 3) / 8  # a work is 1 + its number times as much
    client.ack(a.request)
    return x


def is_source(client, v, t, n, spin, name='given'):
    want = np.zeros((*DIMS[::-1], 4, 3), complex)
    at = slice(None) if t < 0 else t
    want[at, ..., spin, :] = v[at, n] if t >= 0 else v[:, n]
    return np.array_equal(source(client, qk.Column(vector=n, t=t, spin=spin), name), want)


@tap.test
def vectors_are_checked_and_known_by_their_digest(case):
    with case.daemon() as d, Client(d) as c, Client(d, user='else') as other:
        assert FEATURE in c.welcome.feature
        for single in False, True:
            want = vectors_digest(as_seen(V, single))
            r = send_vectors(c, V, single, reals=6)
            assert (r.status, r.digest, r.bytes, r.true_residual) == (0, want, 0, 0), r
            assert 0 <= r.unitarity < (1e-6 if single else 1e-14), r
            before = d.status().counters.bytes_in
            assert open_vectors(c, V, single, digest=want).upload_until == 0
            r = c.expect('result')
            assert (r.status, r.digest, r.HasField('unitarity')) == (0, want, False), r
            assert d.status().counters.bytes_in == before
        # nobody else's, no other lattice or number of vectors, no links
        assert open_vectors(other, V, digest=want).upload_until > 0
        assert open_vectors(c, V, digest=want, count=2 * COUNT, dims=[4, 4, 4, 2]).upload_until > 0
        assert open_field(c, noisy(DIMS, 1), digest=want).upload_until > 0
        text = refused(c, 'BAD_ARGUMENT', load=qk.Load(name='x', gauge='field:1', kappa=0.1))
        assert 'the field is of vectors, not of links' in text, text
        r = c.submit(source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=1)], expect='rejected')
        assert 'is a field (FIELD_OPEN), no solution' in r.text, r
        r = send_vectors(c, V, digest=7)
        assert 'the vectors have the digest %016x, FIELD_OPEN says 0000000000000007' % vectors_digest(V) in text_of(r, 'BAD_CHECKSUM'), r
        for x in c, other:
            for request in range(1, x.request + 1):
                x.send(release=qk.Release(request=request))
        settled(d)


@tap.test
def bad_vectors_are_refused_by_name_and_leave_nothing(case):
    with case.daemon() as d, Client(d) as c:
        for change, words in ((lambda v: v.__setitem__((3, 1, 2, 1, 0, 2), np.nan), 'vector 1 of time slice 3 at x y z = 0 1 2 is not finite: number 4 of 6; 1 are NaN or Inf'),
                              (lambda v: v.__setitem__((0, 0, 0, 0, 1, 0), complex(0, np.inf)), 'vector 0 of time slice 0 at x y z = 1 0 0 is not finite: number 1 of 6; 1 are'),
                              (lambda v: v.__setitem__((2, 2), 1.001 * v[2, 2]), 'vector 2 of time slice 2 is not normalised: its norm squared is off by 0.002, the limit is 0.0001'),
                              (lambda v: v.__setitem__((1, 0), 0), 'vector 0 of time slice 1 is not normalised: its norm squared is off by 1,'),
                              (lambda v: v.__setitem__((1, 1), 1e200), 'vector 1 of time slice 1 is not normalised: its norm squared is off by inf,')):
            v = V.copy()
            change(v)
            text = text_of(send_vectors(c, v), 'BAD_ARGUMENT')
            assert words in text, text
            assert 'was refused' in ask(c, problem('field:%d' % c.request), request=c.request + 1, expect='rejected').text
            c.ack(c.request)
        settled(d)


@tap.test
def what_cannot_be_is_rejected(case):
    with case.daemon('--max-memory', '2M') as d, Client(d) as c:
        for how, words, more in (('BAD_ARGUMENT', 'count = 0', dict(count=0)), ('BAD_ARGUMENT', 'count = 0', dict(count=None)),
                                 ('TOO_LARGE', 'count = 4097 is over the limit of 4096', dict(count=4097)),
                                 ('BAD_ARGUMENT', 'count = 193: no more than 192 vectors of a time slice', dict(count=193)),
                                 ('TOO_LARGE', 'max-memory', dict(count=192)),
                                 ('TOO_LARGE', 'count = 24: with 268435454 time slices there are more than 4294967295 vectors', dict(count=24, dims=[2, 2, 2, 268435454])),
                                 ('BAD_ARGUMENT', 'reals = 18: of a field of vectors it must be 6', dict(reals=18)),
                                 ('BAD_ARGUMENT', 'plaquette = 0.5: a field of vectors has none', dict(plaquette=0.5)),
                                 ('BAD_GEOMETRY', 'dims of 3', dict(dims=[4, 4, 4])),
                                 ('BAD_GEOMETRY', 'extent of t is 3', dict(dims=[4, 4, 4, 3])),
                                 ('BAD_GEOMETRY', 'not a multiple of 3', dict(grid=[1, 1, 1, 3])),
                                 ('BAD_ARGUMENT', 'count = 3: only vectors', dict(kind=qk.FIELD_GAUGE, reals=18)),
                                 ('BAD_ARGUMENT', 'request = 0', dict(request=0))):
            r = open_vectors(c, V, **more, expect='rejected')
            assert (r.status, words in r.text) == (STATUS[how], True), (how, words, r)
        settled(d)
        r = send_vectors(c, V)
        field = 'field:%d' % r.request
        for how, words, p in (('BAD_ARGUMENT', 'field: a client\'s vectors are those of the Laplacian (kind = 2), not of kind = 0', problem(field, kind=qk.EIGEN_NORMAL)),
                              ('BAD_ARGUMENT', 'field of 4 bytes: field:REQUEST or digest:HEX16 is needed', problem('file')),
                              ('BAD_ARGUMENT', 'field of 0 bytes', problem('')),
                              ('BAD_ARGUMENT', 'REQUEST must be a number', problem('field:-1')), ('BAD_ARGUMENT', 'must be a number', problem('field:')),
                              ('BAD_ARGUMENT', '16 hexadecimal digits', problem('digest:12')),
                              ('NOT_FOUND', 'no field of this number', problem('field:99')),
                              ('NOT_FOUND', 'no vectors of this digest are here', problem('digest:%016x' % 1)),
                              ('BAD_ARGUMENT', 'count = 2: the field has 3 vectors', problem(field, count=2)),
                              ('BAD_ARGUMENT', 'space = 9: vectors of a field are not computed', problem(field, space=9)),
                              ('BAD_ARGUMENT', 'order = 2: vectors of a field', problem(field, order=2)),
                              ('BAD_ARGUMENT', 'restarts = 1: vectors of a field', problem(field, restarts=1)),
                              ('BAD_ARGUMENT', 'links: vectors of a field', problem(field, links=qk.Smearing(alpha=0, steps=0))),
                              ('BAD_ARGUMENT', 'tol = 1', problem(field, tol=1)), ('BAD_ARGUMENT', 'name of 0 bytes', problem(field, name=''))):
            r = ask(c, p, request=99, expect='rejected')
            assert r.status == STATUS[how] and words in r.text, (words, r)
        accepted = open_vectors(c, OTHER)
        assert 'not complete yet' in ask(c, problem('field:%d' % accepted.request), request=99, expect='rejected').text
        r = send_vectors(c, orthonormal((4, 4, 4, 2), COUNT, 3))
        r = ask(c, problem('field:%d' % r.request), request=99, expect='rejected')
        assert r.status == STATUS['BAD_GEOMETRY'] and 'the vectors are of 4x4x4x2, and the links of setup main of 4x4x4x4' in r.text, r
        r = send(c, noisy((2, 2, 2, 2), 1))
        r = ask(c, problem('field:%d' % r.request), request=99, expect='rejected')
        assert 'the field is of links, not of vectors' in r.text, r
        with Client(d, user='else') as o:
            r = ask(o, problem('digest:%016x' % vectors_digest(V)), expect='rejected')
            assert r.status == STATUS['NOT_FOUND'], r


@tap.test
def vectors_in_parts_are_those_that_go_whole(case):
    random.seed(7)
    bad = V.copy()
    bad[3, 2, 1, 0, 2, 1] = np.nan
    with case.daemon() as d, Client(d) as owner, Client(d) as other:
        for grid, single, v, status, words in (((2, 1, 1, 1), False, V, 0, ''), ((2, 2, 1, 2), True, V, 0, ''), ((1, 1, 1, 4), False, V, 0, ''),
                                               ((1, 2, 2, 2), False, bad, STATUS['BAD_ARGUMENT'], 'vector 2 of time slice 3 at x y z = 2 0 1 (part 4) is not')):
            a = open_vectors(owner, v, single, grid=grid)
            n = int(np.prod(grid))
            assert a.field_bytes * n == v.nbytes // (1 + single), a
            for p in random.sample(range(n), n):
                t, z, y, x = place(DIMS, grid, p)
                feed(other, join(other, owner, a, p), [np.ascontiguousarray(v[t, :, z, y, x], np.complex64 if single else complex)], chunk=random.choice((1000, 1 << 20)))
            r = owner.expect('result')
            assert r.status == status and words in r.text and (status or r.digest == vectors_digest(as_seen(v, single))), r
            if not status:
                ask(owner, problem('field:%d' % a.request, 'v%d' % a.request))
                assert owner.expect('result').status == 0
                owner.ack(owner.request)
                assert is_source(owner, as_seen(v, single), 1, 2, 3, 'v%d' % a.request)
                owner.send(eigen_drop=qk.EigenDrop(name='v%d' % a.request))
                owner.expect('setup')
            for k in range(other.request - n, other.request):
                other.ack(k + 1)
            owner.send(release=qk.Release(request=a.request))
        settled(d)


@tap.test
def they_become_eigenvectors_of_a_setup(case):
    with case.daemon() as d, Client(d) as c:
        for single, text in ((False, 'field:1'), (True, 'digest:%016x' % vectors_digest(as_seen(OTHER, True)))):
            r = send_vectors(c, OTHER if single else V, single)
            name = 'single' if single else 'given'
            digest = 'digest:%016x' % r.digest
            a = ask(c, problem(text, name))
            assert a.field_bytes == 16 * COUNT * DIMS[3], a
            result = c.expect('result')
            assert result.status == 0 and np.array_equal(c.fetch(result, np.float64).reshape(-1, 2)[:, 0], np.zeros(COUNT * DIMS[3])), result
            again = ask(c, problem(text, name), request=a.request)
            assert again.repeated_submit and c.expect('result').status == 0
            c.send(attach=qk.Attach(request=a.request))  # a number means nothing to others
            assert c.expect('attached').eigen.problem == problem(digest, name)
            assert c.expect('result').status == 0
            s, = [s for s in d.status().setup.eigen if s.name == name]
            assert (s.state, s.kind, s.count, s.field, s.lowest, s.highest, s.user) == (qk.EIGEN_KEPT, qk.EIGEN_LAPLACIAN, COUNT, digest, 0, 0, 'tester'), s
            # the field is needed no more, and the request is still what it was
            c.send(release=qk.Release(request=r.request))
            c.ping()
            again = ask(c, problem(text, name), request=a.request)
            assert again.repeated_submit and c.expect('result').status == 0
            r = ask(c, problem('digest:%016x' % 5, name), request=a.request, expect='rejected')
            assert 'exists with other parameters' in r.text, r
            c.ack(a.request)
        settled(d)
        with Client(d, user='else') as o:  # they are the setup's
            for t, n, spin in ((0, 0, 0), (3, 2, 1), (-1, 1, 3)):
                assert is_source(o, V, t, n, spin), (t, n, spin)
                assert is_source(o, as_seen(OTHER, True), t, n, spin, 'single')
        c.send(eigen_drop=qk.EigenDrop(name='given'))
        c.expect('setup')
        check_solves(c)
        assert d.terminate() == 0


@tap.test
def a_field_stays_until_the_engine_has_read_it(case):
    with case.daemon() as d, Client(d) as c:
        r = send_vectors(c, V, keep_ms=100)
        a = ask(c, problem('field:%d' % r.request, tol=fake.HOLD_ONCE * 1e-4))  # the first engine dies of it
        c.send(release=qk.Release(request=r.request))
        assert c.expect('result').status == 0
        c.ack(a.request)
        settled(d)
        assert is_source(c, V, 2, 1, 0)
        r = send_vectors(c, OTHER)
        a = ask(c, problem('field:%d' % r.request, 'gone', tol=fake.HOLD * 1e-4))
        d.status_when(lambda s: s.counters.running == 1)
        c.send(cancel=qk.Cancel(request=a.request))
        assert c.expect('result').status == STATUS['CANCELLED']
        c.ack(a.request)
        c.send(release=qk.Release(request=r.request))
        settled(d)
        assert [s.name for s in d.status().setup.eigen] == ['given']


@tap.test
def a_killed_daemon_gives_the_engine_the_field_again(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            r = send_vectors(c, V)
            load_and_wait(d, c, 'heavy', kappa=0.12)
            running = ask(c, problem('field:%d' % r.request, tol=fake.WHEN_TOLD * 1e-4), detach_ms=60000)
            ask(c, problem('field:%d' % r.request, 'waits'), detach_ms=60000)
            d.status_when(lambda s: s.counters.running == 1)
            c.send(release=qk.Release(request=r.request))
            c.ping()
            d.log('is on the disk')
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, client_id=c.client_id) as again:
            again.request = c.request
            for request in running.request, c.request:  # one may have ended before its client was back
                again.send(attach=qk.Attach(request=request))
                again.expect('attached', skip=('result', 'progress'))
                while again.expect('result', skip=('progress', 'result')).request != request:
                    pass
                again.ack(request)
            again.send(release=qk.Release(request=r.request))
            settled(d)
            with Client(d) as other:
                for name in 'given', 'waits':
                    assert is_source(other, V, 1, 2, 0, name)
            pid = d.status().engine.pid
            kill(d)
        with state.daemon(env=LATER) as d, Client(d) as c:  # from their files: the field has gone
            d.status_when(lambda s: {e.name: (e.state, e.field) for e in s.setup.eigen} ==
                          dict.fromkeys(('given', 'waits'), (qk.EIGEN_KEPT, 'digest:%016x' % vectors_digest(V))))
            assert d.status().engine.pid != pid
            wait_for(d, 'heavy', qk.STATE_READY)
            assert d.terminate() == 0


@tap.test
def any_byte_may_be_the_last(case):
    v = orthonormal((2, 2, 2, 2), 2, 3)
    data = v.tobytes()
    with case.daemon() as d:
        for n in (0, 1, 47, 48, 383, 384, 768, len(data) // 2 + 1, len(data) - 1):
            with Client(d) as c:
                accepted = open_vectors(c, v)
                if n:
                    c.data.send(frame(UPLOAD, accepted.request, 0, data[:n], len(data), 0))
                c.ping()
                c.send(goodbye=qk.Goodbye())
            settled(d)


@tap.test
def quarkctl_sends_those_of_a_file(case):
    if not h5py:
        return
    with case.daemon() as d, Client(d) as c, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'v.h5')

        def send_file(name, data, *more):
            with h5py.File(path, 'w') as f:
                f['vectors'] = data
            return case.ctl(d, 'eigen', name, '--from=' + path, *more)
        done = send_file('given', V)
        assert done.returncode == 0 and 'given: kept   3 laplacian   tol 1e-09   sent by a client, off by 1e-09' in done.stdout, done
        assert is_source(c, V, 3, 2, 1)
        reals = np.ascontiguousarray(OTHER, np.complex64).view(np.float32).reshape(*OTHER.shape, 2)
        done = send_file('reals', reals, '--tol=1e-5', '--json')
        found = json.loads(done.stdout)
        assert (found['count'], found['tol'], found['field']) == (3, 1e-5, 'digest:%016x' % vectors_digest(as_seen(OTHER, True))), found
        assert is_source(c, as_seen(OTHER, True), -1, 0, 2, 'reals')
        settled(d)  # nothing of the fields is left
        with h5py.File(path, 'w') as f:  # as files of others are
            f.create_dataset('vectors', data=V, chunks=(1, 2, 4, 4, 2, 3), compression='gzip')
        assert case.ctl(d, 'eigen', 'chunked', '--from=' + path).returncode == 0 and is_source(c, V, 0, 1, 0, 'chunked')
        for dtype in 'f64', 'f32':  # and back
            out = os.path.join(folder, dtype + '.h5')
            done = case.ctl(d, 'eigen', 'given', '--vectors-out=' + out, '--dtype=' + dtype)
            assert done.returncode == 0 and 'written ' + out in done.stdout, done
            with h5py.File(out) as f:
                assert f['vectors'].shape == V.shape and np.array_equal(f['vectors'][:] * 8, (V * 8 * 8).astype(f['vectors'].dtype)), 'a work is 8 times as much'
                assert (f.attrs['name'], f.attrs['kind'], list(f.attrs['dims'])) == ('given', 'laplacian', [4, 4, 4, 4]) and f['vectors'].dtype.itemsize == (16 if dtype == 'f64' else 8)
        assert case.ctl(d, 'eigen', 'low', '--count=2').returncode == 0
        done = case.ctl(d, 'eigen', 'low', '--vectors-out=' + os.path.join(folder, 'x'))
        assert done.returncode == 65 and 'not of time slices' in done.stderr, done
        assert case.ctl(d, 'eigen', 'low', '--drop').returncode == 0
        done = case.ctl(d, 'eigen', 'given', '--vectors-out=' + os.path.join(folder, 'no', 'x'))
        assert done.returncode == 64 and 'its folder: No such file' in done.stderr, done
        assert sorted(os.listdir(folder)) == ['f32.h5', 'f64.h5', 'v.h5']
        bad = V.copy()
        bad[1, 1] *= 2
        for words, data, more in (('is not normalised', bad, ()), ('of 5 dimensions', V[0], ()), ('of 6 dimensions', V[..., :2], ()),
                                  ('are not complex of 32 or 64 bit', V.real, ()), ('of 7 dimensions', reals[..., :1], ()),
                                  ('the vectors are of 4x4x4x2', np.ascontiguousarray(V[:2]), ()), ('dims: the extent of x is 1', V[..., :1, :], ()),
                                  ('must be 1 to 65536', np.zeros((4, 0, 4, 4, 4, 3), complex), ())):
            done = send_file('bad', data, *more)
            assert done.returncode in (65, 66) and words in done.stderr, (words, done)
        with h5py.File(path, 'w') as f:
            f['vectors'] = h5py.SoftLink('/other')
            f['other'] = V
        assert 'is a soft link, which is not followed' in case.ctl(d, 'eigen', 'bad', '--from=' + path).stderr
        with open(path, 'wb') as f:
            f.write(b'no HDF5')
        for words in (['--from=' + path], ['--from=' + path + '-is-not-there'], ['--from=' + folder]):
            assert case.ctl(d, 'eigen', 'bad', *words).returncode in (65, 66), words
        for words in (['--count=3'], ['--kind=laplacian'], ['--order=2'], ['--smear-links=ape:0.6,1'], ['--drop'], ['--values=x']):
            assert case.ctl(d, 'eigen', 'bad', '--from=' + path, *words).returncode == 64, words
        settled(d)
        assert {s.name for s in d.status().setup.eigen} == {'given', 'reals', 'chunked'}


if __name__ == '__main__':
    tap.run(Setups(*sys.argv[1:3]))
