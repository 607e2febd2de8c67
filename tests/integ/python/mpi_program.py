"""What test_python_mpi.py runs on several ranks: mpi_program.py ENDPOINT FOLDER. The folder has b.npy, links.npy, other.npy of the whole lattice."""
import os
import sys

import numpy as np
from mpi4py import MPI

import quarkd

comm = MPI.COMM_WORLD


def raises(kind, call, *words):
    """On every rank."""
    try:
        call()
    except kind as e:
        assert all(word in str(e) for word in words), e
        return
    raise AssertionError('rank %d: nothing was raised' % comm.Get_rank())


def near(x, y, limit):
    return np.linalg.norm(x - y) <= limit * np.linalg.norm(y)


def loaded_again(q, u):
    """A setup that was dropped and loaded again behind the back of q, with another action, has the shapes of the new one."""
    def load(**terms):
        if comm.Get_rank() == 0:
            q.connection.setup('again', gauge=u._whole, **terms)
        comm.Barrier()
    load(kappa=0.12, csw=1.3)
    assert q.shape_of('again') == q.shape
    if comm.Get_rank() == 0:
        q.connection.drop('again')
    load(action='staggered', mass=0.1, solver='cg')
    assert q.shape_of('again') == q.shape[:-2] + (3,), q.shape_of('again')
    q.drop('again')


def calls(endpoint, gather, b, links, other, whole):
    with quarkd.connect(endpoint, comm=comm, gather=gather) as q:
        part = q.slices
        mine = (slice(None),) + part
        assert (q.connection is None) == (gather and comm.Get_rank() > 0)
        prop = q.propagator('point:1,2,3,5', tol=1e-11)
        assert near(prop.numpy(), whole['p'][part], 1e-8) and near(prop.sequential('g5', 3).numpy(), whole['s'][part], 1e-7)
        assert near(prop.correlator(['pion', 'nucleon'])['nucleon'].values, whole['c'], 1e-8)
        prop.release()
        known, u = q.upload_gauge(links[part]), q.upload_gauge(other[part], (1, 1, 1, -1))
        again = q.upload_gauge(other[part])
        assert not known.sent and u.sent and not again.sent and u.digest == again.digest == quarkd.gauge.digest(other), (known, u, again)
        light = q.setup(gauge=u, kappa=0.12, csw=1.3)
        x = q.solve(b[0][part], setup=light)
        assert near(q.apply(x, setup=light), b[0][part], 1.1e-10) and not near(x, whole['x'][0][part], 1e-3)
        # A mistake of one rank is told on all, which go on.
        raises((ValueError, quarkd.RequestError), lambda: q.solve(b[0][part][: 1 if comm.Get_rank() == 1 else None]), 'shape')
        raises(ValueError, lambda: q.solve(b[mine] if comm.Get_rank() else b[:1][mine]), 'other numbers')
        bad = b[0][part].copy()
        bad[-1, -1, -1, -1, 0, 0] = np.nan if comm.Get_rank() == comm.Get_size() - 1 else 1
        raises(quarkd.SolveError, lambda: q.solve(bad), 'NAN_INPUT')
        raises(quarkd.ConvergenceError, lambda: q.solve(b[0][part], max_iter=2))
        broken = other[part].copy()
        broken[0, 0, 0, 0, 0] *= 1 + 0.1 * comm.Get_rank()
        raises(quarkd.RequestError, lambda: q.upload_gauge(broken), 'NOT_UNITARY')
        raises(ValueError, lambda: quarkd.connect(endpoint, comm=comm, grid=(3, 1, 1, 1)), 'product')
        own = q.empty()
        own[...] = b[0][part]
        assert near(q.solve(own), whole['x'][0][part], 1e-8)
        loaded_again(q, u)
        q.drop(light)
        u.release()


def main(endpoint, folder):
    b, links, other = (np.load(os.path.join(folder, name + '.npy')) for name in ('b', 'links', 'other'))
    whole = {}
    if comm.Get_rank() == 0:
        with quarkd.connect(endpoint) as q:
            prop = q.propagator('point:1,2,3,5', tol=1e-11)
            whole = {'x': q.solve(b, tol=1e-11), 'm': q.apply(b), 'p': prop.numpy(), 'c': prop.correlator(['pion', 'nucleon'])['nucleon'].values,
                     's': prop.sequential('g5', 3).numpy()}
    whole = comm.bcast(whole, 0)
    for grid, gather in (None, True), ((1, 1, 1, comm.Get_size()), False), ((2, comm.Get_size() // 2, 1, 1), False):
        with quarkd.connect(endpoint, comm=comm, grid=grid, gather=gather) as q:
            part = q.slices
            mine = (slice(None),) + part
            assert q.shape == b[0][part].shape, (q.shape, q.grid)
            assert near(q.solve(b[mine], tol=1e-11), whole['x'][mine], 1e-9) and near(q.solve(b[0][part], tol=1e-11), whole['x'][0][part], 1e-9)
            assert np.array_equal(q.apply(b[mine], 'M'), whole['m'][mine])
            single = q.solve(b[0][part].astype('complex64'), tol=1e-5)
            assert single.dtype == np.complex64 and near(single, whole['x'][0][part], 1e-3)
    for gather in False, True:
        calls(endpoint, gather, b, links, other if gather else other.conj(), whole)
    if comm.Get_rank() == 0:
        print('all is well on %d ranks' % comm.Get_size())


main(*sys.argv[1:])
