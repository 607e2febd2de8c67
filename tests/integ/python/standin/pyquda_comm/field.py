"""Fields [parity][t][z][y][x/2]... of a rank."""
import numpy as np


class LatticeInfo:
    """Ranks with t fastest, as PyQUDA numbers them by default."""

    def __init__(self, latt_size, t_boundary=1, anisotropy=1.0, grid_size=(1, 1, 1, 1), rank=0):
        self.global_size, self.t_boundary, self.anisotropy, self.grid_size = list(latt_size), t_boundary, anisotropy, list(grid_size)
        self.mpi_rank, self.mpi_size = rank, int(np.prod(grid_size))
        self.grid_coord = [int(c) for c in np.unravel_index(rank, grid_size)]
        self.size = [n // g for n, g in zip(latt_size, grid_size)]


class _Field:
    location = 'numpy'

    def __init__(self, latt_info, value=None):
        x, y, z, t = latt_info.size
        shape = self.front + (2, t, z, y, x // 2) + self.site
        self.latt_info = latt_info
        self.data = np.zeros(shape, complex) if value is None else np.asarray(value).reshape(shape)


class LatticeGauge(_Field):
    front, site = (4,), (3, 3)


class LatticeFermion(_Field):
    front, site = (), (4, 3)


class MultiLatticeFermion(_Field):
    site = (4, 3)

    def __init__(self, latt_info, L5, value=None):
        self.front = (L5,)
        super().__init__(latt_info, value)


class LatticePropagator(_Field):
    front, site = (), (4, 4, 3, 3)
