"""Eigenvectors as a service of quark-engine: test_engine_eigen.py QUARK_ENGINE QUARK_GAUGE RANKS

Values and vectors are compared with the dense matrices of the numpy oracle.
"""
import os
import sys
import tempfile
import time

import tap
try:
    import numpy as np
    import ref_dirac as ref
    from eigen_oracle import as_five, columns, dense_mhat
    from engine_case import BAD_ARGUMENT, BOUNDARY, CANCELLED, Case, eigen_ask, eigen_ends, OK
    from engine_driver import pb, qk, REAL, TIMEOUT, Vector
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

NOT_FOUND, UNSUPPORTED, BAD_PROTOCOL = 109, 108, 112
SMALL, LONG = 'builtin:weak:2x2x2x4:7', 'builtin:weak:4x4x4x8:3'
ACTIONS = [('wilson-clover', dict(mass=-0.25, csw=1.1), 20), ('doublet', dict(mass=-0.1, mu=0.2, epsilon=0.15, csw=1.0), 9),
           ('moebius', dict(mass=0.1, M5=1.4, Ls=3, b=1.5, c=0.5, b_im=0.2), 12)]


def ask(e, out=None, **more):
    return eigen_ask(e, out, **{**dict(name='low', kind=qk.EIGEN_NORMAL, count=8, tol=1e-11), **more})


def eigen(e, count=8, **more):
    """(values, residuals, EigenDone) of an EIGEN that is good."""
    with Vector((count,)) as out:
        done = eigen_ends(e, ask(e, out, count=count, **more))
        assert done.status == OK, done
        pairs = out.read().view(float).reshape(count, 2)
        assert abs(pairs[0, 0] - done.lowest) == 0 and pairs[-1, 0] == done.highest and pairs[:, 1].max() == done.residual
        return pairs[:, 0], pairs[:, 1], done


def vector(e, shape, n, name='low', **column):
    """A vector as it is downloaded."""
    with Vector(shape) as sink:
        serial = e.fill(0, source=qk.SOURCE_VECTOR, vectors=name, column=qk.Column(vector=n, **column), shm_out=sink.name,
                        work=qk.WORK_SMEAR)
        done = e.done()[serial]
        assert done.status == OK, done
        return sink.read()


def alone(case):
    if case.ranks > 1:
        raise tap.Skip('one rank tells as much')


@tap.test
def lowest_vectors_are_those_of_the_dense_matrix(case):
    alone(case)
    links = case.links_of(SMALL)
    for action, given, n in ACTIONS:
        op = ref.ACTIONS[action](links, BOUNDARY, **given)
        mhat, even = dense_mhat(op)
        a = mhat.conj().T @ mhat
        want = np.linalg.eigvalsh(a)
        five = hasattr(op, 'apply5')
        shape = (op.ls,) + op.shape if five else op.shape
        with case.with_action(SMALL, action, given) as e:
            values, residuals, done = eigen(e, n)
            assert np.abs(values - want[:n]).max() < 1e-10 * want[-1] and residuals.max() < 1e-10 * want[-1]
            assert done.restarts > 0 and done.applications > 0 and done.host_bytes > 0
            for k in (0, n - 1):
                v = np.stack([vector(e, op.shape, k, slice=s) for s in range(op.ls)]) if five else vector(e, op.shape, k)
                v = v.reshape(-1)
                assert not np.delete(v, even).any() and abs(np.linalg.norm(v) - 1) < 1e-12
                off = np.linalg.norm(a @ v[even] - values[k] * v[even])
                assert off < 1e-10 * want[-1], off
            print('# %s: %.3g to %.3g, residuals up to %.1e' % (action, values[0], values[-1], residuals.max()))


@tap.test
def vectors_in_single_are_as_good_as_single(case):
    alone(case)
    links = case.links_of(SMALL)
    action, given, n = ACTIONS[0]
    mhat, even = dense_mhat(ref.ACTIONS[action](links, BOUNDARY, **given))
    a = mhat.conj().T @ mhat
    want = np.linalg.eigvalsh(a)
    with case.with_action(SMALL, action, given) as e:
        values, residuals, done = eigen(e, n, tol=1e-5)
        assert np.abs(values - want[:n]).max() < 3e-6 * want[-1]
        v = vector(e, tuple(links.shape[1:5]) + (4, 3), 3).ravel()[even]
        assert np.linalg.norm(a @ v - values[3] * v) < 2e-5 * want[-1]


@tap.test
def many_vectors_are_rotated_piece_by_piece(case):
    """More than a kernel rotates in place, and a dense problem beside the solves."""
    alone(case)
    gauge, (action, given, _), n = 'builtin:weak:4x4x2x4:7', ACTIONS[0], 40
    links = case.links_of(gauge)
    mhat, even = dense_mhat(ref.ACTIONS[action](links, BOUNDARY, **given))
    a = mhat.conj().T @ mhat
    want = np.linalg.eigvalsh(a)
    with tempfile.TemporaryDirectory() as folder, case.with_action(gauge, action, given) as e:
        values, residuals, done = eigen(e, n, tol=1e-10, space=520, order=2, file=os.path.join(folder, 'low'))
        assert np.abs(values - want[:n]).max() < 1e-9 * want[-1] and residuals.max() < 1e-9 * want[-1] and done.restarts > 1, done
        for k in (0, n - 1):
            v = vector(e, tuple(links.shape[1:5]) + (4, 3), k).ravel()[even]
            assert np.linalg.norm(a @ v - values[k] * v) < 1e-9 * want[-1]


@tap.test
def gamma5_has_both_ends_of_the_sign(case):
    alone(case)
    links = case.links_of(SMALL)
    action, given, n = 'wilson-clover', dict(mass=-1.1, csw=1.1), 12
    op = ref.ACTIONS[action](links, BOUNDARY, **given)
    apply, shape = as_five(op)
    g5 = np.broadcast_to(np.diag(ref.GAMMA5).real[:, None], shape).ravel()
    h = g5[:, None] * columns(apply, shape, np.arange(g5.size)).T
    want = np.linalg.eigvalsh(h)
    want = want[np.argsort(np.abs(want), kind='stable')]
    with case.with_action(SMALL, action, given) as e:
        values, residuals, _ = eigen(e, n, kind=qk.EIGEN_GAMMA5, tol=1e-8)
        assert np.abs(np.abs(values) - np.abs(want[:n])).max() < 1e-9 and (values > 0).any() and (values < 0).any(), (values, want[:n])
        for k in range(0, n, 5):
            v = vector(e, shape, k).ravel()
            assert np.linalg.norm(h @ v - values[k] * v) < 1e-7, k
    with case.with_action(SMALL, *ACTIONS[2][:2]) as e:
        done = eigen_ends(e, ask(e, kind=qk.EIGEN_GAMMA5))
        assert done.status == UNSUPPORTED and 'moebius' in done.text, done


@tap.test
def a_killed_computation_goes_on_from_its_last_restart(case):
    problem = dict(count=16, tol=1e-11, space=40, order=10)
    given = dict(mass=-0.2, csw=1.1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'low')
        with case.with_action(LONG, 'wilson-clover', given) as e:
            want, _, whole = eigen(e, **problem)
        print('# %d restarts' % whole.restarts)
        reached = -1
        for point in range(5 if case.ranks == 1 else 2):
            e = case.with_action(LONG, 'wilson-clover', given)
            ask(e, file=path, **problem)
            while True:  # to another point each time: progress is told after restarts, and between
                name, body = e.receive()
                assert name == 'eigen_progress', body
                if body.restart > reached and os.path.exists(path):
                    break
            assert point == 0 or body.restart >= reached, (body, reached)
            reached = body.restart
            for pid in e.ranks():
                os.kill(pid, 9)
            e.process.wait(TIMEOUT)
            e.__exit__()
        with case.with_action(LONG, 'wilson-clover', given) as e:
            values, _, done = eigen(e, file=path, **problem)
            assert done.restarts == whole.restarts and done.applications < whole.applications, (done, whole)
            assert np.abs(values - want).max() < 1e-10, np.abs(values - want).max()
        # what is complete is read, on any grid
        case.ranks, before = 3 - case.ranks if case.ranks in (1, 2) and case.more else case.ranks, case.ranks
        try:
            with case.with_action(LONG, 'wilson-clover', given) as e:
                again, _, done = eigen(e, file=path, restore=True, **problem)
                assert (again == values).all()
                shape = tuple(reversed((4, 4, 4, 8))) + (4, 3)
                v = vector(e, shape, 5)
        finally:
            case.ranks = before
        with case.with_action(LONG, 'wilson-clover', given) as e:
            eigen(e, file=path, restore=True, **problem)
            assert (vector(e, shape, 5) == v).all()
            for more, other in [(dict(mass=-0.1, csw=1.1), LONG), (given, 'builtin:weak:4x4x4x8:4')]:
                with case.with_action(other, 'wilson-clover', more) as o:
                    for restore in (False, True):
                        done = eigen_ends(o, ask(o, file=path, restore=restore, **problem))
                        assert done.status == NOT_FOUND and 'eigenvectors o' in done.text and ', not ' in done.text, done
            e.send(eigen_drop=pb.EigenDrop(name='low'))
            done = eigen_ends(e, ask(e, file=path, restore=True, **problem))
            assert done.status == NOT_FOUND and not os.path.exists(path), done


@tap.test
def a_damaged_file_is_made_anew(case):
    given, problem = dict(mass=-0.2, csw=1.1), dict(count=8, tol=1e-8)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'low')
        with case.with_action(LONG, 'wilson-clover', given) as e:
            want, _, _ = eigen(e, file=path, **problem)
        size = os.path.getsize(path)
        for at in (100, 8192 + 3, size - 5):
            with open(path, 'r+b') as f:
                f.seek(at)
                byte = f.read(1)[0]
                f.seek(at)
                f.write(bytes([byte ^ 1]))
            with case.with_action(LONG, 'wilson-clover', given) as e:
                done = eigen_ends(e, ask(e, file=path, restore=True, **problem))
                assert done.status not in (OK, NOT_FOUND), done
                values, _, done = eigen(e, file=path, **problem)
                assert (values == want).all() and done.applications > 0
        os.truncate(path, size // 2)
        with case.with_action(LONG, 'wilson-clover', given) as e:
            assert eigen_ends(e, ask(e, file=path, restore=True, **problem)).status not in (OK, NOT_FOUND)


@tap.test
def solves_go_on_beside_it_and_cancel_ends_it(case):
    given = dict(mass=-0.2, csw=1.1)
    op = ref.ACTIONS['wilson-clover'](case.links_of(LONG), BOUNDARY, **given)
    with tempfile.TemporaryDirectory() as folder, case.with_action(LONG, 'wilson-clover', given) as e:
        path = os.path.join(folder, 'low')
        serial = ask(e, file=path, count=40, tol=1e-12, space=64, order=4, restarts=1000)
        b = np.random.default_rng(3).normal(size=op.shape + (2,)) @ np.array([1, 1j])
        with Vector(b.shape, data=b) as source, Vector(b.shape) as sink:
            fill = e.fill(0, shm_in=source.name, shm_out=sink.name)
            end = e.expect('fill_done', skip=('eigen_progress', 'fill_progress'))
            assert end.serial == fill and end.status == OK
            assert np.linalg.norm(b - op.apply(sink.read())) < 1.01e-10 * np.linalg.norm(b)
        assert ask(e) and e.expect('eigen_done', skip=('eigen_progress',)).status == BAD_PROTOCOL
        while not os.path.exists(path):
            e.expect('eigen_progress')
        e.send(eigen_cancel=pb.EigenCancel(serial=serial + 100))
        e.send(eigen_cancel=pb.EigenCancel(serial=serial))
        assert eigen_ends(e, serial).status == CANCELLED and os.listdir(folder) == []
        values, _, done = eigen(e, tol=1e-6, file=path)
        assert done.lowest == values[0]
        serial = ask(e, tol=1e-6, name='low', file=path)  # there: at once
        assert eigen_ends(e, serial).lowest == values[0]


@tap.test
def solves_have_half_of_the_time(case):
    """A step of eigenvectors takes as long as many steps of a solve: they do not take turns one by one."""
    alone(case)
    with case.with_action(LONG, 'wilson-clover', dict(mass=-0.25, csw=1.1)) as e:
        start = time.monotonic()
        serial = ask(e, count=40, tol=1e-12, space=64, order=100, restarts=1000)
        while e.expect('eigen_progress').restart < 1:
            pass
        step = (time.monotonic() - start) / 9  # as many blocks until then, and the search for the top
        b = case.random(3)[:8, :4, :4, :4]
        with Vector(b.shape, data=b) as source, Vector(b.shape) as sink:
            start = time.monotonic()
            e.fill(0, shm_in=source.name, shm_out=sink.name, tol=1e-12)
            end = e.expect('fill_done', skip=('eigen_progress', 'fill_progress'))
            took = time.monotonic() - start
        turns = end.iterations / 4
        print('# %.2f s, %.0f turns of %.3f s' % (took, turns, step))
        assert end.status == OK and turns > 10 and took < turns * step / 4
        e.send(eigen_cancel=pb.EigenCancel(serial=serial))
        assert eigen_ends(e, serial).status == CANCELLED


@tap.test
def what_cannot_be_is_refused_by_name(case):
    given = dict(mass=-0.2, csw=1.1)
    with case.with_action(LONG, 'wilson-clover', given) as e:
        for more, status, says in [(dict(count=0), BAD_ARGUMENT, 'count = 0'), (dict(count=769), BAD_ARGUMENT, 'must be 1 to 768'),
                                   (dict(tol=1e-15), BAD_ARGUMENT, 'tolerance of eigenvectors = 1e-15'),
                                   (dict(space=20), BAD_ARGUMENT, 'Krylov space = 20'), 
                                   (dict(restarts=1, tol=1e-12), 200, 'after 1 restarts'), (dict(name='../x'), BAD_ARGUMENT, 'name')]:
            done = eigen_ends(e, ask(e, **more))
            assert done.status == status and says in done.text, (more, done)
        with Vector((5,)) as short:
            done = eigen_ends(e, ask(e, short, tol=1e-6))
            assert done.status == BAD_ARGUMENT, done
        eigen(e, tol=1e-6)
        done = eigen_ends(e, ask(e, tol=1e-7))
        assert done.status == BAD_ARGUMENT and 'drop' in done.text, done
        for more, status, says in [(dict(vectors='high'), NOT_FOUND, 'high'), (dict(column=qk.Column(vector=8)), BAD_ARGUMENT, 'vector = 8'),
                                   (dict(column=qk.Column(slice=1)), BAD_ARGUMENT, 'slice = 1')]:
            with Vector((8, 4, 4, 4, 4, 3)) as sink:
                serial = e.fill(0, **{**dict(source=qk.SOURCE_VECTOR, vectors='low', column=qk.Column(vector=0), shm_out=sink.name,
                                             work=qk.WORK_SMEAR), **more})
                end = e.done()[serial]
                assert end.status == status and says in end.text and not end.written, (more, end)
        assert e.stop() == 0


if __name__ == '__main__':
    CASE = Case(*sys.argv[1:])
    CASE.more = os.environ.get('QK_MPI', '1') == '1'
    tap.run(CASE)
