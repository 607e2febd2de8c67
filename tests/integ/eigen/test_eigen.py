"""Eigenvectors with the real engine and in Python: test_eigen.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import signal
import sys
import tempfile

from cli_case import Case, np, random_sources, tap
import quarkd

COUNT = 8


def refused(call, code):
    try:
        call()
    except quarkd.Error as e:
        assert quarkd.errors.code_name(e.code) == code, e
        return str(e)
    raise AssertionError('was not refused')


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
