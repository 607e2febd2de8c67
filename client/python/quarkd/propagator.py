"""Propagators that the daemon keeps: their columns, correlators and sequential sources."""
from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import contract, notebook
from . import gamma as gammas
from . import source as sources
from ._quark import ffi, lib
from .correlator import Correlator, Correlators, WallSums
from .progress import Wish
from .request import Request, Result
from .smearing import Gauss
from .status import Report

if TYPE_CHECKING:
    from .connection import Connection

CONTRACTION_LIMITS = {'channels': 512, 'momenta': 128}
OPERATOR = ('action', 'parameters', 'mass', 'boundary', 'digest')  # of a setup in its report


class Column:
    """One solution of a propagator."""

    def __init__(self, propagator: Propagator, index: int) -> None:
        self._propagator, self.index = propagator, index

    @property
    def result(self) -> Result:
        return self._propagator.results[self.index]

    def numpy(self) -> NDArray[Any]:
        """The solution [t, z, y, x, spin, colour] (of doublets with the axis flavour before, of staggered fermions without spin), read-only: the daemon's memory if it is
        on this machine, and then always the same. It stays as long as the array, whatever becomes of the connection."""
        return self._propagator._column(self.index)

    def __array__(self, dtype: Any = None) -> NDArray[Any]:
        return np.asarray(self.numpy(), dtype)

    def __repr__(self) -> str:
        return 'Column(%d, residual %.2e)' % (self.index, self.result.residual)


class Propagator:
    """Solutions for all columns of a source, which stay with the daemon until `release`, or until nothing refers to this object.

    results   how each column ended
    report    of the daemon as it was: operator (of several masses that of this one), configuration
    first     of several masses: the number of the first column in the request, which is that of all masses
    """

    def __init__(self, connection: Connection, request: Request, source: sources.Source, columns: List[sources.Column], report: Report,
                 dtype: Any, terms: Dict[str, Any], first: int = 0, kept: Optional[Set[float]] = None) -> None:
        self.connection, self.request, self.source, self.report = connection, request, source, report
        self.dtype, self.terms, self._columns = np.dtype(dtype), terms, columns
        self.first, self._kept = first, kept
        self.results = [request.results[first + i] for i in range(len(columns))]
        self._arrays: weakref.WeakValueDictionary[int, NDArray[Any]] = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Union[int, Tuple[int, int]]) -> Column:
        """Column i, or that of (spin, colour): 3 * spin + colour; of staggered fermions that of (0, colour)."""
        i = 3 * index[0] + index[1] if isinstance(index, tuple) else index
        if not -len(self) <= i < len(self):
            raise IndexError('column %d of %d' % (i, len(self)))
        return Column(self, i % len(self))

    def __iter__(self) -> Iterator[Column]:
        return (self[i] for i in range(len(self)))

    @property
    def members(self) -> List[sources.Column]:
        """The members of a quark_column_t that each column was made by."""
        return self._columns

    @property
    def origin(self) -> Tuple[int, int, int, int]:
        """x, y, z, t of the source; 0 where it has no such coordinate."""
        first = self.source.through.source if self.source.through else self.source
        return first['x'], first['y'], first['z'], max(0, first['t'])

    @property
    def mass(self) -> Optional[float]:
        """The quark mass that it was solved for; None where the action has none."""
        value = self.report.setup['mass']
        return float(value) if value is not None and value == value else None

    def _column(self, i: int) -> NDArray[Any]:
        array = self._arrays.get(i)
        if array is None:
            array = self.request.view(self.first + i).view(self.dtype.newbyteorder('<')).reshape(self.report.shape)
            self._arrays[i] = array
        return array

    def _check_usual(self) -> None:
        all_of_them = 3 if self.report.colour_alone else 12
        if self.report.flavours > 1 or self.source.is_noise or len(self) != all_of_them:
            raise ValueError('%s has %d columns of %d flavours: this is for the %d of a source with all spins and colours'
                             % (self.source, len(self), self.report.flavours, all_of_them))

    def numpy(self) -> NDArray[Any]:
        """The propagator [t, z, y, x, spin, spin0, colour, colour0], of staggered fermions [t, z, y, x, colour, colour0], one copy.

        Errors: ValueError of noise and doublets (`columns`).
        """
        self._check_usual()
        if self.report.colour_alone:
            return np.stack([column.numpy() for column in self], axis=-1)
        t, z, y, x = self.report.shape[:4]
        out = np.empty((t, z, y, x, 4, 4, 3, 3), self.dtype)
        for column in self:
            out[..., column.index // 3, :, column.index % 3] = column.numpy()
        return out

    def columns(self) -> NDArray[Any]:
        """All solutions [column, ...], one copy."""
        return np.stack([column.numpy() for column in self])

    def column_sums(self) -> List[Optional[WallSums]]:
        """Of domain wall fermions: sums over time slices of each column; None for one that has none."""
        return [self.request.wall_sums(self.first + i) for i in range(len(self))]

    def wall_sums(self) -> WallSums:
        """Of domain wall fermions: those of all columns together, with the residual mass. Errors: ValueError without them."""
        found = self.column_sums()
        columns = [c for c in found if c is not None]
        if len(columns) < len(found):
            raise ValueError('no sums over time slices came with the solutions: they do with those of domain wall fermions')
        midpoint, axial = ([x for x in (getattr(c, name) for c in columns) if x is not None] for name in ('midpoint', 'axial'))
        times = {int(c['t']) for c in self._columns} if self.source.kind in ('point', 'wall', 'z2', 'z4') else set()
        t0 = min(times) if len(times) == 1 and min(times) >= 0 and not any(c.get('t_every', 0) for c in self._columns) else None
        return WallSums(np.sum([c.quark for c in columns], axis=0), np.sum(midpoint, axis=0) if midpoint else None,
                        np.sum(axial, axis=0) if axial else None, t0)

    def correlator(self, channels: Union[str, Sequence[str]] = 'pion', momenta: Sequence[Sequence[int]] = contract.REST, *,
                   anti: Optional[Propagator] = None, sink: Optional[Gauss] = None, patience: Optional[float] = None) -> Correlators:
        """Correlators by quarkctl's names (contract.channels), computed by the daemon.

        anti: the propagator that becomes the antiquark of mesons and the other flavour of nucleons; None: this one.
        sink: smearing of both at the sink.
        Of staggered fermions mesons whose spin and taste differ in x, y or z ("tastes", "g5-gxgt") need a point source, and a solve of it
        `shifted` for each set of directions, which is made here; links of shifts are those of the smearing at that end (without one at the sink, of that of the source).
        Errors: ValueError, RequestError (one of them is not kept any more).
        """
        self._check_usual()
        wanted = contract.channels(channels)
        raw, at = contract.raw_of(wanted), [tuple(int(n) for n in p) for p in momenta]
        if len(raw) > CONTRACTION_LIMITS['channels'] or not 1 <= len(at) <= CONTRACTION_LIMITS['momenta']:
            raise ValueError('%d contractions at %d momenta: must be at most 512, and 1 to 128' % (len(raw), len(at)))
        colour = self.report.colour_alone
        if colour:
            self._check_colour(wanted, anti, sink)
        elif any(c.kind == lib.QUARK_CORNER or c.name in contract.TASTES for c in wanted):
            raise ValueError('channels: nucleon_corner and pions by taste are for fields with colour alone; nucleon and pion are those of quarks with spin')
        if any(len(p) != 3 for p in at):
            raise ValueError('momenta: must be triples of integers')
        if 'open' in self.report.setup['parameters'] and any(c.kind != lib.QUARK_MESON for c in wanted):
            raise ValueError('baryons are means over times before and after the source, which an open boundary makes different: mesons only')
        if colour:
            numbers = self._contract_shifts(raw, at, anti, sink, patience)
        else:
            numbers = self._contract(self, anti, raw, at, sink, patience)
        made = contract.evaluate(wanted, numbers, len(at), self.report.dims[3], self.report.phase)
        found = {c.name: Correlator(c.name, made[c.name], tuple(at), c.form(colour)) for c in wanted}
        return Correlators(found, self._about(wanted, sink))

    def _check_colour(self, wanted: Sequence[contract.Channel], anti: Optional[Propagator], sink: Optional[Gauss]) -> None:
        ends = [self.source, (anti or self).source]
        if any(c.kind not in (lib.QUARK_MESON, lib.QUARK_CORNER) or max(c.shifts) > 7 for c in wanted):
            raise ValueError('channels: fields with colour alone make local mesons, pion, a4, a0, rho, rho_t, a1, b1, those whose spin and taste differ in '
                             'x, y or z, not in t (tastes, g5-gxgt), and nucleon_corner')
        if self.source.kind != 'point' and any(any(c.shifts) for c in wanted):
            raise ValueError('channels: tastes that are not local need a point source, not %s: of others each site would need a sign of its own' % self.source)
        if all(s.kind == 'wall' for s in ends) and len({tuple(s[k] for k in ('px', 'py', 'pz')) for s in ends}) == 1 and not all(c.is_of_walls for c in wanted):
            raise ValueError('channels: of staggered fermions %s makes the pion and nucleon_corner; all other mesons average to zero, as each site would need '
                             'a sign of its own: they need a point source, or an antiquark of a wall of another momentum' % self.source)
        if (sink or any(s.smearing for s in ends)) and not all(c.is_of_walls for c in wanted):
            warnings.warn('smearing mixes even and odd sites, on which all staggered mesons but the pion have different signs: '
                          'the wider the smearing, the more they average to zero', stacklevel=3)

    def _contract_shifts(self, raw: List[contract.Raw], momenta: Sequence[Tuple[int, ...]], anti: Optional[Propagator], sink: Optional[Gauss],
                         patience: Optional[float]) -> contract.Complex:
        """As `_contract`, of fields with colour alone: a contraction for each shift, with the solve that it needs."""
        made: Dict[contract.Raw, contract.Complex] = {}
        for shift in sorted({contract.shift_of(one) for one in raw}):
            part = [one for one in raw if contract.shift_of(one) == shift]
            shifted = self._shifted(shift) if shift else self
            try:
                numbers = self._contract(shifted, (anti or self) if shift else anti, part, momenta, sink, patience)
            finally:
                if shift:
                    shifted.release()
            made.update(zip(part, numbers.reshape(len(part), -1)))
        return np.concatenate([made[one] for one in raw])

    def _shifted(self, shift: int) -> Propagator:
        source = self.source.shifted(''.join(mu for k, mu in enumerate('xyz') if shift >> k & 1))
        terms = {name: self.terms[name] for name in ('tol', 'tol_abs', 'tol_hq', 'flavour', 'normalisation', 'max_iter')}
        terms['setup'] = self.report.setup['name']  # another one may be the default now, or have that name
        if self._kept is None:
            shifted = self.connection.propagator(source, dtype=self.dtype, **terms)
        else:
            shifted = self.connection.propagators(source, [self.report.setup['mass']], dtype=self.dtype, **terms)[0]
        if any(shifted.report.setup[name] != self.report.setup[name] for name in OPERATOR):
            shifted.release()
            raise ValueError('channels: they need solves of shifted sources, but setup %s has another operator now' % self.report.setup['name'])
        return shifted

    def _contract(self, quark: Propagator, anti: Optional[Propagator], raw: List[contract.Raw], momenta: Sequence[Tuple[int, ...]],
                  sink: Optional[Gauss], patience: Optional[float]) -> contract.Complex:
        c = ffi.new('quark_contraction_t *')
        lib.quark_contraction_init(c)
        c.request_a, c.request_b = quark.request.number, anti.request.number if anti else 0
        c.first_a, c.first_b = quark.first, anti.first if anti else 0
        channel, momentum = ffi.new('quark_channel_t[]', raw), ffi.new('int32_t[][3]', list(momenta))
        c.nchannel, c.channel, c.nmomentum, c.momentum = len(raw), channel, len(momenta), momentum
        c.origin = list(self.origin)
        if sink:
            sink.fill(c.sink)
        elif quark.source.shift and quark.source.smearing and quark.source.smearing.links:
            quark.source.smearing.links.fill(c.sink)
        request = Request(self.request.handle, 1)
        try:
            request.submit(lib.quark_contract, c, self.connection.patience if patience is None else patience)
            result = request.wait(0)
            if result.code:
                raise result.error('contraction')
            return np.array(request.view(0).view('<c16'))
        finally:
            request.release()

    def _about(self, wanted: Sequence[contract.Channel], sink: Optional[Gauss]) -> Dict[str, Any]:
        smear, s = self.source.smearing, self.report.setup
        quark = 'kappa=%.10g' % s['kappa'] if s['kappa'] else 'mass=%.10g' % s['mass']
        return {**self.connection._operator(self.report, self.terms), 'config': s['gauge'].rsplit('/', 1)[-1], 'label': str(self.source),
                'quark': quark + (',flavour=-1' if self.terms['flavour'] < 0 else ''), 'channels': ' '.join(c.name for c in wanted),
                'source': str(self.source), 'smear': str(smear) if smear else 'none',
                'links': str(smear.links) if smear and smear.links else 'none', 'sink': str(sink) if sink else 'none', 'origin': self.origin,
                'residual': max(r.residual for r in self.results), 'iterations': max(r.iterations for r in self.results),
                'seconds': sum(r.seconds for r in self.results)}

    def sequential(self, gamma: gammas.Gamma = 'g5', t: Optional[int] = None, momentum: sources.Momentum = (0, 0, 0), *,
                   smearing: Optional[Gauss] = None, tol: Optional[float] = None, flavour: Optional[int] = None,
                   progress: Wish = None) -> Propagator:
        """The propagator through this one: solutions for gamma exp(ipx) times its columns on slice t, or, None, on all."""
        source = sources.sequential(self, gamma, t, momentum)
        limits = {name: self.terms[name] for name in ('tol', 'tol_abs', 'tol_hq')} if tol is None else {'tol': tol}
        return self.connection.propagator(source.smeared(smearing) if smearing else source, dtype=self.dtype, progress=progress,
                                          flavour=flavour or self.terms['flavour'], setup=self.terms['setup'], **limits)

    def to_hdf5(self, path: str) -> None:
        """A file as quarkctl propagator writes it (needs h5py); an older file of that name is replaced when it is complete."""
        from . import io
        io.write_propagator(path, self)

    def to_scidac(self, path: str, form: str = 'scidac') -> None:
        """A SciDAC file in Chroma's form, or in MILC's: 'usqcd' (io.write_scidac)."""
        from . import io
        io.write_scidac(path, self, form)

    def release(self) -> None:
        """The daemon forgets the solutions, of several masses when those of all are released. Arrays of columns stay as they are."""
        if self._kept is not None:
            self._kept.discard(self.report.setup['mass'])
        if not self._kept:
            self.request.release()

    def __repr__(self) -> str:
        return 'Propagator(%s, %d columns, residual %.2e)' % (self.source, len(self), max(r.residual for r in self.results))

    def _repr_html_(self) -> str:
        rows = [('%d' % i, '%.2e' % r.residual, '%d' % r.iterations, '%.3g s' % r.seconds) for i, r in enumerate(self.results)]
        return notebook.table('propagator of ' + str(self.source), rows, ('column', 'residual', 'iterations', 'time')) + notebook.curve(
            [r.residual for r in self.results], logarithmic=True)
