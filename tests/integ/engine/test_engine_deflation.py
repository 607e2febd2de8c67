"""Solves that begin with the lowest modes: test_engine_deflation.py QUARK_ENGINE QUARK_GAUGE RANKS

Spectra and residuals are those of the numpy oracle.
"""
import os
import sys
import tempfile

import tap
try:
    import numpy as np
    import ref_dirac as ref
    from eigen_oracle import normal_values
    from engine_case import BAD_ARGUMENT, BOUNDARY, Case, OK
    from engine_driver import pb, qk, Vector
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

NOT_FOUND = 109
SMALL, NARROW, LONG = 'builtin:weak:2x2x2x4:7', 'builtin:weak:2x2x2x16:7', 'builtin:weak:4x4x4x16:3'
ACTIONS = [('wilson-clover', dict(mass=-0.25, csw=1.1), 24), ('twisted-clover', dict(mass=-0.2, mu=0.1, csw=1.1), 16),
           ('doublet', dict(mass=-0.1, mu=0.2, epsilon=0.15, csw=1.0), 16),
           ('moebius', dict(mass=0.1, M5=1.4, Ls=3, b=1.5, c=0.5, b_im=0.2), 12)]


def alone(case):
    if case.ranks > 1:
        raise tap.Skip('one rank tells as much')


def solves(case, e, op, flavour=1):
    """A source of noise, whose solution the oracle looks at."""
    b = np.random.default_rng(3).normal(size=op.shape + (2,)) @ np.array([1, 1j])
    x, end = e.solve(b, tol=1e-11, flavour=flavour)
    assert end.status == OK, end
    if hasattr(op, 'apply'):
        assert np.linalg.norm(b - op.apply(x)) <= 1.01e-11 * np.linalg.norm(b)
    else:
        want = op.solve(b, 1e-13)
        assert np.linalg.norm(x - want) <= 1e-9 * np.linalg.norm(want)


def in_double(e, n):
    """Values by EIGEN, which test_engine_eigen.py compares with dense matrices."""
    with Vector((n,)) as out:
        e.send(eigen=pb.Eigen(serial=1, shm_out=out.name, problem=qk.EigenProblem(name='low', kind=qk.EIGEN_NORMAL, count=n, tol=1e-9)))
        assert e.expect('eigen_done', skip=('eigen_progress',)).status == OK
        return out.read().real


@tap.test
def the_lowest_values_are_those_of_the_dense_matrix(case):
    alone(case)
    links = case.links_of(SMALL)
    for action, given, n in ACTIONS:
        op = ref.ACTIONS[action](links, BOUNDARY, **given)
        with case.with_action(SMALL, action, given, deflate=n) as e:
            r = e.facts.deflation
            want = normal_values(op) if getattr(op, 'n', 1000) < 500 else in_double(e, n)
            print('# %s: %d vectors, %.6g to %.6g, %.6g to %.6g wanted' % (action, r.vectors, r.lowest, r.highest, want[0], want[n - 1]))
            assert r.vectors == n and r.seconds > 0 and r.bytes >= n * 32 // 2 * 96 and not r.restored
            assert abs(r.lowest - want[0]) < 2e-5 and abs(r.highest - want[n - 1]) < 2e-5
            solves(case, e, op)
            if 'mu' in given and action != 'doublet':
                solves(case, e, ref.ACTIONS[action](links, BOUNDARY, flavour=-1, **given), -1)


@tap.test
def ranks_find_what_one_finds(case):
    given, found = dict(mass=0.1, M5=1.4, Ls=12), []
    for ranks in {1, case.ranks}:
        case.ranks, before = ranks, case.ranks
        with case.with_action(NARROW, 'moebius', given, deflate=12) as e:
            found.append((e.facts.deflation.lowest, e.facts.deflation.highest))
        case.ranks = before
    print('#', *found)
    assert np.allclose(found[0], found[-1], rtol=1e-5, atol=0)


def iterations(case, op, action, given, sources, **more):
    """Of the solves of all sources, whose solutions the oracle has looked at."""
    with case.with_action(LONG, action, given, **more) as e:
        total = 0
        for b in sources:
            x, end = e.solve(b, tol=1e-10, max_iter=20000, **({'flavour': given['flavour']} if 'flavour' in given else {}))
            assert end.status == OK and end.true_residual <= 1e-10, end
            if hasattr(op, 'apply'):
                assert np.linalg.norm(b - op.apply(x)) <= 1.01e-10 * np.linalg.norm(b)
            total += end.iterations
        return total, e.facts.deflation


@tap.test
def vectors_come_back_from_a_file(case):
    """The setup's own, and those of a name; files of something else are not read."""
    given, n = dict(mass=0.1, M5=1.4, Ls=4), 12
    with tempfile.TemporaryDirectory() as folder:
        path, name = os.path.join(folder, 'deflate'), os.path.join(folder, 'low')

        def facts(given=given, **more):
            with case.with_action(NARROW, 'moebius', given, **more) as e:
                b = np.random.default_rng(3).normal(size=(16, 2, 2, 2, 4, 3, 2)) @ np.array([1, 1j])
                x, end = e.solve(b, tol=1e-10)
                assert end.status == OK
                return e.facts.deflation, end.iterations, x

        first, plain, x = facts(deflate=n, deflate_file=path)
        again, count, y = facts(deflate=n, deflate_file=path)
        assert not first.restored and again.restored and again.seconds < first.seconds and (x == y).all()
        assert (first.lowest, first.highest, plain, first.trouble) == (again.lowest, again.highest, count, again.trouble)
        other, _, _ = facts(dict(given, mass=0.2), deflate=n, deflate_file=path)
        assert not other.restored and 'another operator' in other.trouble, other
        with case.with_action(NARROW, 'moebius', given) as e:
            e.send(eigen=pb.Eigen(serial=1, file=name, problem=qk.EigenProblem(name='low', kind=qk.EIGEN_NORMAL, count=n, tol=1e-10)))
            assert e.expect('eigen_done', skip=('eigen_progress',)).status == OK
        of_name, count, x = facts(deflate_file=name, deflate_from='low')
        assert of_name.origin == 'low' and of_name.restored and of_name.vectors == n and count <= plain, (of_name, count, plain)
        assert np.linalg.norm(x - y) < 1e-8 * np.linalg.norm(y) and abs(of_name.lowest - first.lowest) < 1e-5 * first.lowest
        for more, given2 in [(dict(deflate_file=name), dict(given, mass=0.2)), (dict(deflate_file=path + '-'), given)]:
            with case.start() as e:
                e.load(NARROW, action='moebius', parameter=[qk.Setting(key=k, value=repr(v)) for k, v in given2.items()],
                       grid=(1, 1, 1, case.ranks), boundary=BOUNDARY, solver='cg', deflate_from='low', **more)
                failed = e.expect('load_failed', skip=('load_progress',))
                assert failed.status == NOT_FOUND and folder in failed.text or 'another operator' in failed.text, failed


@tap.test
def iterations_fall_as_the_spectrum_says(case):
    """CG needs as many as the root of the condition of Mhat^+ Mhat, whose lowest modes are gone."""
    alone(case)
    links = case.links_of(LONG)
    given, n = dict(mass=-0.11), 48
    op = ref.ACTIONS['wilson'](links, BOUNDARY, **given)
    rng = np.random.default_rng(5)
    sources = [rng.normal(size=op.shape + (2,)) @ np.array([1, 1j]) for _ in range(2)]
    for inner in 'PRECISION_SINGLE', 'PRECISION_HALF', 'PRECISION_DOUBLE':
        plain, _ = iterations(case, op, 'wilson', given, sources, inner=inner)
        deflated, r = iterations(case, op, 'wilson', given, sources, inner=inner, deflate=n)
        print('# %s: %d iterations, %d with %d vectors: %.2f times less, the spectrum says %.2f' %
              (inner, plain, deflated, r.vectors, plain / deflated, (r.highest / r.lowest)**0.5))
        assert plain / deflated > 0.8 * (r.highest / r.lowest)**0.5


@tap.test
def a_name_is_told_as_it_is(case):
    with case.start() as e:
        e.load(NARROW, action='overlap', parameter=[qk.Setting(key=k, value=v) for k, v in (('mass', '0.1'), ('M', '1.3'), ('modes', '1'))],
               grid=(1, 1, 1, case.ranks), boundary=BOUNDARY, solver='cg', deflate_from='5%%', deflate_file='/nowhere/low')
        failed = e.expect('load_failed', skip=('load_progress',))
        assert failed.status == NOT_FOUND and ': 5%%: /nowhere/low' in failed.text, failed


@tap.test
def bad_numbers_are_refused_by_name(case):
    for more, says in [(dict(deflate=193), 'deflate = 193: at most 192'), (dict(deflate=5000), 'deflate = 5000'),
                       (dict(deflate=4, solver='mg'), 'multigrid has mg-deflate'),
                       (dict(deflate_from='light'), 'without deflate_file')]:
        with case.start() as e:
            e.load(NARROW, mass=0.1, csw=0, **{**dict(solver='cg', grid=(1, 1, 1, case.ranks)), **more})
            failed = e.expect('load_failed', skip=('load_progress',))
            assert failed.status == BAD_ARGUMENT and says in failed.text, failed


if __name__ == '__main__':
    CASE = Case(*sys.argv[1:])
    tap.run(CASE)
