"""SciDAC files of propagators and fermions, as Chroma and MILC have them: client/files in Python. Absent where the package was built without zlib."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ._files import ffi, lib

if TYPE_CHECKING:
    from .io import Field

FORMS = ('scidac', 'usqcd')
PLAIN = ('true_residual', 'hq_residual', 'iterations', 'seconds', 'spin', 'colour', 'seed', 'every', 'gamma', 'flavour')
ARRAYS = ('site', 'momentum')


def _check(code: int, err: Any) -> None:
    if not code:
        return
    text = ffi.string(err.text).decode('utf-8', 'replace')
    if code in (lib.QK_IO_ERROR, lib.QK_NOT_FOUND):
        raise OSError(text)
    if code == lib.QK_NO_MEMORY:
        raise MemoryError(text)
    raise ValueError(text)


def _members(meta: Any) -> List[Tuple[str, int, Any, int]]:
    """Name, kind, pointer and count of each member."""
    n = ffi.new('int *')
    table, base = lib.qk_h5meta_members(n), ffi.cast('char *', meta)
    types = {lib.QK_H5_TEXT: 'char *', lib.QK_H5_REAL: 'double *', lib.QK_H5_INT: 'int32_t *'}
    return [(ffi.string(a.name).decode(), a.kind, ffi.cast(types[a.kind], base + a.offset), a.count) for a in table[0:n[0]]]


def _fill_meta(meta: Any, about: Dict[str, Any]) -> None:
    lib.qk_h5meta_init(meta)
    for name, kind, where, count in _members(meta):
        value = about.get(name)
        if value is None:
            continue
        if kind == lib.QK_H5_TEXT:
            text = os.fsencode(str(value))
            if len(text) >= count:
                raise ValueError('%s: "%.40s..." has %d bytes, must have at most %d' % (name, value, len(text), count - 1))
            ffi.memmove(where, text + b'\0', len(text) + 1)
        else:
            numbers = np.atleast_1d(value)
            if len(numbers) != count:
                raise ValueError('%s: %d numbers, must be %d' % (name, len(numbers), count))
            for i, number in enumerate(numbers):
                where[i] = float(number) if kind == lib.QK_H5_REAL else int(number)


def _read_meta(meta: Any) -> Dict[str, Any]:
    """As attributes of HDF5 files: what is not known is not there."""
    out: Dict[str, Any] = {}
    for name, kind, where, count in _members(meta):
        if kind == lib.QK_H5_TEXT:
            text = ffi.string(where, count).decode('utf-8', 'replace')
            if text:
                out[name] = text
        else:
            values = np.array([where[i] for i in range(count)])
            if not np.isnan(values).any():
                out[name] = values if count > 1 else values[0]
    return out


def write(path: str, form: str, about: Dict[str, Any], columns: List[NDArray[Any]], rows: NDArray[Any]) -> None:
    """columns: the twelve, [t, z, y, x, spin, colour] of one type. Errors: OSError, ValueError: also if such a file cannot have them."""
    if form not in FORMS:
        raise ValueError('form %r: must be scidac or usqcd' % form)
    bits = 32 if columns[0].dtype.itemsize == 8 else 64
    kept = [np.ascontiguousarray(column, '<c8' if bits == 32 else '<c16') for column in columns]  # they stay until the file is complete
    name, meta, file, err = os.fsencode(path), ffi.new('qk_h5meta_t *'), ffi.new('qk_scidac_out_t **'), ffi.new('qk_err_t *')
    _fill_meta(meta, about)
    _check(lib.qk_scidac_check(name, form == 'usqcd', meta, len(kept), err), err)
    _check(lib.qk_scidac_create(name, form == 'usqcd', meta, bits, len(kept), file, err), err)
    try:
        for i, (column, row) in enumerate(zip(kept, rows)):
            _check(lib.qk_scidac_write(file[0], i, ffi.from_buffer(column), True, err), err)
            _check(lib.qk_scidac_set_column(file[0], i, _column(row), err), err)
        _check(lib.qk_scidac_commit(file[0], err), err)
    finally:
        lib.qk_scidac_discard(file[0])


def _column(row: Any) -> Any:
    c = ffi.new('qk_h5column_t *')
    lib.qk_h5column_init(c)
    if not lib.qk_h5column_status(bytes(row['status']), ffi.addressof(c, 'status')):
        raise ValueError('status %r: must be OK, NOT_CONVERGED, ...' % row['status'])
    c.source = bytes(row['source'])
    for member in PLAIN:
        if member in row.dtype.names:
            setattr(c, member, row[member].item())
    for member in ARRAYS:
        setattr(c, member, row[member].tolist())
    return c


def read(path: str) -> Field:
    """All right-hand sides of a file, whose checksums are verified. Errors: OSError, ValueError."""
    from .io import COLUMN, Field
    file, err = ffi.new('qk_scidac_in_t **'), ffi.new('qk_err_t *')
    _check(lib.qk_scidac_open(os.fsencode(path), file, err), err)
    try:
        meta, bits, n = lib.qk_scidac_meta(file[0]), lib.qk_scidac_bits(file[0]), lib.qk_scidac_nrhs(file[0])
        shape = tuple(reversed(list(meta.dims))) + (4, 3)
        field = np.empty((n,) + shape, '<c8' if bits == 32 else '<c16')
        for i in range(n):
            _check(lib.qk_scidac_read(file[0], i, bits, ffi.from_buffer(field[i], require_writable=True), err), err)
        rows = np.zeros(n, np.dtype(COLUMN[:-1]))
        for row, c in zip(rows, lib.qk_scidac_columns(file[0])[0:n]):
            row['status'], row['source'] = ffi.string(lib.qk_status_name(c.status)), ffi.string(c.source)
            for member in PLAIN[:-1]:
                row[member] = getattr(c, member)
            for member in ARRAYS:
                row[member] = list(getattr(c, member))
        return Field(field, _read_meta(meta), rows)
    finally:
        lib.qk_scidac_close(file[0])
