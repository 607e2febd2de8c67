"""Spectra of the operators of tests/ref as dense matrices, for lattices of some dozens of sites."""
import numpy as np

import ref_dirac as ref


def as_five(op):
    """M' of domain wall fermions, which quarkd's Mhat is made of: M = M' B5, B5 = b + c Delta; of other operators M."""
    shape = (op.ls,) + op.shape if hasattr(op, 'apply5') else op.shape
    if not hasattr(op, 'apply5'):
        return op.apply, shape
    # B5 acts on slices alone: its matrix for each chirality from a field on one site
    unit = np.eye(op.ls)[:, :, None, None, None, None, None, None] * np.ones((1, 1, 1, 1, 1, 1, ref.NS, 1))
    each = (slice(None),) + (None,) * 6
    b5 = np.stack([op.b[each] * e + op.c[each] * op.delta(e.astype(complex)) for e in unit], 1)[:, :, 0, 0, 0, 0, :, 0]
    inverse = np.linalg.inv(np.moveaxis(b5, -1, 0))  # [spin][s][r]
    return (lambda psi: op.apply5(np.einsum('asr,rtzyxac->stzyxac', inverse, psi)), shape)


def columns(apply, shape, sites):
    """The columns of a matrix of those sites: [n][rows]."""
    out = []
    for i in sites:
        e = np.zeros(int(np.prod(shape)), complex)
        e[i] = 1
        out.append(apply(e.reshape(shape)).ravel())
    return np.array(out)


def parities(shape):
    """Indices of numbers on even sites, on odd ones."""
    lattice = shape[-6:-2]
    odd = sum(np.indices(lattice)) % 2
    odd = np.broadcast_to(odd[..., None, None], shape).ravel()
    return np.flatnonzero(odd == 0), np.flatnonzero(odd)


def dense_mhat(op):
    """Mhat = 1 - M_ee^-1 M_eo M_oo^-1 M_oe, and the indices of its rows."""
    apply, shape = as_five(op)
    even, odd = parities(shape)
    m = columns(apply, shape, np.arange(int(np.prod(shape)))).T
    inner = np.linalg.solve(m[np.ix_(odd, odd)], m[np.ix_(odd, even)])
    return np.eye(len(even)) - np.linalg.solve(m[np.ix_(even, even)], m[np.ix_(even, odd)] @ inner), even


def normal_values(op):
    """All eigenvalues of Mhat^+ Mhat, the lowest first."""
    return np.linalg.svd(dense_mhat(op)[0], compute_uv=False)[::-1]**2
