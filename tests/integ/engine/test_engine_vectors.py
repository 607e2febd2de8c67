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


def check_sources(e, v, exact, numbers=(0, 7, 8, COUNT - 1)):
    """As they were sent: of 64 bit the first 48."""
    for n in numbers:
        for t, spin in ((-1, 3), (5, 0)):
            want = np.zeros(DIMS[::-1] + (4, 3), complex)
            at = slice(None) if t < 0 else t
            want[at, ..., spin, :] = v[:, n][at]
            x = source(e, n, t, spin)
            assert np.array_equal(x, want) if exact else abs(x - want).max() <= 2 ** -47 * abs(want).max(), (n, t, abs(x - want).max())


@tap.test
def they_are_kept_as_they_are(case):
    for grid in grids(case):
        with engine(case, grid=grid) as e, tempfile.TemporaryDirectory() as folder:
            for single in False, True:
                seen, file = as_seen(V, single), os.path.join(folder, 'set%d' % single)
                gram = np.einsum('tnzyxc,tmzyxc->tnm', seen.conj(), seen)
                off = abs(gram - np.eye(COUNT)).max(axis=2)
                with Vector((DIMS[3], COUNT)) as out:
                    done = ask(e, V, single, out, file)
                    assert done.status == OK, done
                    pairs = out.read().view(float).reshape(DIMS[3], COUNT, 2)
                    assert (done.lowest, done.highest) == (0, 0) and not pairs[..., 0].any()
                    assert done.residual == pairs[..., 1].max() and abs(pairs[..., 1] - off).max() < (1e-9 if single else 1e-14), (pairs[..., 1], off)
                    again = ask(e, V, single, out, file)  # is there
                    assert again.status == OK and again.residual == done.residual
                check_sources(e, seen, single)
                e.send(eigen_drop=pb.EigenDrop(name='given'))
                assert ask(e, V, single, file=file).status == OK and os.path.exists(file)
                other = ask(e, V, single, digest=vectors_digest(seen) ^ 1)
                assert other.status == BAD_ARGUMENT and 'of this name are here' in other.text, other
                e.send(eigen_drop=pb.EigenDrop(name='given'))
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'set')
        for single in False, True:
            with engine(case, grid=grids(case)[-1]) as e:
                assert ask(e, V, single, file=file).status == OK
            with engine(case, grid=grids(case)[0]) as e:  # from its file, without the field
                assert ask(e, NONE, digest=vectors_digest(as_seen(V, single)), file=file, restore=True, count=COUNT, tol=1e-4 if single else 1e-12).status == OK
                check_sources(e, as_seen(V, single), single)
                done = ask(e, V, single, file=file, digest=5, restore=True, name='other')
                assert done.status == NOT_FOUND, done
            os.unlink(file)


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
        check_sources(e, V, False, (10,))
        assert e.stop() == 0


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
