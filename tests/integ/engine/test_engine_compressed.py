"""Compressed eigenvectors: test_engine_compressed.py QUARK_ENGINE QUARK_GAUGE RANKS

Vectors are expanded by the engine, and compared with the dense matrices of the numpy oracle.
"""
import os
import sys
import tempfile

import tap
try:
    import numpy as np
    import ref_dirac as ref
    from eigen_oracle import dense_mhat
    from engine_case import BAD_ARGUMENT, BOUNDARY, Case, eigen_ask, eigen_ends, OK
    from engine_driver import pb, qk, TIMEOUT, Vector
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

NOT_FOUND, BAD_GEOMETRY = 109, 101
SMALL, NARROW, LONG = 'builtin:weak:4x4x2x4:7', 'builtin:weak:2x2x2x8:7', 'builtin:weak:4x4x4x8:3'
BASIS = 8
# action, parameters, vectors, links, slices or flavours
ACTIONS = [('wilson-clover', dict(mass=-0.25, csw=1.1), 20, SMALL, 1), ('doublet', dict(mass=-0.1, mu=0.2, epsilon=0.15, csw=1.0), 12, NARROW, 2),
           ('moebius', dict(mass=0.1, M5=1.4, Ls=3, b=1.5, c=0.5, b_im=0.2), 16, NARROW, 3)]


def alone(case):
    if case.ranks > 1:
        raise tap.Skip('one rank tells as much')


def ask(e, out=None, **more):
    return eigen_ask(e, out, **{**dict(name='low', kind=qk.EIGEN_NORMAL, tol=1e-11, basis=BASIS, block=(2, 2, 2, 2)), **more})


def eigen(e, count, **more):
    """(values, residuals, EigenDone) of an EIGEN that is good."""
    with Vector((count,)) as out:
        done = eigen_ends(e, ask(e, out, count=count, **more))
        assert done.status == OK, done
        pairs = out.read().view(float).reshape(count, 2)
        assert pairs[0, 0] == done.lowest and pairs[-1, 0] == done.highest and pairs[:, 1].max() == done.residual
        return pairs[:, 0], pairs[:, 1], done


def vector(e, shape, n, **column):
    """A vector as it is downloaded."""
    with Vector(shape) as sink:
        serial = e.fill(0, source=qk.SOURCE_VECTOR, vectors='low', column=qk.Column(vector=n, **column), shm_out=sink.name, work=qk.WORK_SMEAR)
        done = e.done()[serial]
        assert done.status == OK, done
        return sink.read()


def whole(e, op, n):
    """With all slices."""
    if not hasattr(op, 'apply5'):
        return vector(e, op.shape, n).reshape(-1)
    return np.stack([vector(e, op.shape, n, slice=s) for s in range(op.ls)]).reshape(-1)


def bytes_of(links, count, vectors, planes):
    """Of a basis of vectors, and of coefficients of all: 24 reals a site; two chiralities a block of 16 sites."""
    sites = int(np.prod(links.shape[1:5]))
    return 4 * planes * (BASIS * sites // 2 * 24 * vectors + (count + 7) // 8 * 8 * sites // 16 * 2 * BASIS * 2)


@tap.test
def vectors_are_the_ritz_vectors_of_the_space_that_they_span(case):
    """Values and residuals are what the dense matrix says of the vectors; those of the basis are exact."""
    alone(case)
    for action, given, n, gauge, parts in ACTIONS:
        links = case.links_of(gauge)
        op = ref.ACTIONS[action](links, BOUNDARY, **given)
        mhat, even = dense_mhat(op)
        a = mhat.conj().T @ mhat
        want = np.linalg.eigvalsh(a)
        with case.with_action(gauge, action, given) as e:
            values, residuals, done = eigen(e, n)
            v = np.stack([whole(e, op, k) for k in range(n)], 1)
            assert not np.delete(v, even, 0).any()
            v = v[even]
            assert done.host_bytes == bytes_of(links, n, parts, 2), (done.host_bytes, bytes_of(links, n, parts, 2))
        top = want[-1]
        projected = v.conj().T @ a @ v
        off = np.linalg.norm(a @ v - v * values, axis=0)
        print('# %s: values %.3g to %.3g, %.3g to %.3g exact; residuals of the basis %.1e, of the others up to %.2g of the largest eigenvalue' %
              (action, values[0], values[-1], want[0], want[n - 1], residuals[:BASIS].max() / top, residuals.max() / top))
        assert np.abs(v.conj().T @ v - np.eye(n)).max() < 1e-11
        assert np.abs(projected - np.diag(values)).max() < 1e-11 * top
        assert np.abs(off - residuals).max() < 1e-11 * top and residuals[:BASIS].max() < 1e-10 * top
        assert np.abs(values[:BASIS] - want[:BASIS]).max() < 1e-10 * top and (np.diff(values) >= 0).all()
        assert (values > want[:n] - 1e-11 * top).all() and (values < 2 * want[:n] + 0.2 * top).all(), (values, want[:n])


@tap.test
def in_single_they_are_as_good_as_single(case):
    alone(case)
    action, given, n, gauge, _ = ACTIONS[0]
    links = case.links_of(gauge)
    mhat, even = dense_mhat(ref.ACTIONS[action](links, BOUNDARY, **given))
    a = mhat.conj().T @ mhat
    with case.with_action(gauge, action, given, inner='PRECISION_SINGLE') as e:
        values, residuals, done = eigen(e, n, tol=1e-5)
        assert done.host_bytes == bytes_of(links, n, 1, 1)
        for k in (0, BASIS, n - 1):
            v = vector(e, tuple(links.shape[1:5]) + (4, 3), k).ravel()[even]
            assert abs(np.linalg.norm(v) - 1) < 1e-5
            assert abs(np.linalg.norm(a @ v - values[k] * v) - residuals[k]) < 2e-5


@tap.test
def a_killed_computation_goes_on(case):
    """Before there is a basis, and in its space; what is complete is read, on any grid."""
    problem, given = dict(count=24, tol=1e-11, space=40, block=(2, 2, 2, 4), order=6), dict(mass=-0.2, csw=1.1)
    shape = tuple(reversed((4, 4, 4, 8))) + (4, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'low')
        with case.with_action(LONG, 'wilson-clover', given) as e:
            want, residuals, plain = eigen(e, **problem)
        reached, sizes = -1, []
        for point in range(8):
            e = case.with_action(LONG, 'wilson-clover', given)
            serial = ask(e, file=path, **problem)
            while True:  # progress is told after restarts, and between
                name, body = e.receive()
                size = os.path.getsize(path) if os.path.exists(path) else 0
                if name == 'eigen_done' or size and (size not in sizes or sizes.count(size) < 2 and body.restart > reached):
                    break
            if name == 'eigen_done':
                assert body.serial == serial and body.status == OK, body
                e.stop()
                break
            reached = body.restart
            sizes.append(size)
            for pid in e.ranks():
                os.kill(pid, 9)
            e.process.wait(TIMEOUT)
            e.__exit__()
        assert len(set(sizes)) >= 2, sizes  # with a basis, and without
        with case.with_action(LONG, 'wilson-clover', given) as e:
            values, again, done = eigen(e, file=path, **problem)
            assert np.abs(values - want).max() < 1e-7 and np.abs(again - residuals).max() < 1e-6, (np.abs(values - want).max(), np.abs(again - residuals).max())
            v = vector(e, shape, 20)
        case.ranks, before = 3 - case.ranks if case.more else case.ranks, case.ranks
        try:
            with case.with_action(LONG, 'wilson-clover', given) as e:
                read, _, done = eigen(e, file=path, restore=True, **problem)
                assert (read == values).all() and np.abs(vector(e, shape, 20) - v).max() < 1e-13
                done = eigen_ends(e, ask(e, name='other', file=path, restore=True, **dict(problem, block=(2, 2, 2, 2))))
                assert done.status == NOT_FOUND and '2x2x2x4' in done.text, done
        finally:
            case.ranks = before


@tap.test
def solves_begin_with_them(case):
    """Solutions are those of the oracle, after fewer iterations than without; the memory is that of basis and coefficients."""
    given, n = dict(mass=-0.12), 48
    gauge = 'builtin:weak:4x4x4x16:3'
    op = ref.ACTIONS['wilson'](case.links_of(gauge), BOUNDARY, **given)
    sources = [np.random.default_rng(k).normal(size=op.shape + (2,)) @ np.array([1, 1j]) for k in range(2)]

    def iterations(**more):
        total = 0
        with case.with_action(gauge, 'wilson', given, **more) as e:
            for b in sources:
                x, end = e.solve(b, tol=1e-10, max_iter=20000)
                assert end.status == OK and np.linalg.norm(b - op.apply(x)) <= 1.01e-10 * np.linalg.norm(b), end
                total += end.iterations
            return total, e.facts.deflation

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'low')
        with case.with_action(gauge, 'wilson', given, inner='PRECISION_SINGLE') as e:
            values, residuals, _ = eigen(e, n, file=path, tol=1e-5, basis=24, block=(2, 2, 2, 4))
        for inner in 'PRECISION_SINGLE', 'PRECISION_DOUBLE':
            plain, _ = iterations(inner=inner)
            few, _ = iterations(inner=inner, deflate=n)
            some, r = iterations(inner=inner, deflate_file=path, deflate_from='low')
            print('# %s: %d iterations, %d by compressed vectors, %d by whole ones; residuals up to %.2g' % (inner, plain, some, few, residuals.max()))
            assert r.vectors == n and r.origin == 'low' and r.restored and abs(r.highest - values[-1]) < 1e-12
            assert some < 0.75 * plain and few <= some
        cut, r = iterations(inner='PRECISION_SINGLE', deflate_file=path, deflate_from='low', deflate=32)
        assert r.vectors == 32 and cut < plain


@tap.test
def what_does_not_fit_is_refused_by_name(case):
    with case.with_action(LONG, 'wilson-clover', dict(mass=-0.2, csw=1.1)) as e:
        for more, says in [(dict(basis=12), 'basis = 12'), (dict(basis=24), 'basis = 24'), (dict(kind=qk.EIGEN_GAMMA5), 'kind = 0'),
                           (dict(block=(1, 2, 2, 2)), 'block: 1 in x'), (dict(block=(4, 4, 3, 4)), 'block: 3 in z'), (dict(block=(2, 2)), 'block: 2 numbers'),
                           (dict(basis=0), 'block: it is for a basis')]:
            done = eigen_ends(e, ask(e, **{**dict(count=24), **more}))
            assert done.status == BAD_ARGUMENT and says in done.text, (more, done)
        if case.ranks == 1:  # two blocks or one: too few numbers for 24 vectors, which is known before a basis is made
            done = eigen_ends(e, ask(e, count=24, block=(4, 4, 4, 8)))
            assert done.status == BAD_ARGUMENT and 'within the basis of' in done.text and '= 24' in done.text, done
        if case.ranks > 1:
            done = eigen_ends(e, ask(e, count=24, block=(2, 2, 2, 8)))
            assert done.status == BAD_GEOMETRY and '8 in t' in done.text, done
            done = eigen_ends(e, ask(e, count=24, block=(2, 2, 2, 8), file='/dev/null', restore=True))  # a file would stay
            assert done.status == NOT_FOUND and '8 in t' in done.text, done
        assert e.stop() == 0


if __name__ == '__main__':
    CASE = Case(*sys.argv[1:])
    CASE.more = os.environ.get('QK_MPI', '1') == '1'
    tap.run(CASE)
