"""Arrays in and out: what a user has becomes a numpy array without a copy where that can be, and comes back as what it was. Arrays in buffers are
sent without a copy: a daemon on this machine reads them where they are."""
from __future__ import annotations

import math
import sys
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import errors
from ._quark import ffi, lib

Back = Callable[[NDArray[Any]], Any]
CPU = 1  # kDLCPU

DTYPES = {np.dtype('<c8'): lib.QUARK_F32, np.dtype('<c16'): lib.QUARK_F64}


def as_it_is(array: NDArray[Any]) -> Any:
    return array


def to_numpy(b: Any) -> Tuple[NDArray[Any], Back]:
    """The array of what has one in the memory of the host, and what turns a result into what b was."""
    if isinstance(b, np.ndarray):
        return b, as_it_is
    library = type(b).__module__.split('.')[0]
    device = b.__dlpack_device__()[0] if hasattr(b, '__dlpack_device__') else CPU
    if device != CPU:
        raise TypeError('an array in the memory of a device (DLPack device type %d): copy it to the host first' % device)
    if library == 'torch':
        torch = sys.modules['torch']
        # What torch makes of memory it can write: the daemon's cannot be written.
        return np.asarray(b.detach()), lambda x: torch.from_numpy(x if x.flags.writeable else x.copy())
    if hasattr(b, '__dlpack__') and not hasattr(b, '__array__') and not hasattr(b, '__array_interface__'):
        return np.from_dlpack(b), as_it_is
    return np.asarray(b), as_it_is


def take(b: Any, shape: Tuple[int, ...]) -> Tuple[NDArray[Any], bool, Back]:
    """(contiguous array [rhs, *shape], whether b had the axis rhs, what turns a solution into what b was)

    b: `shape` or (n, *shape); complex64 goes to the daemon as 32 bit, complex128 as 64 bit; real numbers become complex128.
    Errors: TypeError for other numbers and for memory of devices, ValueError for other shapes.

    >>> a, many, _ = take(np.zeros((2, 4, 4, 4, 4, 4, 3), 'complex64'), (4, 4, 4, 4, 4, 3))
    >>> a.shape[0], many, a.dtype.itemsize
    (2, True, 8)
    """
    array, back = to_numpy(b)
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


def _check_site(shape: Tuple[int, ...]) -> None:
    """Any two axes behind those of the lattice: pyquda halves links, too. Several colour vectors look like that, but for the extent of x."""
    if len(shape) < 6 or (shape[-1] == 3 and shape[-2] not in (3, 4)):
        alone = ': fields with colour alone (staggered fermions) are of all sites in every request' if shape[-1:] == (3,) else ''
        raise ValueError('a field of shape %s: must be [..., t, z, y, x, 4 spins, 3 colours]%s' % (shape, alone))


def _sites(shape: Tuple[int, ...], parity: str) -> NDArray[np.bool_]:
    """Which sites [t, z, y, x] are of that parity."""
    if parity not in ('even', 'odd') or len(shape) != 4 or any(n % 2 for n in shape):
        raise ValueError('parity %r of a lattice of %s: must be even or odd, and all extents even' % (parity, shape))
    sites: NDArray[np.bool_] = np.indices(shape).sum(0) % 2 == (parity == 'odd')
    return sites


def half(field: ArrayLike, parity: str) -> NDArray[Any]:
    """The sites of one parity of a field [..., t, z, y, x, spin, colour], in its order: [..., t, z, y, x/2, spin, colour], a copy.

    parity: 'even', 'odd': of x + y + z + t.
    """
    array = np.asarray(field)
    _check_site(array.shape)
    lattice, front = array.shape[-6:-2], array.shape[:-6]
    chosen = array[(slice(None),) * len(front) + (_sites(lattice, parity),)]
    return chosen.reshape(front + lattice[:3] + (lattice[3] // 2,) + array.shape[-2:])


def whole(field: ArrayLike, parity: str) -> NDArray[Any]:
    """The field whose sites of one parity `half` has taken; 0 on the other parity.

    >>> b = np.arange(192.0).reshape(2, 2, 2, 2, 4, 3)
    >>> bool((whole(half(b, 'even'), 'even') + whole(half(b, 'odd'), 'odd') == b).all())
    True
    """
    array = np.asarray(field)
    _check_site(array.shape)
    lattice, front = array.shape[-6:-3] + (2 * array.shape[-3],), array.shape[:-6]
    out = np.zeros(front + lattice + array.shape[-2:], array.dtype)
    out[(slice(None),) * len(front) + (_sites(lattice, parity),)] = array.reshape(front + (-1,) + array.shape[-2:])
    return out


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


def buffer_of(array: NDArray[Any]) -> Optional[Tuple[Any, int]]:
    """The buffer that a contiguous array is in, and where; None: it is elsewhere."""
    address = int(array.__array_interface__['data'][0])
    for start, (size, buffer) in list(_live.items()):
        if start <= address and address + array.nbytes <= start + size:
            return buffer, address - start
    return None
