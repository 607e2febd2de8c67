"""Eigenvectors with the real engine and in Python: test_eigen.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import signal
import sys
import tempfile
import time

from cli_case import Case, np, random_sources, tap
import quarkd
from refusals import refused

try:
    import h5py
except ImportError:
    h5py = None

COUNT = 8


def orthonormal(shape, count, seed):
    """Vectors [t, n, z, y, x, colour] of a lattice [t, z, y, x], orthonormal on each time slice."""
    a = np.random.default_rng(seed).standard_normal((shape[0], 3 * int(np.prod(shape[1:])), count, 2)).view(complex)[..., 0]
    return np.ascontiguousarray(np.linalg.qr(a)[0].transpose(0, 2, 1)).reshape(shape[0], count, *shape[1:], 3)


def normal(q, v):
    """Mhat^+ Mhat on even sites, by the daemon's own parts of the operator, which tests/integ/work compares with the oracle."""
    even = dict(parity='even', schur='symmetric')
    return q.apply(q.apply(v, 'schur', **even), 'schur', dagger=True, **even)


@tap.test
def what_it_finds_are_eigenvectors(case):
    seen = []
    with case.daemon('--solver=cg') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            e = q.eigen('low', COUNT, tol=1e-6, progress=seen.append)
            assert len(e) == COUNT and np.all(np.diff(e.values) >= 0) and e.values[0] > 0 and e.residuals.max() < 1e-5, e
            assert all(p.count == COUNT and p.converged <= COUNT for p in seen), seen
            v = e.vectors(parity='even')
            flat = v.reshape(COUNT, -1)
            gram = flat.conj() @ flat.T
            assert abs(gram - np.eye(COUNT)).max() < 1e-5, abs(gram - np.eye(COUNT)).max()
            for x, value in zip(v, e.values):
                r = np.linalg.norm(normal(q, x) - value * x)
                assert r < 1e-5, (r, value)
            whole = e.vectors(0)
            assert abs(np.linalg.norm(whole) - 1) < 1e-5 and abs(np.linalg.norm(quarkd.half(whole, 'odd'))) == 0
            assert np.array_equal(quarkd.half(whole, 'even'), v[0])
            x = q.solve(whole, tol=1e-9)  # as any other source
            assert np.linalg.norm(q.apply(x) - whole) < 1e-8
            listed, = q.eigen_list()
            assert (listed.name, listed.state, listed.kind, listed.count) == ('low', 'kept', 'normal', COUNT), listed
            assert abs(listed.lowest - e.values[0]) < 1e-12
            assert 'of this name' in refused(lambda: q.eigen('low', 4), 'BAD_ARGUMENT')
            refused(lambda: q.eigenvectors('low', COUNT), 'BAD_ARGUMENT')
            e.drop()
            refused(lambda: q.eigenvectors('low', 0), 'NOT_FOUND')
            g = q.eigen('g5', 4, 'gamma5', tol=1e-6)
            v = g.vectors(0)
            g5 = np.array([1, 1, -1, -1])[:, None]
            assert min(np.linalg.norm(g5 * s * q.apply(v) - g.values[0] * v) for s in (1, -1)) < 1e-5, g
            assert [r.name for r in q.eigen_list()] == ['g5']


@tap.test
def a_killed_engine_gives_them_back(case):
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state, case.daemon('--solver=cg', '--state=' + state) as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            e = q.eigen('low', COUNT, tol=1e-6)
            before = e.vectors()
            os.kill(q.status().engine['pid'], signal.SIGKILL)
            q.ready(patience=60)
            after = e.vectors(patience=60)
            assert np.array_equal(before, after)
            e.drop()
            again = q.eigen('low', COUNT, tol=1e-6)
            assert np.allclose(again.values, e.values, rtol=1e-5, atol=1e-8)
            assert os.listdir(os.path.join(state, 'eigen')) == ['main+low']
            again.drop()
            assert os.listdir(os.path.join(state, 'eigen')) == []


@tap.test
def what_could_not_be_written_says_so(case):
    """The name of its file is taken: the vectors are there until their engine ends."""
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state, case.daemon('--solver=cg', '--state=' + state) as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.eigen('low', COUNT, tol=1e-6).drop()
            path = os.path.join(state, 'eigen', 'main+low.tmp')
            os.mkdir(path)
            q.eigen('low', COUNT, tol=1e-6)
            q.eigen('more', COUNT, tol=1e-6)
            low, more = sorted(q.eigen_list(), key=lambda r: r.name)
            assert low.state == 'kept' and low.unwritten and not more.unwritten, (low, more)
            text = case.ctl('eigen', '--list', endpoint=d.endpoint).out
            assert text.count('on no disk, and lost with their engine: ' + low.unwritten) == 1, text
            assert 'unwritten' in case.ctl('eigen', '--list', '--json', endpoint=d.endpoint).out
            os.rmdir(path)


@tap.test
def compressed_ones_are_kept_as_a_basis_and_coefficients(case):
    """Where whole ones are too large; expanded when they are fetched, again after the engine was lost, and for solves to begin with."""
    count, basis, block = 48, 16, (2, 2, 2, 4)
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state, case.daemon('--solver=cg', '--state=' + state, '--eigen-memory=3000000') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            assert '48' in refused(lambda: q.eigen('low', count, tol=1e-6), 'TOO_LARGE')
            assert 'basis = 12' in refused(lambda: q.eigen('low', count, tol=1e-6, basis=12), 'BAD_ARGUMENT')
            e = q.eigen('low', count, tol=1e-6, basis=basis, block=block)
            v = e.vectors(parity='even')
            flat = v.reshape(count, -1)
            assert abs(flat.conj() @ flat.T - np.eye(count)).max() < 1e-5
            assert np.all(np.diff(e.values) >= 0) and e.residuals[:basis].max() < 1e-5 < e.residuals[-1], e.residuals
            for n in (0, basis, count - 1):
                assert abs(np.linalg.norm(normal(q, v[n]) - e.values[n] * v[n]) - e.residuals[n]) < 1e-5, n
            listed, = q.eigen_list()
            assert (listed.basis, listed.block) == (basis, block) and listed.host_bytes <= q.status().everything['eigen_used'] < 2000000, listed
            text = case.ctl('eigen', '--list', endpoint=d.endpoint).out
            assert 'in a basis of 16, blocks 2x2x2x4' in text, text
            os.kill(q.status().engine['pid'], signal.SIGKILL)
            q.ready(patience=60)
            assert np.array_equal(e.vectors(parity='even', patience=60), v)
            q.load('fast', deflate='low')
            b = random_sources(1)
            x, y = q.solve(b, tol=1e-9, setup='fast'), q.solve(b, tol=1e-9)
            assert case.residual(x[0], b[0]) < 1.01e-9 and np.linalg.norm(x - y) < 1e-7 * np.linalg.norm(y)
            s, = (s for s in q.setups() if s.name == 'fast')
            assert s.everything['deflation']['vectors'] == count and s.everything['deflation']['origin'] == 'low'


@tap.test
def quarkctl_asks_for_compressed_ones(case):
    with case.daemon('--solver=cg') as d:
        d.wait_listening()
        for more, says in [(['--basis=12'], 'multiple of 8'), (['--basis=16'], 'multiple of 8'), (['--block=2x2x2x2'], '--block needs --basis'),
                           (['--basis=8', '--block=2x2x2'], 'four extents'), (['--basis=8', '--kind=gamma5'], '--kind=normal')]:
            out = case.ctl('eigen', 'low', '--count=16', *more, endpoint=d.endpoint)
            assert out.code == 64 and says in out.err, (more, out)
        out = case.ctl('eigen', 'low', '--count=16', '--basis=8', '--block=2x2x2x2', '--tol=1e-6', '--json', endpoint=d.endpoint).json
        assert out['basis'] == {'vectors': 8, 'block': [2, 2, 2, 2]} and len(out['eigenvalues']) == 16, out


@tap.test
def another_operator_takes_nothing(case):
    """The daemon is started with another mass: what depends on it is away until it is back; the Laplacian's vectors are not."""
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state:
        seen = []
        for more in ([], ['--kappa=0.119'], []):
            with case.daemon('--solver=cg', '--state=' + state, *more) as d:
                d.wait_listening()
                with quarkd.connect(d.endpoint) as q:
                    q.ready(patience=60)
                    if not seen:
                        q.eigen('low', 4, tol=1e-5)
                        q.eigen('gone', 2, tol=1e-3)
                        q.eigen('lap', 4, 'laplacian', tol=1e-5)
                    while any(r.state == 'returning' for r in q.eigen_list()):
                        time.sleep(0.05)
                    seen.append((sorted(r.name for r in q.eigen_list()), q.eigenvectors('lap', 1, t=2)))
                    if more:
                        refused(lambda: q.eigenvectors('low', 0), 'NOT_FOUND')
                        assert 'another operator' in refused(lambda: q.eigen('low', 4, tol=1e-5), 'BAD_ARGUMENT')
                        q.drop_eigen('gone')  # is not wanted: its file goes
        assert [names for names, _ in seen] == [['gone', 'lap', 'low'], ['lap'], ['lap', 'low']], [names for names, _ in seen]
        assert all(np.array_equal(seen[0][1], v) for _, v in seen)


@tap.test
def vectors_of_a_user_are_kept_as_they_are(case):
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state:
        with case.daemon('--state=' + state) as d:
            d.wait_listening()
            with quarkd.connect(d.endpoint) as q:
                lattice = q.shape[:4]
                v, single = orthonormal(lattice, 9, 1), orthonormal(lattice, 3, 2).astype(np.complex64)
                e = q.vectors('mine', v)
                assert e.kind == 'laplacian' and e.values.shape == e.residuals.shape == (lattice[0], 9) and not e.values.any() and e.residuals.max() < 1e-12, e
                assert abs(e.array() - v).max() < 1e-14
                f = q.vectors('single', single, keep=60)
                assert np.array_equal(f.array(), single) and 1e-9 < f.residuals.max() < 1e-4
                x = q.eigenvectors('single', 2, t=1, spin=3)
                want = np.zeros_like(x)
                want[1, ..., 3, :] = single[1, 2]
                assert np.array_equal(x, want)
                moved = q.status().counters['bytes_in']
                again = q.vectors('again', single)  # the daemon has it
                assert q.status().counters['bytes_in'] == moved and np.array_equal(again.array(), single)
                found = {r.name: r for r in q.eigen_list()}
                assert found['mine'].field.startswith('digest:') and found['single'].field == found['again'].field and found['mine'].lowest == 0, found
                # solves go by them as by others
                b = q.eigenvectors('mine', 8, t=0, spin=1)
                x = q.solve(b, tol=1e-9)
                assert np.linalg.norm(q.solve(quarkd.vector('mine', [8], t=0, spin=1), tol=1e-9)[0] - x) < 1e-7 * np.linalg.norm(x)
                b = np.zeros_like(x)
                b[0, ..., 1, :] = v[0, 8]
                assert np.linalg.norm(q.apply(x) - b) < 1e-8
                for bad in (dict(t_sources=[]), dict(t_sources=[1, 1]), dict(t_sources=1.5), dict(t_sources=[99]), dict(t_sources=0, count=0)):
                    try:
                        q.perambulator('mine', **bad)
                    except ValueError as error:
                        assert 'must be' in str(error), error
                    else:
                        raise AssertionError(bad)
                tau = q.perambulator('mine', [0], tol=1e-9)  # and projections
                want = np.einsum('tnzyxc,tzyxsc->tsn', v.conj(), x)
                assert abs(tau[0, 1, 8] - want).max() < 1e-8 * abs(want).max(), abs(tau[0, 1, 8] - want).max()
                bad = v.copy()
                bad[2, 5] += 1e-4 * bad[2, 1]
                assert 'time slice 2: the vectors are not orthonormal: V^+ V - 1 of vectors 1 and 5 is 0.0001' in refused(lambda: q.vectors('bad', bad), 'BAD_ARGUMENT')
                assert q.vectors('bad', bad, tol=1e-3).residuals.max() > 0.9e-4
                bad[2, 5] *= 2
                assert 'not normalised' in refused(lambda: q.vectors('worse', bad), 'BAD_ARGUMENT')
                for wrong, error in ((v.real, TypeError), (v[0], ValueError), (v[:3], ValueError), (v[..., :2], ValueError)):
                    try:
                        q.vectors('wrong', wrong)
                        raise AssertionError(wrong.shape)
                    except error:
                        pass
                again.drop()
        with case.daemon('--state=' + state) as d:
            d.wait_listening()
            with quarkd.connect(d.endpoint) as q:
                q.ready()
                x = q.eigenvectors('single', range(3), t=-1, patience=60)[..., 0, :]
                assert np.array_equal(x.transpose(1, 0, 2, 3, 4, 5), single)
                assert abs(q.eigenvectors('mine', 8, t=3, spin=2, patience=60)[3, ..., 2, :] - v[3, 8]).max() < 1e-14
                assert {r.name for r in q.eigen_list()} == {'mine', 'single', 'bad'}


@tap.test
def the_laplacians_own_go_out_and_in_again(case):
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            e = q.eigen('lap', 4, 'laplacian', tol=1e-6)
            v = e.array()
            gram = np.einsum('tnzyxc,tmzyxc->tnm', v.conj(), v)
            assert abs(gram - np.eye(4)).max() < 1e-5, abs(gram - np.eye(4)).max()
            assert abs(q.vectors('same', v, tol=1e-5).array() - v).max() < 1e-14


@tap.test
def values_are_written_again(case):
    """The file is the one that was written when they were computed, and so it is after the engine was lost."""
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state, case.daemon('--solver=cg', '--state=' + state) as d:
        d.wait_listening()
        first, again = os.path.join(state, 'first.h5'), os.path.join(state, 'again.h5')
        for name, more in (('low', []), ('lap', ['--kind=laplacian', '--smear-links=stout:0.1,2'])):
            said = case.ctl('eigen', name, '--count=4', '--tol=1e-6', '--values', first, '--json', *more, endpoint=d.endpoint).json
            for lost in range(2):
                out = case.ctl('eigen', name, '--values', again, '--json', endpoint=d.endpoint).json
                assert out['eigenvalues'] == said['eigenvalues'] and len(said['eigenvalues']) >= 4, out
                if h5py:
                    with h5py.File(first) as a, h5py.File(again) as b:
                        assert set(a) == set(b) == {'eigenvalue', 'residual'} and all(np.array_equal(a[k], b[k]) for k in a)
                        assert dict(a.attrs.items()).keys() == dict(b.attrs.items()).keys()
                        assert all(np.array_equal(a.attrs[k], b.attrs[k]) for k in a.attrs), dict(b.attrs)
                os.remove(again)
                with quarkd.connect(d.endpoint) as q:
                    e = q.eigen_values(name)
                    assert e.kind == out['kind'] and np.array_equal(np.stack([e.values, e.residuals], -1).reshape(-1, 2), said['eigenvalues'])
                    if not lost:
                        os.kill(q.status().engine['pid'], signal.SIGKILL)
                        q.ready(patience=60)
            os.remove(first)
        with quarkd.connect(d.endpoint) as q:
            refused(lambda: q.eigen_values('none'), 'NOT_FOUND')
            q.vectors('mine', orthonormal(q.shape[:4], 2, 1))
        out = case.ctl('eigen', 'low', '--kind=gamma5', '--values', again, endpoint=d.endpoint)
        assert out.code == 64 and '--kind' in out.err and not os.path.exists(again), out
        out = case.ctl('eigen', 'mine', '--values', again, endpoint=d.endpoint)
        assert out.code == 65 and 'not known' in out.err and not os.path.exists(again), out


@tap.test
def solves_begin_with_them(case):
    with case.daemon('--solver=cg') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.load('deflated', deflate=16)
            b = quarkd.point(0, 0, 0, 0)
            plain, less = q.propagator(b, tol=1e-9), q.propagator(b, tol=1e-9, setup='deflated')
            assert np.allclose(plain.numpy(), less.numpy(), rtol=0, atol=1e-7)
            assert q.status().setup['deflation']['vectors'] == 0
            s, = (s for s in q.setups() if s.name == 'deflated')
            assert s.everything['deflation']['vectors'] == 16 and s.everything['deflation']['lowest'] > 0, s.everything['deflation']


@tap.test
def solves_begin_with_those_of_a_name(case):
    """Whatever becomes of the set, and of the engine."""
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state, case.daemon('--solver=cg', '--state=' + state) as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            e, b = q.eigen('low', 16, tol=1e-6), random_sources(1)
            q.load('twin', deflate='low')
            text = refused(lambda: q.load('heavy', kappa=0.11, deflate='low'), 'BAD_ARGUMENT')
            assert 'deflate_from = low: those of setup main are of another operator' in text, text

            def twin():
                s, = (s for s in q.setups() if s.name == 'twin')
                assert case.residual(q.solve(b, tol=1e-9, setup='twin', patience=60)[0], b[0]) < 1.01e-9
                return s.everything['deflation']
            assert (twin()['vectors'], twin()['origin'], twin()['lowest']) == (16, 'low', e.values[0]), twin()
            e.drop()
            os.kill(case.ctl('status', '--setup=twin', '--json', endpoint=d.endpoint).json['engine']['pid'], signal.SIGKILL)
            q.ready('twin', patience=60)
            assert twin()['vectors'] == 16 and twin()['origin'] == 'low', twin()


tap.run(Case(*sys.argv[1:]))
