"""Grids, lattices and operators as GPT has them."""
import numpy as np


class single:
    complex_dtype = np.complex64


class double:
    complex_dtype = np.complex128


class full:
    n, __name__ = 1, 'full'


class redblack:
    n, __name__ = 2, 'redblack'


class grid:
    """mpi: ranks in x, y, z, t; rank: of this process, which Grid numbers with t fastest."""

    def __init__(self, fdimensions, precision, cb=full, mpi=(1, 1, 1, 1), rank=0):
        self.fdimensions, self.precision, self.cb, self.mpi, self.nd = list(fdimensions), precision, cb(), list(mpi), len(fdimensions)
        self.processor, self.Nprocessors = rank, int(np.prod(mpi))
        self.processor_coor = [int(c) for c in np.unravel_index(rank, mpi)]
        self.gdimensions, self.ldimensions = self.fdimensions, [n // m for n, m in zip(fdimensions, mpi)]


class otype:
    def __init__(self, name, shape):
        self.__name__, self.shape = name, shape


ot_vector_spin_color = otype('ot_vector_spin_color(4,3)', (4, 3))
ot_matrix_spin_color = otype('ot_matrix_spin_color(4,3)', (4, 4, 3, 3))
ot_matrix_su_n = otype('ot_matrix_su_n_fundamental_group(3)', (3, 3))


class lattice:
    """Indexed as a whole alone: [sites of this rank, x fastest][inner]."""

    def __init__(self, where, kind):
        self.grid, self.otype = where, kind
        self._data = np.zeros((int(np.prod(where.ldimensions)),) + kind.shape, where.precision.complex_dtype)

    def __getitem__(self, key):
        assert key == slice(None)
        return self._data.copy()

    def __setitem__(self, key, value):
        assert key == slice(None)
        if np.ndim(value):
            assert value.shape == self._data.shape and value.flags.c_contiguous, value.shape
        self._data[...] = value


def vspincolor(where):
    return lattice(where, ot_vector_spin_color)


def mspincolor(where):
    return lattice(where, ot_matrix_spin_color)


class vector_space:
    def __init__(self, where, kind):
        self.grid, self.otype = where, kind


class matrix_operator:
    """lhs = A rhs. accept_list: the functions take lists of lattices, else a lattice each."""

    def __init__(self, mat, adj_mat=None, inv_mat=None, adj_inv_mat=None, vector_space=None, accept_guess=(False, False), accept_list=False):
        self.mat, self.adj_mat, self.inv_mat, self.adj_inv_mat = mat, adj_mat, inv_mat, adj_inv_mat
        self.vector_space, self.accept_guess, self.accept_list = vector_space, accept_guess, accept_list

    def specialized_list_callable(self):
        return self.mat if self.accept_list else self

    def adj(self):
        return matrix_operator(self.adj_mat, self.mat, self.adj_inv_mat, self.inv_mat, self.vector_space, self.accept_guess, self.accept_list)

    def inv(self):
        return matrix_operator(self.inv_mat, self.adj_inv_mat, self.mat, self.adj_mat, self.vector_space, self.accept_guess, self.accept_list)

    def _on_lists(self, dst, src):
        if self.accept_list:
            self.mat(dst, src)
            return
        for to, of in zip(dst, src):
            self.mat(to, of)

    def __call__(self, first, second=None):
        many = isinstance(first, list)
        first = first if many else [first]
        src = first if second is None else second if isinstance(second, list) else [second]
        dst = [lattice(x.grid, x.otype) for x in src] if second is None else first
        if src[0].otype is ot_matrix_spin_color:  # its columns, spin by spin
            columns = [vspincolor(x.grid) for x in src for _ in range(12)]
            for i, x in enumerate(columns):
                x[:] = np.ascontiguousarray(src[i // 12][:][:, :, i % 12 // 3, :, i % 3])
            made = [vspincolor(x.grid) for x in columns]
            self._on_lists(made, columns)
            for i, x in enumerate(made):
                dst[i // 12]._data[:, :, i % 12 // 3, :, i % 3] = x[:]
        else:
            self._on_lists(dst, src)
        return dst if many else dst[0]

    def __mul__(self, other):
        if isinstance(other, matrix_operator):
            return matrix_operator(lambda dst, src: self(dst, other(src)), vector_space=self.vector_space, accept_list=True)
        return self(other)


from . import fermion  # noqa: E402


class qcd:
    fermion = fermion
