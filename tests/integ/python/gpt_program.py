"""What a GPT program does, on several ranks: gpt_program.py ENDPOINT FOLDER. The folder has b.npy, links.npy of the whole lattice; its operators
are judged by the oracle on rank 0."""
import os
import sys

import gpt as g
import numpy as np
import quarkd
import quarkd.gpt
import ref_dirac as ref
from mpi4py import MPI

comm = MPI.COMM_WORLD
MASS, CSW, PHASES = 0.1, 1.2, (1, 1, 1, -1)


def main(endpoint, folder):
    b, links = (np.load(os.path.join(folder, name + '.npy')) for name in ('b', 'links'))
    dims, mpi = list(b.shape[4:0:-1]), (1, 2, 1, comm.Get_size() // 2)
    where = g.grid(dims, g.double, mpi=mpi, rank=comm.Get_rank())
    part = tuple(slice(c * n, (c + 1) * n) for c, n in zip(reversed(where.processor_coor), reversed(where.ldimensions)))

    def brick(kind, array):
        out = g.lattice(where, kind)
        out[:] = np.ascontiguousarray(array[part]).reshape((-1,) + kind.shape)
        return out
    U = [brick(g.ot_matrix_su_n, links[..., mu, :, :]) for mu in range(4)]
    w = g.qcd.fermion.wilson_clover(U, mass=MASS, csw_r=CSW, csw_t=CSW, xi_0=1.0, nu=1.0, isAnisotropic=False, boundary_phases=list(PHASES))
    with quarkd.gpt.connect(where, endpoint) as q:
        found = w.propagator(quarkd.gpt.solver(q, tol=1e-11))([brick(g.ot_vector_spin_color, x) for x in b])
        for i, x in enumerate(found):
            whole = np.empty_like(b[i])
            for at, mine in comm.allgather((part, x[:].reshape(whole[part].shape))):
                whole[at] = mine
            op = ref.WilsonClover(np.moveaxis(links, 4, 0), MASS, CSW, PHASES)
            assert np.linalg.norm(op.apply(whole) - b[i]) < 1.1e-11 * np.linalg.norm(b[i])
        try:
            quarkd.gpt.solver(q)(g.qcd.fermion.wilson_clover([brick(g.ot_matrix_su_n, links[..., 0, :, :])] * 3, mass=MASS, boundary_phases=list(PHASES)))
            raise AssertionError('three directions were taken')
        except ValueError as e:
            assert 'must be 4' in str(e), e
        other = g.grid(dims, g.double, mpi=tuple(reversed(mpi)), rank=comm.Get_rank())
        try:
            quarkd.gpt.Fields(q, other)
            raise AssertionError('other ranks were taken')
        except ValueError as e:
            assert 'quarkd.gpt.connect' in str(e), e
    if comm.Get_rank() == 0:
        print('all is well with GPT')


if __name__ == '__main__':
    main(*sys.argv[1:])
