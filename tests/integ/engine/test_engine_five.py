"""Sources and solutions of five dimensions: test_engine_five.py QUARK_ENGINE QUARK_GAUGE RANKS

Residuals are those of the numpy oracle of domain wall fermions.
"""
import sys

import tap
try:
    import numpy as np
    import ref_dirac as ref
    from engine_case import BAD_ARGUMENT, BASES, BOUNDARY, Case, OK
    from engine_driver import pb, qk, Vector
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

GAUGE, NAN_INPUT, UNSUPPORTED = 'builtin:weak:2x2x2x8:7', 202, 108
NUMBERS = dict(mass=0.1, M5=1.4, Ls=3, b=1.5, c=0.5)
SETS = [NUMBERS, dict(mass=0.1, M5=1.4, Ls=4), dict(NUMBERS, b_im=0.2, c_im=-0.1)]  # Moebius, Shamir, zMoebius


def noise(shape, seed=3):
    return np.random.default_rng(seed).normal(size=shape + (2,)) @ np.array([1, 1j])


def misses(op, x, b):
    return np.linalg.norm(b - op.apply5(x)) / np.linalg.norm(b)


@tap.test
def solutions_are_those_of_the_system_of_five_dimensions(case):
    links = case.links_of(GAUGE)
    for given in SETS:
        op = ref.DomainWall(links, BOUNDARY, **given)
        shape = (op.ls,) + op.shape
        with case.with_action(GAUGE, 'moebius', given) as e:
            b = noise(shape)
            x, end = e.solve(b, tol=1e-11, five_d=True)
            assert end.status == OK and end.true_residual <= 1e-11 and misses(op, x, b) <= 1.01e-11, end
            assert abs(end.norm_x / np.linalg.norm(x) - 1) < 1e-12 and abs(end.norm_b / np.linalg.norm(b) - 1) < 1e-12
            assert not end.HasField('wall') or not end.wall.quark, end
            point = dict(source=qk.SOURCE_POINT, column=dict(x=1, t=3, spin=2, colour=1))
            x, end = e.generate(shape, tol=1e-11, five_d=True, **point)
            q, _ = e.generate(op.shape, tol=1e-11, **point)
            eta = np.zeros(op.shape, complex)
            eta[3, 0, 0, 1, 2, 1] = 1
            assert misses(op, x, op.enter(eta)) <= 1.01e-11
            assert np.linalg.norm(op.leave(x) - q) <= 1e-12 * np.linalg.norm(q)


@tap.test
def they_stand_in_one_block_with_others(case):
    op = ref.DomainWall(case.links_of(GAUGE), BOUNDARY, **NUMBERS)
    shape = (op.ls,) + op.shape
    with case.with_action(GAUGE, 'moebius', NUMBERS, slots=3) as e:
        b4, b5 = noise(op.shape), noise(shape, 4)
        alone, _ = e.solve(b4, tol=1e-10, single_rhs=False)
        with Vector(op.shape, data=b4) as s4, Vector(op.shape) as x4, Vector(shape, data=b5) as s5, Vector(shape) as x5, Vector(shape) as y5:
            first = [e.fill(0, shm_in=s4.name, shm_out=x4.name, tol=1e-10, single_rhs=False, backlog=2),
                     e.fill(1, shm_in=s5.name, shm_out=x5.name, tol=1e-10, single_rhs=False, backlog=1, five_d=True),
                     e.fill(2, shm_in=s4.name, shm_out=y5.name, tol=1e-10, source=qk.SOURCE_SEQUENTIAL, single_rhs=False, five_d=True,
                            column=qk.Column(t=-1, gamma=0))]
            ends = e.done(3)
            assert all(ends[s].status == OK for s in first), ends
            assert np.array_equal(x4.read(), alone) and misses(op, x5.read(), b5) <= 1.01e-10
            assert misses(op, y5.read(), op.enter(b4)) <= 1.01e-10
        for _ in range(2):  # more than there are slots, some of which are cancelled
            with Vector(shape, data=b5) as s5:
                serials = [e.fill(k, shm_in=s5.name, tol=1e-14, max_iter=10**6, five_d=True) for k in range(3)]
                for k, serial in enumerate(serials):
                    e.send(cancel=pb.CancelFill(entry=k, serial=serial))
                e.done(3)
        x, end = e.solve(b5, tol=1e-10, five_d=True)
        assert end.status == OK and misses(op, x, b5) <= 1.01e-10


@tap.test
def types_bases_and_factors_are_those_of_others(case):
    op = ref.DomainWall(case.links_of(GAUGE), BOUNDARY, **NUMBERS)
    b = noise((op.ls,) + op.shape)
    for more in dict(inner='PRECISION_SINGLE'), dict(inner='PRECISION_DOUBLE'):
        with case.with_action(GAUGE, 'moebius', NUMBERS, **more) as e:
            x, _ = e.solve(b, tol=1e-10, five_d=True)
            y, end = e.solve(b.astype(np.complex64), dtype=qk.DTYPE_F32, tol=1e-6, five_d=True)
            assert end.status == OK and np.linalg.norm(y - x) < 1e-4 * np.linalg.norm(x)
            u = BASES[qk.BASIS_UKQCD]
            z, _ = e.solve(np.einsum('ij,...jc->...ic', u, b), basis=qk.BASIS_UKQCD, factor=2, tol=1e-10, five_d=True)
            assert np.linalg.norm(z - 2 * np.einsum('ij,...jc->...ic', u, x)) < 1e-8 * np.linalg.norm(x)


@tap.test
def what_is_wrong_is_said_and_nothing_else_notices(case):
    op = ref.DomainWall(case.links_of(GAUGE), BOUNDARY, **NUMBERS)
    shape = (op.ls,) + op.shape
    with case.with_action(GAUGE, 'moebius', NUMBERS) as e:
        b = noise(shape)
        x, end = e.solve(np.zeros(shape, complex), five_d=True)
        assert end.status == OK and not x.any(), end
        bad = b.copy()
        bad[2, 1, 0, 1, 1, 3, 2] = np.nan
        _, end = e.solve(bad, five_d=True)
        assert end.status == NAN_INPUT, end
        for scale in 1e136, 1e-136:
            x, end = e.solve(scale * b, tol=1e-10, five_d=True)
            assert end.status == OK and misses(op, x / scale, b) < 1.01e-10, end
        for scale in 1e200, 1e-200, 1e306, 1e-306:
            _, end = e.solve(scale * b, tol=1e-10, five_d=True)
            assert end.status == BAD_ARGUMENT and 'must be within 1e-140 .. 1e+140' in end.text, end
        _, end = e.solve(1e60 * b, dtype=qk.DTYPE_F32, tol=1e-6, five_d=True)
        assert end.status == NAN_INPUT, end
        _, end = e.solve(1e-30 * b, dtype=qk.DTYPE_F32, factor=1e-15, tol=1e-6, five_d=True)
        assert end.status == BAD_ARGUMENT and 'which f32 may not hold' in end.text, end
        for wrong in noise(op.shape), noise((op.ls + 1,) + op.shape):
            _, end = e.solve(wrong, five_d=True)
            assert end.status == BAD_ARGUMENT and 'bytes' in end.text, end
        for more in dict(work=qk.WORK_SMEAR), dict(parity=qk.PARITY_EVEN), dict(smear=qk.Smearing(alpha=1, steps=2)):
            _, end = e.solve(b, five_d=True, **more)
            assert end.status == BAD_ARGUMENT and 'five_d' in end.text, end
        x, end = e.solve(b, tol=1e-10, five_d=True)
        assert end.status == OK and misses(op, x, b) <= 1.01e-10
    with case.with_action(GAUGE, 'wilson', dict(mass=0.1)) as e:
        _, end = e.solve(noise(op.shape), five_d=True)
        assert end.status == UNSUPPORTED and 'no fifth dimension' in end.text, end


if __name__ == '__main__':
    CASE = Case(*sys.argv[1:])
    tap.run(CASE)
