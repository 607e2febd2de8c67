"""Vectors of a user, on their way to the daemon."""
from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Iterator

import numpy as np
from numpy.typing import NDArray

from .. import arrays, gauge
from .._quark import ffi, lib
from ..handle import Handle


def take(vectors: Any) -> NDArray[Any]:
    """Vectors as they are sent. Errors: TypeError, ValueError.

    >>> take(np.zeros((4, 2, 4, 4, 4, 3), 'complex64')).shape
    (4, 2, 4, 4, 4, 3)
    """
    array, _ = arrays.to_numpy(vectors)
    dtype = array.dtype.newbyteorder('<')
    if dtype not in arrays.DTYPES:
        raise TypeError('vectors of type %s: must be complex64 or complex128' % array.dtype)
    if array.ndim != 6 or array.shape[5] != 3 or not array.shape[1] or any(array.shape[i] < 2 or array.shape[i] % 2 for i in (0, 2, 3, 4)):
        raise ValueError('vectors of shape %s: must be [t, n, z, y, x, 3] with even extents' % (array.shape,))
    return np.ascontiguousarray(array, dtype)


def tolerance(array: NDArray[Any]) -> float:
    return 1e-4 if array.dtype.itemsize == 8 else 1e-9


def digest(array: NDArray[Any]) -> int:
    """The number by which the daemon knows vectors."""
    total = ffi.new('uint64_t *')
    lib.quark_vectors_digest(ffi.from_buffer(array.reshape(-1).view(np.uint8)), arrays.DTYPES[array.dtype], ffi.NULL, math.prod(array.shape[:5]), total)
    return int(total[0])


@contextmanager
def sent(handle: Handle, array: NDArray[Any], keep_ms: int, patience: float) -> Iterator[int]:
    """While the daemon has the vectors: their digest. keep_ms: that it has them longer."""
    number = digest(array)
    dims = (*array.shape[4:1:-1], array.shape[0])
    request, present = gauge.open_field(handle, array.dtype, dims, number, None, keep_ms, patience, count=array.shape[1])
    gauge.transfer(request, None if present else array, 'vectors')
    try:
        yield number
    finally:
        if keep_ms:
            request.ack(0)
            request.detach()
        else:
            request.release()
