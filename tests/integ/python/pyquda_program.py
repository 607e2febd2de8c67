"""PyQUDA's order of calls on one rank or several: pyquda_program.py ENDPOINT FOLDER. The folder has links.npy, b.npy of the whole lattice."""
import os
import sys

import numpy as np
import ref_dirac as ref
from mpi4py import MPI
from pyquda_comm.field import LatticeFermion, LatticeGauge, LatticeInfo, MultiLatticeFermion

from quarkd import pyquda

MASS, CSW, XI = 0.1, 1.2, 2.0


def packed(field):
    """By the definition: [parity][t][z][y][x/2] of [t][z][y][x]."""
    out = np.empty((2,) + field.shape[:3] + (field.shape[3] // 2,) + field.shape[4:], field.dtype)
    for t, z, y, x in np.ndindex(field.shape[:4]):
        out[(t + z + y + x) % 2, t, z, y, x // 2] = field[t, z, y, x]
    return out


def together(data, part, shape):
    """The field of all ranks."""
    mine = np.empty(data.shape[1:4] + (2 * data.shape[4],) + data.shape[5:], data.dtype)
    for t, z, y, x in np.ndindex(mine.shape[:4]):
        mine[t, z, y, x] = data[(t + z + y + x) % 2, t, z, y, x // 2]
    out = np.empty(shape, data.dtype)
    for where, brick in MPI.COMM_WORLD.allgather((part, mine)):
        out[where] = brick
    return out


def near(x, y, limit):
    return np.linalg.norm(x - y) <= limit * np.linalg.norm(y)


def main(endpoint, folder, ranks):
    links, b = (np.load(os.path.join(folder, name + '.npy')) for name in ('links', 'b'))
    grid, rank = (1, 1, 1, 1), 0
    if ranks > 1:
        grid, rank = (1, 2, 1, ranks // 2), MPI.COMM_WORLD.Get_rank()
    info = LatticeInfo(b.shape[4:0:-1], -1, 1.0, grid, rank)
    part = tuple(slice(c * n, (c + 1) * n) for c, n in zip(info.grid_coord[::-1], info.size[::-1]))
    gauge = LatticeGauge(info, np.stack([packed(links[part][..., mu, :, :]) for mu in range(4)]))
    whole = np.moveaxis(links, 4, 0)
    for xi, csw_t, csw_r, op in ((1.0, CSW, CSW, ref.WilsonClover(whole, MASS, CSW)),
                                 (XI, 0.9, 1.1, ref.ACTIONS['anisotropic-clover'](whole, ref.ANTIPERIODIC, mass=MASS, xi0=XI, c_r=1.1, c_t=0.9))):
        dirac = pyquda.getClover(info, MASS, 1e-11, 1000, xi, csw_t, csw_r, endpoint=endpoint)
        with dirac.useGauge(gauge):
            one, many = LatticeFermion(info, packed(b[0][part])), MultiLatticeFermion(info, 2, np.stack([packed(c[part]) for c in b]))
            assert near(dirac.mat(one).data, packed(op.apply(b[0])[part]), 1e-13)
            assert near(dirac.matDagMat(one).data, packed(op.apply_dagger(op.apply(b[0]))[part]), 1e-13)
            x = [dirac.invert(one), dirac.invertRestart(one)]
            y = dirac.invertMultiSrc(many)
            for data, rhs in ((x[0].data, b[0]), (x[1].data, b[0]), (y.data[0], b[0]), (y.data[1], b[1])):
                assert near(op.apply(together(data, part, rhs.shape)), rhs, 1.1e-11)
            p = pyquda.invert(dirac, 'point', [1, 2, 3, 5])
            delta = np.zeros_like(b[0])
            delta[5, 3, 2, 1, 2, 1] = 1
            column = LatticeFermion(info, packed(delta[part]))
            assert near(p.data[..., 2, :, 1], dirac.invert(column).data, 1e-8) and type(x[0]) is LatticeFermion and type(y) is MultiLatticeFermion
        try:
            dirac.invert(one)
            raise AssertionError('without links')
        except RuntimeError:
            pass
        dirac.connection.close()
    if rank == 0:
        print('all is well')


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
if int(sys.argv[3]) > 1:  # one start of MPI for both
    import gpt_program
    gpt_program.main(sys.argv[1], sys.argv[2])
