"""Perambulators with the real engine, by Python and quarkctl: test_perambulator.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import shutil
import sys
import tempfile

from cli_case import Case, h5py, np, tap
from daemon import Daemon
import quarkd

MPI = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'OMPI_MCA_rmaps_base_oversubscribe': '1',
       'OMPI_MCA_btl_vader_single_copy_mechanism': 'none', 'OMPI_MCA_mpi_yield_when_idle': '1'}
G5 = np.array([1, 1, -1, -1])
N, TOL = 3, 1e-12


def daemon(case, dims, *more):
    return Daemon(case.quarkd, case.quarkctl, '--gauge=builtin:weak:%s:7' % dims, '--kappa=0.12', '--csw=1.3', '--solver=bicgstab', *more)


def colour_vectors(q, name, n=N):
    """V[n, t, z, y, x, colour], as the daemon gives them."""
    return q.eigenvectors(name, range(n), t=-1)[..., 0, :]


def plain(q, v, t0, **terms):
    """tau[spin0, n0, t, spin, n] by solutions that are fetched, and V."""
    b = np.zeros((4, len(v)) + q.shape, complex)
    for s in range(4):
        b[s, :, t0, ..., s, :] = v[:, t0]
    x = q.solve(b.reshape((-1,) + q.shape), tol=TOL, **terms)
    return np.einsum('ntzyxc,btzyxsc->btsn', v.conj(), x).reshape(4, len(v), q.shape[0], 4, len(v))


def by_g5(tau):
    """gamma5 tau^+ gamma5 of [spin0, n0, spin, n]: what the perambulator from slice t to t0 is, as [spin, n, spin0, n0]."""
    return np.einsum('a,anbm,b->bman', G5, tau.conj(), G5)


def check(q, name, times, n=N, **terms):
    """Against plain solves, and the adjoint; all numbers of a perambulator are of the size of 1."""
    v = colour_vectors(q, name, n)
    tau = q.perambulator(name, times, count=n, tol=TOL, **terms)
    assert tau.shape == (len(times), 4, n, q.shape[0], 4, n)
    for i, t0 in enumerate(times):
        off = abs(tau[i] - plain(q, v, t0, **terms)).max()
        assert off < 1e-10, (name, t0, off)
    a, b = times
    off = abs(tau[1, :, :, a] - by_g5(tau[0, :, :, b])).max()
    assert abs(tau[0, :, :, b]).max() > 1e-4 and off < 1e-10, off
    return tau


@tap.test
def perambulators_are_those_of_plain_solves(case):
    with daemon(case, '4x4x6x8') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.eigen('lap', N + 2, 'laplacian', tol=1e-6, links=quarkd.stout(0.1, 3))
            q.eigen('fine', N, 'laplacian', tol=1e-11)
            check(q, 'fine', [0, 5])  # vectors in double: both of their parts
            tau = check(q, 'lap', [1, 4])
            single = q.perambulator('lap', 1, count=N, tol=TOL, dtype='complex64')
            assert single.dtype == np.complex64 and abs(single[0] - tau[0]).max() < 1e-6
            kappa = q.perambulator('lap', 1, count=N, tol=TOL, normalisation='kappa')
            assert abs(kappa[0] * 2 * 0.12 - tau[0]).max() < 1e-10
            # sources and sinks in another basis, where gamma5 is another matrix
            v = colour_vectors(q, 'lap')
            other = q.perambulator('lap', 1, count=N, tol=TOL, basis='dirac-pauli')
            assert abs(other[0] - plain(q, v, 1, basis='dirac-pauli')).max() < 1e-10 and abs(other[0] - tau[0]).max() > 1e-3
            # V^+ V = 1, of columns as they are
            one = q.project(quarkd.vector('lap', range(N), t=2, spin=3), 'lap', N, 'smear')
            want = np.zeros_like(one)
            want[:, 2, 3] = np.eye(N)
            assert abs(one - want).max() < 1e-6
            # any source: what is uploaded is kept, and projected without a solve
            p = q.propagator('point:1,2,3,4', tol=TOL)
            got = q.project('point:1,2,3,4', 'lap', N, tol=TOL)
            kept = q.project(quarkd.sequential(p, 'id'), 'lap', N, 'smear')
            x = np.stack([p[i].numpy() for i in range(12)])
            want = np.einsum('ntzyxc,btzyxsc->btsn', v.conj(), x)
            assert abs(got - want).max() < 1e-10 and abs(kept - want).max() < 1e-12
            adjoint = q.project('point:1,2,3,4', 'lap', N, tol=TOL, dagger=True)
            y = q.solve(np.stack([point_source(q, i) for i in range(12)]), tol=TOL, dagger=True)
            assert abs(adjoint - np.einsum('ntzyxc,btzyxsc->btsn', v.conj(), y)).max() < 1e-10


def point_source(q, column):
    b = np.zeros(q.shape, complex)
    b[4, 3, 2, 1, column // 3, column % 3] = 1
    return b


@tap.test
def a_larger_lattice(case):
    with daemon(case, '8x8x8x16') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.eigen('lap', 1, 'laplacian', tol=1e-6)
            check(q, 'lap', [2, 9], 1)


@tap.test
def ranks_add_their_parts(case):
    if not shutil.which('mpirun'):
        return
    os.environ.update(MPI)
    with daemon(case, '4x4x4x8', '--ranks=2', '--grid=1x1x1x2') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.eigen('lap', 1, 'laplacian', tol=1e-6)
            check(q, 'lap', [2, 5], 1)


@tap.test
def domain_wall_gives_the_quark_of_four_dimensions(case):
    with Daemon(case.quarkd, case.quarkctl, '--gauge=builtin:weak:4x4x4x4:7', '--action=moebius', '--set=mass=0.1', '--set=M5=1.4', '--set=Ls=4',
                '--set=b=1.5', '--set=c=0.5', '--solver=cg') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.eigen('lap', 1, 'laplacian', tol=1e-6)
            check(q, 'lap', [0, 3], 1)


@tap.test
def quarkctl_writes_what_python_gives(case):
    with daemon(case, '4x4x4x8') as d, tempfile.TemporaryDirectory() as folder:
        d.wait_listening()
        out = os.path.join(folder, 'p.h5')
        assert d.ctl('eigen', 'lap', '--kind=laplacian', '--count=%d' % N, '--tol=1e-6').code == 0
        done = d.ctl('perambulator', '--vectors=lap', '--t-sources=3,0', '--tol=1e-12', '--out=' + out)
        assert done.code == 0, done
        with quarkd.connect(d.endpoint) as q, h5py.File(out) as f:
            tau = f['perambulator'][:]
            assert abs(tau - q.perambulator('lap', [3, 0], tol=TOL)).max() < 1e-10 and f['true_residual'][:].max() < 1e-12
            plain_bytes, bytes_ = 4 * N * 2 * np.prod(q.shape) * 16, tau.nbytes
            assert plain_bytes / bytes_ == 4 * 4 * 4 * 12 / (4 * N)  # of each solve 64 T N bytes, not 192 V


tap.run(Case(*sys.argv[1:]))
