"""Sources of which quark-engine reads some time slices: test_engine_slabs.py QUARK_ENGINE QUARK_GAUGE RANKS

What is beside the slab in shared memory is NaN here, so that a source that was read there shows it.
"""
import sys

import tap
try:
    import numpy as np
    from engine_case import BAD_ARGUMENT, Case, OK
    from engine_driver import smearing, Vector, qk
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

SLABS = [(2, 3), (0, 1), (7, 1), (3, 0), (0, 8), (8, 0)]  # of 8 time slices


def cut(b, slab, beside):
    first, count = slab
    out = np.full_like(b, beside)
    out[first:first + count] = b[first:first + count]
    return out


def sent_back(e, vectors, **how):
    """The sources of FILLs that were given together, as the engine sees them."""
    out = [Vector(v.shape, how.get('dtype', qk.DTYPE_F64)) for v, _ in vectors]
    try:
        serials = [e.fill(k, shm_in=v.name, shm_out=x.name, work=qk.WORK_SMEAR, **slab, **how)
                   for k, ((v, slab), x) in enumerate(zip(vectors, out))]
        ends = e.done(len(vectors))
        assert all(ends[t].status == OK for t in serials), ends
        return [x.read() for x in out]
    finally:
        for x in out:
            x.__exit__()


def named(slab):
    return dict(slab_first=slab[0], slab_count=slab[1])


@tap.test
def no_more_than_the_slab_is_read(case):
    """Behind sources of all slices, whose bytes are left in the buffers; with and without staging buffers, in both precisions."""
    b = case.random(1)
    for staging, dtype in [(8, qk.DTYPE_F64), (8, qk.DTYPE_F32), (0, qk.DTYPE_F64)]:
        with case.loaded(slots=2, staging=staging) as e, Vector(case.shape, dtype, case.random(2)) as other:
            for slab in SLABS:
                with Vector(case.shape, dtype, cut(b, slab, np.nan)) as v, Vector(case.shape, dtype, cut(b, slab, 0)) as want:
                    got = sent_back(e, [(other, {}), (v, named(slab))], dtype=dtype)
                    assert np.array_equal(got[0], other.read()) and np.array_equal(got[1], want.read()), (staging, dtype, slab)


@tap.test
def slabs_of_one_parity(case):
    t, z, y, x = case.shape[:4]
    half = (t, z, y, x // 2) + case.shape[4:]
    b = case.random(3)[:, :, :, :x // 2]
    for staging in (8, 0):
        with case.loaded(slots=2, staging=staging) as e, Vector(half, data=b) as other:
            for slab in SLABS:
                with Vector(half, data=cut(b, slab, np.nan)) as v:
                    got = sent_back(e, [(other, {}), (v, named(slab))], parity=qk.PARITY_ODD)
                    assert np.array_equal(got[1], cut(b, slab, 0)), (staging, slab)


@tap.test
def solutions_are_those_of_the_whole_source(case):
    """To the last bit; of a smeared source, too."""
    b, slab = case.random(4), (6, 2)
    with case.loaded(slots=1) as e, Vector(case.shape, data=cut(b, slab, np.nan)) as v, Vector(case.shape) as x:
        for more in ({}, dict(smear=smearing('gauss:0.25,5'))):
            want, end = e.solve(cut(b, slab, 0), tol=1e-9, **more)
            t = e.fill(0, shm_in=v.name, shm_out=x.name, tol=1e-9, **named(slab), **more)
            assert e.done()[t].status == end.status == OK
            assert np.array_equal(x.read(), want)


@tap.test
def slabs_beyond_the_lattice_are_refused(case):
    huge = 2 ** 32 - 1
    with case.loaded(slots=1) as e, Vector(case.shape, data=case.random(5)) as v, Vector(case.shape) as x:
        upload = dict(shm_in=v.name, shm_out=x.name, tol=1e-6)
        bad = [(dict(upload, **named((9, 0))), '9'), (dict(upload, **named((0, 9))), 'slab of 9'), (dict(upload, **named((7, 2))), 'slab of 2'),
               (dict(upload, **named((huge, huge))), str(huge)), (dict(upload, slab_first=1), 'slab_count'),
               (dict(upload, slab_count=1), 'slab_first'),
               (dict(source=qk.SOURCE_SEQUENTIAL, column=qk.Column(), shm_in=v.name, **named((0, 1))), 'slab_first')]
        for fill, words in bad:
            t = e.fill(0, **fill)
            end = e.done()[t]
            assert end.status == BAD_ARGUMENT and words in end.text and not end.written, (fill, end)
        t = e.fill(0, **upload)
        assert e.done()[t].status == OK


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:4]))
