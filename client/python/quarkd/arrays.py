"""Arrays in and out: what a user has becomes a numpy array without a copy where that can be, and comes back as what it was."""
from __future__ import annotations

import sys
from typing import Any, Callable, Tuple

import numpy as np
from numpy.typing import NDArray

from ._quark import lib

Back = Callable[[NDArray[Any]], Any]
CPU = 1  # kDLCPU

DTYPES = {np.dtype('<c8'): lib.QUARK_F32, np.dtype('<c16'): lib.QUARK_F64}


def _as_it_is(array: NDArray[Any]) -> Any:
    return array


def _to_numpy(b: Any) -> Tuple[NDArray[Any], Back]:
    if isinstance(b, np.ndarray):
        return b, _as_it_is
    library = type(b).__module__.split('.')[0]
    device = b.__dlpack_device__()[0] if hasattr(b, '__dlpack_device__') else CPU
    if device != CPU:
        raise TypeError('an array in the memory of a device (DLPack device type %d): copy it to the host first' % device)
    if library == 'torch':
        torch = sys.modules['torch']
        # What torch makes of memory it can write: the daemon's cannot be written.
        return np.asarray(b.detach()), lambda x: torch.from_numpy(x if x.flags.writeable else x.copy())
    if hasattr(b, '__dlpack__') and not hasattr(b, '__array__') and not hasattr(b, '__array_interface__'):
        return np.from_dlpack(b), _as_it_is
    return np.asarray(b), _as_it_is


def take(b: Any, shape: Tuple[int, ...]) -> Tuple[NDArray[Any], bool, Back]:
    """(contiguous array [rhs, *shape], whether b had the axis rhs, what turns a solution into what b was)

    b: `shape` or (n, *shape); complex64 goes to the daemon as 32 bit, complex128 as 64 bit; real numbers become complex128.
    Errors: TypeError for other numbers and for memory of devices, ValueError for other shapes.

    >>> a, many, _ = take(np.zeros((2, 4, 4, 4, 4, 4, 3), 'complex64'), (4, 4, 4, 4, 4, 3))
    >>> a.shape[0], many, a.dtype.itemsize
    (2, True, 8)
    """
    array, back = _to_numpy(b)
    if array.dtype.kind in 'iuf' and array.dtype != np.dtype('f2'):
        array = array.astype('<c16')
    dtype = array.dtype.newbyteorder('<')
    if dtype not in DTYPES:
        raise TypeError('numbers of type %s: must be complex64 or complex128' % array.dtype)
    many = array.shape[1:] == shape
    if not many and array.shape != shape:
        raise ValueError('a field of shape %s: must be %s, or (n, ...) of that' % (array.shape, shape))
    if many and not array.shape[0]:
        raise ValueError('no right-hand sides')
    return np.ascontiguousarray(array.reshape((-1,) + shape), dtype), many, back
