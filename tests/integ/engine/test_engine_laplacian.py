"""Eigenvectors of the Laplacian of time slices: test_engine_laplacian.py QUARK_ENGINE QUARK_GAUGE RANKS

Values and vectors are compared with the dense matrices of numpy.
"""
import os
import sys
import tempfile

import tap
try:
    import numpy as np
    import ref_dirac as ref
    import smear_ref
    from engine_case import BAD_ARGUMENT, Case, eigen_ask, eigen_ends, OK
    from engine_driver import qk, TIMEOUT, Vector
    from open_gauge import write_openqcd
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

GAUGE, ODD = 'builtin:weak:4x8x4x8:7', 'builtin:weak:6x2x6x8:3'
STOUT = qk.Smearing(alpha=0, steps=0, links=qk.LINK_SMEAR_STOUT, link_param=[0.1], link_steps=3, link_spatial=True)
GIVEN = dict(mass=-0.2, csw=1.1)


def grids(case):
    """Slices of one rank, and slices that are cut."""
    n = case.ranks
    return [(1, 1, 1, n)] + [(1, n, 1, 1)] * (n > 1) + [(1, 2, 1, n // 2)] * (n > 2)


def dense(links, t):
    """Minus the Laplacian on slice t, rows and columns (z, y, x, colour)."""
    u = links[:, t]  # [mu][z][y][x][row][column]
    space = u.shape[1:4]
    v = int(np.prod(space))
    at = np.arange(v).reshape(space)
    a = np.zeros((v, 3, v, 3), complex)
    for c in range(3):
        a[np.arange(v), c, np.arange(v), c] = 6
    for j in range(3):
        ahead = np.roll(at, -1, 2 - j).ravel()
        w = u[j].reshape(v, 3, 3)
        for x in range(v):
            a[x, :, ahead[x]] -= w[x]
            a[ahead[x], :, x] -= w[x].conj().T
    return a.reshape(3 * v, 3 * v)


def ask(e, count, out=None, **more):
    return eigen_ask(e, out, **{**dict(name='lap', kind=qk.EIGEN_LAPLACIAN, count=count, tol=1e-11), **more})


def eigen(e, slices, count, **more):
    """(values, residuals) as [t][n], and EigenDone."""
    with Vector((slices, count)) as out:
        done = eigen_ends(e, ask(e, count, out, **more))
        assert done.status == OK, done
        pairs = out.read().view(float).reshape(slices, count, 2)
        assert (pairs[..., 0].min(), pairs[..., 0].max(), pairs[..., 1].max()) == (done.lowest, done.highest, done.residual)
        return pairs[..., 0], pairs[..., 1], done


def vector(e, shape, n, t=-1, spin=0, **more):
    with Vector(shape) as sink:
        serial = e.fill(0, source=qk.SOURCE_VECTOR, vectors='lap', column=qk.Column(vector=n, t=t, spin=spin), shm_out=sink.name,
                        work=qk.WORK_SMEAR, **more)
        done = e.done()[serial]
        assert done.status == OK, done
        return sink.read()


def check_vectors(e, links, shape, values, n, tol, spin):
    """Vector n of each slice, its phase and its norm."""
    v = vector(e, shape, n, spin=spin)
    assert not np.delete(v, spin, axis=4).any()
    for t in range(shape[0]):
        one = v[t, :, :, :, spin].ravel()
        a = dense(links, t)
        off, norm = np.linalg.norm(a @ one - values[t, n] * one), np.linalg.norm(one)
        assert off < 12 * tol and abs(norm - 1) < max(tol, 1e-12), (off, norm - 1)
        first = one[np.argmax(np.abs(one) >= 1 / np.sqrt(one.size))]
        assert abs(first.imag) < 1e-6 and first.real > 0, first
    return v


@tap.test
def lowest_vectors_of_each_slice_are_those_of_the_dense_matrix(case):
    cases = [(GAUGE, 12, 1e-11, None), (GAUGE, 9, 1e-5, STOUT), (ODD, 8, 1e-10, None)]
    for gauge, n, tol, smear in cases if case.ranks == 1 else cases[:1]:
        links = case.links_of(gauge)
        shape = links.shape[1:5] + (4, 3)
        if smear:
            links = smear_ref.smear_links(links, 'stout:0.1,3')
        want = np.array([np.linalg.eigvalsh(dense(links, t))[:n] for t in range(shape[0])])
        for grid in grids(case):
            with case.with_action(gauge, 'wilson-clover', GIVEN, grid=grid) as e:
                values, residuals, done = eigen(e, shape[0], n, tol=tol, links=smear)
                assert np.abs(values - want).max() < 12 * max(tol / 3, 1e-12) and residuals.max() <= 12 * tol, np.abs(values - want).max()
                assert done.restarts >= shape[0] and done.applications > 0 and done.host_bytes > 0
                v = check_vectors(e, links, shape, values, n - 1, tol, 2)
                one = vector(e, shape, n - 1, t=3, spin=1)
                assert (one[3, :, :, :, 1] == v[3, :, :, :, 2]).all() and np.count_nonzero(one) == np.count_nonzero(one[3, :, :, :, 1])
                basis = qk.BASIS_UKQCD
                assert np.abs(vector(e, shape, n - 1, spin=2, basis=basis) - v).max() < 1e-14  # a spin of the basis that was asked for


@tap.test
def a_gauge_transformation_changes_no_value(case):
    """And rotates the vectors, but for their phases."""
    if case.ranks > 1:
        raise tap.Skip('one rank tells as much')
    links = case.links_of(GAUGE)
    g = np.linalg.qr(np.random.default_rng(5).normal(size=links.shape[1:] + (2,)) @ np.array([1, 1j]))[0]
    g /= np.linalg.det(g)[..., None, None] ** (1 / 3)
    turned = np.array([g @ links[mu] @ np.roll(g, -1, 3 - mu).conj().swapaxes(-1, -2) for mu in range(4)])
    shape = links.shape[1:5] + (4, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'turned')
        write_openqcd(path, turned)
        found = []
        for gauge in (GAUGE, path):
            with case.with_action(gauge, 'wilson-clover', GIVEN) as e:
                values, _, _ = eigen(e, shape[0], 10, links=STOUT)
                found.append((values, vector(e, shape, 4)[..., 0, :]))
        (a, v), (b, w) = found
        assert np.abs(a - b).max() < 1e-10, np.abs(a - b).max()
        for t in range(shape[0]):
            rotated = np.einsum('zyxab,zyxb->zyxa', g[t], v[t])
            assert abs(abs(np.vdot(rotated, w[t])) - 1) < 1e-8, t


@tap.test
def a_killed_computation_goes_on_from_its_last_slice(case):
    problem, slices = dict(count=16, tol=1e-11, order=10), 8
    shape = (8, 4, 8, 4, 4, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'lap')
        with case.with_action(GAUGE, 'wilson-clover', GIVEN) as e:
            want, _, whole = eigen(e, slices, **problem)
            v = vector(e, shape, 5)
        reached = -1
        for point in range(5 if case.ranks == 1 else 1):
            e = case.with_action(GAUGE, 'wilson-clover', GIVEN)
            ask(e, file=path, **problem)
            while True:
                name, body = e.receive()
                assert name == 'eigen_progress', body
                if os.path.exists(path) and body.converged > reached and body.converged >= 16:
                    break
            reached = body.converged
            for pid in e.ranks():
                os.kill(pid, 9)
            e.process.wait(TIMEOUT)
            e.__exit__()
        with case.with_action(GAUGE, 'wilson-clover', GIVEN) as e:
            values, _, done = eigen(e, slices, file=path, **problem)
            assert done.restarts == whole.restarts and done.applications < whole.applications, (done, whole)
            assert np.abs(values - want).max() < 1e-10 and (vector(e, shape, 5) == v).all()
        for grid in grids(case):  # on any grid
            with case.with_action(GAUGE, 'wilson-clover', GIVEN, grid=grid) as e:
                again, _, _ = eigen(e, slices, file=path, restore=True, **problem)
                assert (again == values).all() and (vector(e, shape, 5) == v).all()


@tap.test
def what_cannot_be_is_refused_by_name(case):
    with case.with_action(GAUGE, 'wilson-clover', GIVEN) as e:
        for more, says in [(dict(count=97), 'must be 1 to 96'), (dict(count=8, space=16), 'Krylov space = 16'), (dict(count=8, tol=1e-15), 'tolerance'),
                           (dict(count=8, restarts=1, order=2), 'time slice 0')]:
            done = eigen_ends(e, ask(e, **more))
            assert done.status in (BAD_ARGUMENT, 200) and says in done.text, (more, done)
        eigen(e, 8, 8, tol=1e-6)
        for more, says in [(dict(column=qk.Column(vector=8)), 'vector = 8'), (dict(column=qk.Column(t=8)), 't'), (dict(column=qk.Column(spin=4)), 'spin'),
                           (dict(column=qk.Column(slice=1)), 'slice = 1')]:
            with Vector((8, 4, 8, 4, 4, 3)) as sink:
                serial = e.fill(0, source=qk.SOURCE_VECTOR, vectors='lap', shm_out=sink.name, work=qk.WORK_SMEAR, **more)
                end = e.done()[serial]
                assert end.status == BAD_ARGUMENT and says in end.text, (more, end)
        assert e.stop() == 0


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
