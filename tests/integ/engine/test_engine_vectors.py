"""Vectors that a client has sent in the place of eigenvectors of the Laplacian: test_engine_vectors.py QUARK_ENGINE QUARK_GAUGE RANKS"""
import os
import sys
import tempfile

import tap
try:
    import numpy as np
    from engine_case import BAD_ARGUMENT, Case, OK
    from engine_driver import pb, qk, Vector
    from field_vectors import as_seen, orthonormal, vectors_digest
except (ImportError, OSError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and libxxhash are needed: %s' % missing)

GAUGE, DIMS = 'builtin:weak:4x8x4x8:7', (4, 8, 4, 8)
GIVEN = dict(mass=-0.2, csw=1.1)
BAD_GEOMETRY, BAD_CHECKSUM, IO_ERROR, NOT_FOUND = 101, 104, 113, 109
COUNT = 11  # one block, and three of the next
V = orthonormal(DIMS, COUNT, 1)
NONE = np.zeros((2, 1, 2, 2, 2, 3), complex)


def grids(case):
    n = case.ranks
    return [(1, 1, 1, n)] + [(1, n, 1, 1)] * (n > 1) + [(1, 2, 1, n // 2)] * (n > 2)


def engine(case, **more):
    return case.with_action(GAUGE, 'wilson-clover', GIVEN, **more)


def ask(e, v, single=False, out=None, file=None, restore=False, digest=None, name='given', memory=None, **problem):
    """EigenDone of vectors in shared memory."""
    e.serials += 1
    number = vectors_digest(as_seen(v, single)) if digest is None else digest
    p = qk.EigenProblem(**{**dict(name=name, kind=qk.EIGEN_LAPLACIAN, count=v.shape[1], tol=1e-4 if single else 1e-12, field='digest:%016x' % number), **problem})
    with Vector(v.shape, qk.DTYPE_F32 if single else qk.DTYPE_F64, v) as there:
        m = pb.Eigen(serial=e.serials, problem=p, restore=restore)
        if not restore:
            m.memory = 'memory:%s:%s' % (there.name, 'f32' if single else 'f64') if memory is None else memory
        if out:
            m.shm_out = out.name
        if file:
            m.file = file
        e.send(eigen=m)
        done = e.expect('eigen_done', skip=('eigen_progress', 'fill_progress'))
    assert done.serial == e.serials, done
    return done


def source(e, n, t, spin, name='given'):
    with Vector(DIMS[::-1] + (4, 3)) as sink:
        serial = e.fill(0, source=qk.SOURCE_VECTOR, vectors=name, column=qk.Column(vector=n, t=t, spin=spin), shm_out=sink.name, work=qk.WORK_SMEAR)
        done = e.done()[serial]
        assert done.status == OK, done
        return sink.read()


def check_sources(e, v, exact, name='given', numbers=(0, 7, 8, COUNT - 1)):
    """As they were sent: of 64 bit the first 48."""
    for n in numbers:
        for t, spin in ((-1, 3), (5, 0)):
            want = np.zeros(DIMS[::-1] + (4, 3), complex)
            at = slice(None) if t < 0 else t
            want[at, ..., spin, :] = v[:, n][at]
            x = source(e, n, t, spin, name)
            assert np.array_equal(x, want) if exact else abs(x - want).max() <= 2 ** -47 * abs(want).max(), (n, t, abs(x - want).max())


@tap.test
def they_are_kept_as_they_are(case):
    with tempfile.TemporaryDirectory() as folder:
        name = {False: 'double', True: 'single'}

        def file(single):
            return os.path.join(folder, name[single])
        with engine(case, grid=grids(case)[-1]) as e:
            for single in False, True:
                seen = as_seen(V, single)
                gram = np.einsum('tnzyxc,tmzyxc->tnm', seen.conj(), seen)
                off = abs(gram - np.eye(COUNT)).max(axis=2)
                given = dict(single=single, name=name[single], file=file(single))
                with Vector((DIMS[3], COUNT)) as out:
                    done = ask(e, V, out=out, **given)
                    assert done.status == OK, done
                    pairs = out.read().view(float).reshape(DIMS[3], COUNT, 2)
                    assert (done.lowest, done.highest) == (0, 0) and not pairs[..., 0].any()
                    assert done.residual == pairs[..., 1].max() and abs(pairs[..., 1] - off).max() < (1e-9 if single else 1e-14), (pairs[..., 1], off)
                    again = ask(e, V, out=out, **given)  # is there
                    assert again.status == OK and again.residual == done.residual
                check_sources(e, seen, single, name[single])
                other = ask(e, V, digest=vectors_digest(seen) ^ 1, **given)
                assert other.status == BAD_ARGUMENT and 'of this name are here' in other.text, other
        with engine(case, grid=grids(case)[0]) as e:  # from their files, without the field, on another grid
            for single in False, True:
                given = dict(restore=True, digest=vectors_digest(as_seen(V, single)), count=COUNT, tol=1e-4 if single else 1e-12)
                assert ask(e, NONE, name=name[single], file=file(single), **given).status == OK
                check_sources(e, as_seen(V, single), single, name[single], (7, COUNT - 1))
                done = ask(e, NONE, name='other', file=file(single), **{**given, 'digest': 5})
                assert done.status == NOT_FOUND, done
                e.send(eigen_drop=pb.EigenDrop(name=name[single]))
                given = dict(single=single, name=name[single], file=file(single))
                assert ask(e, V, **given).status == OK and os.path.exists(file(single))  # on this grid, too
                check_sources(e, as_seen(V, single), single, name[single], (8,))


@tap.test
def what_is_not_as_it_should_be_is_refused_by_name(case):
    with engine(case, grid=grids(case)[-1]) as e:
        bad = V.copy()
        bad[3, 9] += 2e-5 * bad[3, 4]
        done = ask(e, bad, tol=1e-6)
        assert done.status == BAD_ARGUMENT, done
        assert 'time slice 3: the vectors are not orthonormal: V^+ V - 1 of vectors 4 and 9 is 2e-05, the limit is 1e-06 (tol)' in done.text, done
        assert ask(e, bad, tol=1e-4, name='coarse').status == OK
        bad = V.copy()
        bad[6, 10] *= 1 + 1e-7
        done = ask(e, bad, tol=1e-8)
        assert done.status == BAD_ARGUMENT and 'time slice 6: ' in done.text and 'vectors 10 and 10 is 2e-07' in done.text, done
        bad[6, 10, 0, 0, 0, 0] = np.nan
        done = ask(e, bad)
        assert done.status == BAD_ARGUMENT and '1 numbers of the vectors are NaN or Inf' in done.text, done
        done = ask(e, V, digest=5)
        assert done.status == BAD_CHECKSUM and 'the digest %016x, not 0000000000000005' % vectors_digest(V) in done.text, done
        done = ask(e, V, count=COUNT + 1)
        assert done.status == BAD_GEOMETRY and 'vectors of %d bytes: %d are needed' % (V.nbytes, V.nbytes // COUNT * (COUNT + 1)) in done.text, done
        for memory, status, words in (('memory:/qk-test-is-not-there:f64', IO_ERROR, 'cannot open'), ('memory:f64', BAD_ARGUMENT, 'memory:/NAME:f32|f64'),
                                      ('memory:/x:f16', BAD_ARGUMENT, 'memory:/NAME:f32|f64'), ('', BAD_ARGUMENT, 'it goes with a field')):
            done = ask(e, V, memory=memory)
            assert done.status == status and words in done.text, (memory, done)
        done = ask(e, V, name='none', restore=True)
        assert done.status == NOT_FOUND, done
        assert ask(e, V).status == OK
        check_sources(e, V, False, numbers=(10,))
        assert e.stop() == 0


@tap.test
def a_full_disk_costs_the_file_alone(case):
    """Whichever write finds no room; computed ones, too."""
    for first in (1, 2, 6) if case.ranks == 1 else (4,):
        with tempfile.TemporaryDirectory() as folder, engine(case, env={'QK_FAULTS': 'write:%d+' % first}) as e:
            file = os.path.join(folder, 'set')
            assert ask(e, V, file=file).status == OK
            check_sources(e, V, False, numbers=(3,))
            assert os.listdir(folder) == []
            if first > 1:
                continue
            e.serials += 1
            e.send(eigen=pb.Eigen(serial=e.serials, problem=qk.EigenProblem(name='low', kind=qk.EIGEN_NORMAL, count=1, tol=1e-2), file=file))
            done = e.expect('eigen_done', skip=('eigen_progress',))
            assert done.status == OK and done.lowest > 0 and os.listdir(folder) == [], done
            assert np.linalg.norm(source(e, 0, 0, 0, 'low')) > 0.9


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
