"""Files as quarkctl writes and reads them (client/README.md has the layouts): HDF5, which needs h5py, and SciDAC.

Files are written under a temporary name beside their own, and renamed when they are complete.
"""
from __future__ import annotations

import math
import os
import tempfile
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import __version__, contract, gamma
from .correlator import Correlator, Correlators

if TYPE_CHECKING:
    from .propagator import Propagator

VERSION = 1
LIME = b'\x45\x67\x89\xab'
REALS = ('kappa', 'mass', 'csw', 'boundary', 'plaquette', 'tolerance', 'tolerance_abs', 'tolerance_hq', 'residual', 'seconds')
INTS = ('dims', 'site_reals', 'flavour', 'origin', 'iterations')
CORRELATOR_TEXTS = ('config', 'quark', 'label', 'channels', 'source', 'smear', 'links', 'sink', 'gauge', 'digest', 'normalisation', 'program', 'action')
FIELD_TEXTS = ('kind', 'basis', 'normalisation', 'action', 'source', 'smear', 'links', 'sequential', 'gauge', 'digest', 'program')
COLUMN = [('status', 'S24'), ('true_residual', '<f8'), ('iterations', '<i8'), ('seconds', '<f8'), ('source', 'S16'), ('site', '<i4', (4,)),
          ('spin', '<i4'), ('colour', '<i4'), ('seed', '<u8'), ('momentum', '<i4', (3,)), ('every', '<i4'), ('gamma', '<i4'),
          ('hq_residual', '<f8'), ('flavour', '<i4')]


@dataclass(frozen=True)
class Field:
    """What a field file holds: field [rhs, t, z, y, x, spin, colour]; attributes by name; columns, a structured array, or None."""

    field: NDArray[Any]
    attributes: Dict[str, Any]
    columns: Optional[NDArray[Any]]

    def __repr__(self) -> str:
        return 'Field(%s of shape %s, %s)' % (self.field.dtype, self.field.shape, self.attributes.get('source') or self.attributes.get('kind') or 'of unknown source')

    def propagator(self) -> NDArray[Any]:
        """The twelve columns of a point or wall source as [t, z, y, x, spin, spin0, colour, colour0]; the three of staggered fermions as
        [t, z, y, x, colour, colour0]. Errors: ValueError: there are others."""
        if self.field.ndim == 6 and len(self.field) == 3:
            return np.ascontiguousarray(np.moveaxis(self.field, 0, -1))
        if self.field.ndim != 7 or len(self.field) != 12:
            raise ValueError('fields of shape %s are no propagator, which has 12 columns of one flavour' % (self.field.shape,))
        lattice = self.field.shape[1:5]
        return np.ascontiguousarray(self.field.reshape((4, 3) + lattice + (4, 3)).transpose(2, 3, 4, 5, 6, 0, 7, 1))


def _replace(path: str, write: Callable[[Any], None]) -> None:
    """Writes a file by h5py under another name, syncs it and gives it its own; on an error nothing is left behind."""
    import h5py
    folder = os.path.dirname(os.path.abspath(path))
    fd, part = tempfile.mkstemp(dir=folder, prefix='.' + os.path.basename(path) + '.')
    try:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(fd, 0o666 & ~mask)
        with h5py.File(part, 'w') as f:
            write(f)
        os.fsync(fd)
        os.replace(part, path)
        part = ''
    finally:
        os.close(fd)
        if part:
            os.unlink(part)


def _attributes(target: Any, about: Dict[str, Any], texts: Any) -> None:
    """What is not known, or NaN, is not written."""
    for name in REALS:
        value = about.get(name)
        if value is not None and not np.isnan(value).any():
            target.attrs[name] = np.asarray(value, '<f8')
    for name in INTS:
        if about.get(name) is not None:
            target.attrs[name] = np.asarray(about[name], '<i4')
    for name in texts:
        if about.get(name):
            target.attrs[name] = np.bytes_(os.fsencode(str(about[name])))


def _head(f: Any, form: str) -> None:
    f.attrs['format'], f.attrs['format_version'] = np.bytes_(form), np.int32(VERSION)


def _column_rows(prop: Propagator) -> NDArray[Any]:
    usual = prop.report.flavours == 1
    rows = np.zeros(len(prop), np.dtype(COLUMN[:-1] if usual else COLUMN))
    kind = prop.source.kind
    for row, column, result in zip(rows, prop.members, prop.results):
        row['status'], row['true_residual'], row['iterations'], row['seconds'] = result.status, result.residual, result.iterations, result.seconds
        row['source'], row['seed'], row['every'] = kind, column.get('seed', 0), column.get('t_every', 0)
        row['site'] = [column[x] if kind == 'point' else -1 for x in 'xyz'] + [column['t']]
        row['spin'], row['colour'] = (-1, -1) if kind == 'sequential' else (column['spin'], column['colour'])
        row['momentum'] = [column.get(p, 0) for p in ('px', 'py', 'pz')]
        row['hq_residual'] = result.hq_residual
        row['gamma'] = column['gamma'] if kind == 'sequential' else -1
        if not usual:
            row['flavour'] = column.get('flavour', 0)
    return rows


def _about(prop: Propagator) -> Dict[str, Any]:
    """The attributes of a file of a propagator."""
    source, sequential = prop.source, None
    if source.through:
        p, own = dict(source.place), source.smearing
        sequential = 'gamma=%s,t=%d,p=%d:%d:%d,smear=%s%s' % (gamma.name(p['gamma']), p['t'], p['px'], p['py'], p['pz'], own or 'none',
                                                              ',flavour=-1' if source.through.terms['flavour'] < 0 else '')
        source = source.through.source
    smear = source.smearing
    return {**prop.connection._operator(prop.report, prop.terms), 'kind': 'propagator', 'basis': 'degrand-rossi', 'source': str(prop.source),
            'smear': str(smear or ''), 'links': str(smear.links or '') if smear else '', 'sequential': sequential,
            'program': 'quarkd (Python) ' + __version__}


def write_propagator(path: str, prop: Propagator) -> None:
    """An HDF5 file as quarkctl propagator writes it, with one column at a time in memory."""
    about, shape = _about(prop), (len(prop),) + prop.report.shape

    def write(f: Any) -> None:
        _head(f, 'quarkd field')
        _attributes(f, about, FIELD_TEXTS)
        field = f.create_dataset('field', shape, prop.dtype.newbyteorder('<'))
        for column in prop:
            field[column.index] = column.numpy()
        f['columns'] = _column_rows(prop)
        _write_wall(f, prop)
    _replace(path, write)


def _write_wall(f: Any, prop: Propagator) -> None:
    """The group wall, of domain wall fermions."""
    sums = prop.column_sums()
    if all(s is None for s in sums):
        return
    group, nan = f.create_group('wall'), np.full(prop.report.dims[3], np.nan)
    for name in ('quark', 'midpoint', 'axial'):
        rows = [getattr(s, name, None) for s in sums]
        if any(r is not None for r in rows):
            group[name] = np.array([nan if r is None else r for r in rows])
    together = prop.wall_sums() if all(s is not None for s in sums) else None
    group.attrs['t0'] = np.int32(-1 if together is None or together.t0 is None else together.t0)
    if together is None or together.midpoint is None:
        return
    group['residual_mass'] = together.residual_mass
    if together.t0 is not None:
        first = (len(nan) + 3) // 4
        group.attrs['plateau'], group.attrs['residual_mass'] = np.array([first, len(nan) - first], np.int32), together.plateau()


def _has_axes(field: Any) -> bool:
    return bool(field.ndim in (7, 8) and field.shape[-2:] == (4, 3) or field.ndim == 6 and field.shape[-1] == 3)


def write_fields(path: str, fields: ArrayLike, **attributes: Any) -> None:
    """An HDF5 file of fields [rhs, t, z, y, x, spin, colour], of staggered fermions [rhs, t, z, y, x, colour], as quarkctl solve --in reads it.

    attributes: by name, such as basis='ukqcd'.
    """
    array = np.asarray(fields)
    if array.dtype.kind != 'c' or not _has_axes(array):
        raise ValueError('fields of type %s and shape %s: must be complex [rhs, t, z, y, x, 4, 3] or [rhs, t, z, y, x, 3]' % (array.dtype, array.shape))
    unknown = set(attributes) - {*REALS, *INTS, *FIELD_TEXTS}
    if unknown:
        raise ValueError('attributes %s: files have none of these names' % ', '.join(sorted(unknown)))
    lattice = array.shape[1:5] if array.ndim == 6 else array.shape[-6:-2]
    about = {'dims': lattice[::-1], 'site_reals': 2 * array[0].size // math.prod(lattice) if len(array) else 24, 'kind': 'source', 'basis': 'degrand-rossi',
             'program': 'quarkd (Python) ' + __version__, **attributes}

    def write(f: Any) -> None:
        _head(f, 'quarkd field')
        _attributes(f, about, FIELD_TEXTS)
        f['field'] = array.astype(array.dtype.newbyteorder('<'), copy=False)
    _replace(path, write)


def _scidac() -> ModuleType:
    try:
        from . import scidac
    except ImportError:
        raise ImportError('this quarkd was built without zlib, and so without SciDAC files') from None
    return scidac


def write_scidac(path: str, prop: Propagator, form: str = 'scidac') -> None:
    """A SciDAC file of the twelve columns, as quarkctl propagator --format writes it. form: 'scidac', Chroma's; 'usqcd', MILC's.

    Errors: OSError; ValueError: of a propagator that such a file cannot have.
    """
    _scidac().write(path, form, _about(prop), [column.numpy() for column in prop], _column_rows(prop))


def _plain(value: Any) -> Any:
    return value.decode('utf-8', 'replace') if isinstance(value, bytes) else value


def _own(f: Any, name: str, where: str) -> Any:
    """A dataset or group of the file itself. Errors: ValueError, of links and of storage elsewhere, which are not followed."""
    import h5py
    if not isinstance(f.get(name, getlink=True), h5py.HardLink):
        raise ValueError('%s: object "%s" is not there, or is a link, which is not followed' % (where, name))
    found = f[name]
    if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
        raise ValueError('%s: dataset %s is stored in other files, which are not opened' % (where, name))
    return found


def read_field(path: str) -> Field:
    """Reads a file of right-hand sides or solutions, HDF5 or SciDAC by its first bytes. Errors: OSError; ValueError, with what is wrong."""
    with open(path, 'rb') as head:
        if head.read(4) == LIME:
            field: Field = _scidac().read(path)
            return field
    import h5py
    if not h5py.is_hdf5(path):
        raise ValueError('%s: neither HDF5 nor SciDAC' % path)
    with h5py.File(path, 'r') as f:
        found = _own(f, 'field', path)
        if not isinstance(found, h5py.Dataset) or found.dtype.kind != 'c' or not _has_axes(found):
            raise ValueError('%s: field must be complex [rhs][t][z][y][x][4][3], of doublets [rhs][flavour][t]..., of staggered fermions '
                             '[rhs][t][z][y][x][3]' % path)
        columns = _own(f, 'columns', path)[...] if 'columns' in f else None
        return Field(found[...], {name: _plain(value) for name, value in f.attrs.items()}, columns)


def write_correlators(path: str, correlators: Correlators) -> None:
    """A file of one piece, as quarkctl correlator --source writes it."""
    about = {**correlators.about, 'program': 'quarkd (Python) ' + __version__}

    def write(f: Any) -> None:
        _head(f, 'quarkd correlators')
        piece = f.create_group('/'.join(str(about[name]).replace('/', '_') or '-' for name in ('config', 'quark', 'label')))
        _attributes(piece, about, CORRELATOR_TEXTS)
        piece['momenta'] = np.array(next(iter(correlators.values())).momenta, '<i4').reshape(-1, 3)
        for name, channel in correlators.items():
            piece[name] = channel.values.astype('<c16')
    _replace(path, write)


def read_correlators(path: str) -> List[Correlators]:
    """All pieces of a file of quarkctl correlator, quarkctl workflow or to_hdf5; `about` has their attributes. Errors as `read_field`."""
    import h5py
    pieces: List[Correlators] = []
    with h5py.File(path, 'r') as f:
        if _plain(f.attrs.get('format')) != 'quarkd correlators':
            raise ValueError('%s: is not a file of correlators' % path)
        for config in f:
            for quark in _own(f, config, path):
                for label in _own(f[config], quark, path):
                    piece = _own(f[config][quark], label, path)
                    about = {name: _plain(value) for name, value in piece.attrs.items()}
                    momenta = tuple(tuple(int(n) for n in p) for p in _own(piece, 'momenta', path)[...])
                    colour = int(about.get('site_reals', 0)) == 6
                    names = contract.channels(str(about.get('channels', '')))
                    found = {c.name: Correlator(c.name, _own(piece, c.name, path)[...], momenta, c.form(colour)) for c in names}
                    pieces.append(Correlators(found, about))
    return pieces
