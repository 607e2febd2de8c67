"""Links from memory: configurations that the daemon gets from a client, and boundaries."""
from __future__ import annotations

import cmath
import math
from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray

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


def digest(links: Any, sites: Optional[NDArray[np.uint64]] = None) -> int:
    """The number by which the daemon knows a configuration: of links [t, z, y, x, mu, 3, 3], mu = x, y, z, t. sites: of a part of the lattice, the
    number of each site with x fastest; the digest of the whole is the sum of those of its parts modulo 2^64.

    >>> '%016x' % digest(np.broadcast_to(np.eye(3, dtype=complex), (2, 2, 2, 2, 4, 3, 3)))
    '38a014ca42438d3c'
    """
    array, total = take(links), ffi.new('uint64_t *')
    where = ffi.NULL if sites is None else ffi.from_buffer('uint64_t[]', np.ascontiguousarray(sites, np.uint64))
    count = math.prod(array.shape[:4])
    if sites is not None and len(where) != count:
        raise ValueError('%d numbers of sites for links of %d sites' % (len(where), count))
    lib.quark_gauge_digest(ffi.from_buffer(array.reshape(-1).view(np.uint8)), arrays.DTYPES[array.dtype], 18, where, count, total)
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


def open_field(handle: Handle, dtype: DTypeLike, dims: Sequence[int], number: int, plaquette: Optional[float], keep_ms: int,
               patience: float, grid: Optional[Sequence[int]] = None, count: int = 0) -> Tuple[Request, bool]:
    """Announces links of that digest, and tells whether the daemon has them. grid: they come in parts, of which this connection has the first.
    count: vectors, so many of a time slice, in place of links."""
    params, present = ffi.new('quark_field_params_t *'), ffi.new('bool *')
    lib.quark_field_params_init(params)
    params.dims, params.dtype, params.keep_ms = list(dims), arrays.DTYPES[np.dtype(dtype)], keep_ms
    params.has_digest, params.digest = True, number
    if plaquette is not None:
        params.plaquette = plaquette
    if count:
        params.kind, params.count = lib.QUARK_FIELD_VECTORS, count
    if grid is not None:
        params.grid, params.part = list(grid), 0
    request = Request(handle, 1)
    request.submit(lambda conn, p, n, size, err: int(lib.quark_field_open(conn, p, n, size, present, err)), params, patience)
    return request, bool(present[0])


def transfer(request: Request, array: Optional[NDArray[Any]], what: str) -> Any:
    """Sends what was announced, None: what is there, and waits until it is taken: the result."""
    try:
        if array is not None:
            if request.bytes != array.nbytes:
                raise errors.make(lib.QUARK_INTERNAL, 'the daemon takes %d bytes of %s, not %d' % (request.bytes, what, array.nbytes))
            request.upload(array)
        result = request.wait(0)
        if result.code:
            raise result.error(what)
    except BaseException:
        request.release()
        raise
    return result


def send(request: Request, dims: Sequence[int], number: int, array: Optional[NDArray[Any]], boundary: Optional[str]) -> Gauge:
    """Sends links that were announced, None: that are there, and waits until they are taken."""
    result = transfer(request, array, 'links')
    return Gauge(request, tuple(dims), number, array is not None, result.unitarity, boundary)


def upload(handle: Handle, links: Any, boundary: Boundary, plaquette: Optional[float], keep_ms: int, patience: float) -> Gauge:
    """Connection.upload_gauge"""
    array, text = take(links), boundary_text(boundary)
    dims, number = array.shape[3::-1], digest(array)
    request, present = open_field(handle, array.dtype, dims, number, plaquette, keep_ms, patience)
    return send(request, dims, number, None if present else array, text)
