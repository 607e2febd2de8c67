"""Memory that right-hand sides and links are sent from without a copy: a daemon on this machine reads it where it is."""
from __future__ import annotations

import math
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import errors
from ._quark import ffi, lib

_live: Dict[int, Tuple[int, Any]] = {}  # of buffers: address -> bytes, quark_buffer_t *


def empty(shape: Sequence[int], dtype: DTypeLike = 'complex128') -> NDArray[Any]:
    """An array in a buffer, of zeros. It goes with the last array that shares its memory. Errors: ValueError, ProcessError (no memory)."""
    kind = np.dtype(dtype).newbyteorder('<')
    size = math.prod(shape) * kind.itemsize
    if size <= 0 or min(shape, default=1) < 0:
        raise ValueError('an array of shape %s: must have elements' % (tuple(shape),))
    buffer, data, err = ffi.new('quark_buffer_t **'), ffi.new('void **'), ffi.new('quark_error_t *')
    errors.check(lib.quark_buffer_create(size, buffer, data, err), err)
    address, made = int(ffi.cast('uintptr_t', data[0])), buffer[0]

    def end(_: Any) -> None:
        _live.pop(address, None)
        lib.quark_buffer_destroy(made)
    # The array holds the memoryview, that the pointer, and the end of the pointer destroys the buffer.
    owner = ffi.gc(ffi.cast('char *', data[0]), end, size)
    _live[address] = size, made
    return np.frombuffer(ffi.buffer(owner, size), kind).reshape(shape)


def find(array: NDArray[Any]) -> Optional[Tuple[Any, int]]:
    """The buffer that a contiguous array is in, and where; None: it is elsewhere."""
    address = int(array.__array_interface__['data'][0])
    for start, (size, buffer) in list(_live.items()):
        if start <= address and address + array.nbytes <= start + size:
            return buffer, address - start
    return None
