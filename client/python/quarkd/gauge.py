"""Links from memory: configurations that the daemon gets from a client, and boundaries."""
from __future__ import annotations

import cmath
import math
from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import arrays, errors
from ._quark import ffi, lib
from .handle import Handle
from .request import Request
from .smearing import real

Boundary = Union[str, Sequence[complex], None]
LINK = (4, 3, 3)
NEAR = 1e-12


def boundary_text(boundary: Boundary) -> Optional[str]:
    """The factors of x, y, z, t in quarkd's words: of a text, or of four numbers of modulus 1.

    >>> boundary_text((1, 1, 1, -1)), boundary_text((1, 1, 1, 1j))
    ('1,1,1,-1', '1,1,1,0.5pi')
    """
    if boundary is None or isinstance(boundary, str):
        return boundary
    factors = [complex(b) for b in boundary]
    if len(factors) != 4 or any(not abs(abs(b) - 1) <= NEAR for b in factors):
        raise ValueError('boundary %r: must be four numbers of modulus 1, for x, y, z, t' % (boundary,))
    return ','.join('%d' % b.real if b in (1, -1) else real(cmath.phase(b) / math.pi) + 'pi' for b in factors)


def take(links: Any) -> NDArray[Any]:
    """Links as they are sent. Errors: TypeError, ValueError."""
    array, _ = arrays.to_numpy(links)
    dtype = array.dtype.newbyteorder('<')
    if dtype not in arrays.DTYPES:
        raise TypeError('links of type %s: must be complex64 or complex128' % array.dtype)
    if array.ndim != 7 or array.shape[4:] != LINK or any(n < 2 or n % 2 for n in array.shape[:4]):
        raise ValueError('links of shape %s: must be [t, z, y, x, 4, 3, 3] with even extents' % (array.shape,))
    return np.ascontiguousarray(array, dtype)


def digest(links: Any) -> int:
    """The number by which the daemon knows a configuration: of links [t, z, y, x, mu, 3, 3], mu = x, y, z, t.

    >>> '%016x' % digest(np.broadcast_to(np.eye(3, dtype=complex), (2, 2, 2, 2, 4, 3, 3)))
    '38a014ca42438d3c'
    """
    array, total = take(links), ffi.new('uint64_t *')
    lib.quark_gauge_digest(ffi.from_buffer(array.reshape(-1).view(np.uint8)), arrays.DTYPES[array.dtype], 18, ffi.NULL, math.prod(array.shape[:4]), total)
    return int(total[0])


class Gauge:
    """Links that the daemon has: made by Connection.upload_gauge. They stay while a setup is made of them, while this object is there, and
    without both for its `keep`, or the daemon's limit, after the connection has ended.

    digest      by which the daemon knows them
    dims        x, y, z, t
    sent        whether they had to be sent
    unitarity   largest element of |U^+ U - 1|; NaN: they were there already
    boundary    of setups made of them that name none, in quarkd's words
    """

    def __init__(self, request: Request, dims: Tuple[int, ...], number: int, sent: bool, unitarity: float, boundary: Optional[str]) -> None:
        self._request, self.dims, self.digest, self.sent, self.unitarity, self.boundary = request, dims, number, sent, unitarity, boundary

    @property
    def text(self) -> str:
        """As quark_load_t.gauge has it."""
        return 'digest:%016x' % self.digest

    def release(self) -> None:
        """The daemon may forget the links, unless a setup is made of them."""
        self._request.release()

    def __repr__(self) -> str:
        return 'Gauge(%s, digest %016x)' % ('x'.join(map(str, self.dims)), self.digest)


def upload(handle: Handle, links: Any, boundary: Boundary, plaquette: Optional[float], keep_ms: int, patience: float) -> Gauge:
    """Connection.upload_gauge"""
    array, text = take(links), boundary_text(boundary)
    dims = array.shape[3::-1]
    params, present = ffi.new('quark_field_params_t *'), ffi.new('bool *')
    lib.quark_field_params_init(params)
    params.dims, params.dtype, params.keep_ms = list(dims), arrays.DTYPES[array.dtype], keep_ms
    params.has_digest, params.digest = True, digest(array)
    if plaquette is not None:
        params.plaquette = plaquette
    request = Request(handle, 1)
    request.submit(lambda conn, p, number, size, err: int(lib.quark_field_open(conn, p, number, size, present, err)), params, patience)
    try:
        if not present[0]:
            if request.bytes != array.nbytes:
                raise errors.make(lib.QUARK_INTERNAL, 'the daemon takes %d bytes of links, not %d' % (request.bytes, array.nbytes))
            request.upload(array)
        result = request.wait(0)
        if result.code:
            raise result.error('links')
    except BaseException:
        request.release()
        raise
    return Gauge(request, dims, params.digest, not present[0], result.unitarity, text)
