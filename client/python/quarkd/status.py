"""What the daemon says of itself and of its setups."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Tuple

from . import errors, notebook
from ._quark import ffi, lib
from .smearing import real


def plain(value: Any) -> Any:
    """A struct of cffi as a dict, its arrays as lists, its texts as str; numbers as they are."""
    if not isinstance(value, ffi.CData):
        return value
    kind = ffi.typeof(value)
    if kind.kind == 'struct':
        return {name: plain(getattr(value, name)) for name, _ in kind.fields}
    if kind.kind == 'array' and kind.item.cname == 'char':
        return ffi.string(value).decode('utf-8', 'replace')
    if kind.kind == 'array':
        return [plain(item) for item in value]
    raise TypeError(kind.cname)


def state_name(state: int) -> str:
    name: str = ffi.string(lib.quark_state_name(state)).decode()
    return name


def pairs(text: str) -> Dict[str, str]:
    """
    >>> pairs('kappa=0.12;csw=1.3')
    {'kappa': '0.12', 'csw': '1.3'}
    """
    return {key: value for key, _, value in (word.partition('=') for word in text.split(';') if word)}


@dataclass(frozen=True)
class Report:
    """The state of the daemon and of the setup of this connection. Unknown numbers are NaN or 0, unknown texts are empty.

    setup, engine, counters, occupancy have the members of quark_report_t (quark_daemon.h) by name.
    """

    state: str
    version: str
    uptime: float
    setup: Dict[str, Any]
    engine: Dict[str, Any]
    counters: Dict[str, int]
    occupancy: Dict[str, float]
    memory_used: int
    memory_limit: int
    trouble: str
    everything: Dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, r: Any) -> Report:
        d = plain(r)
        setup = d['setup']
        setup['start'] = setup['start'][:setup.pop('start_parts')]
        setup['mg']['level'] = setup['mg']['level'][:setup['mg']['levels']]
        setup['parameters'] = pairs(setup['parameters'])
        memory = d['engine']['memory']
        memory['share'] = {share['name']: share['bytes'] for share in memory['share'][:memory.pop('shares')]}
        return cls(state_name(d['state']), d['version'], d['uptime'], setup, d['engine'], d['counters'], d['occupancy'], d['memory_used'],
                   d['memory_limit'], d['trouble'], d)

    def of_mass(self, mass: float) -> Report:
        """What it is of a solution for another mass of the same request."""
        parameters = {key: real(mass) if key == 'mass' else value for key, value in self.setup['parameters'].items()}
        return replace(self, setup={**self.setup, 'mass': mass, 'parameters': parameters})

    @property
    def dims(self) -> Tuple[int, int, int, int]:
        """Extents x, y, z, t; zeros before the configuration is known."""
        x, y, z, t = self.setup['dims']
        return x, y, z, t

    @property
    def flavours(self) -> int:
        """Vectors of 4 spins and 3 colours in a right-hand side: 2 of doublets, else 1."""
        return max(1, int(self.setup['site_reals']) // 24)

    @property
    def colour_alone(self) -> bool:
        """Whether fields have no spin: those of staggered fermions."""
        return int(self.setup['site_reals']) == 6

    @property
    def site(self) -> Tuple[int, ...]:
        """Axes of a field behind those of the lattice: spin, colour, or colour alone."""
        return (3,) if self.colour_alone else (4, 3)

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of a right-hand side: t, z, y, x, spin, colour, of staggered fermions without spin; of doublets with the axis flavour before."""
        return ((2,) if self.flavours > 1 else ()) + tuple(reversed(self.dims)) + self.site

    @property
    def shape_five(self) -> Tuple[int, ...]:
        """Of a field with the slices of a fifth dimension before. Errors: ValueError (the action has none)."""
        if 'Ls' not in self.setup['parameters']:
            raise ValueError('five_d: fields of the action %s have four dimensions' % self.setup['action'])
        return (int(self.setup['parameters']['Ls']),) + self.shape

    def __repr__(self) -> str:
        return 'Report(%s)' % ', '.join('%s: %s' % row for row in self.rows())

    @property
    def phase(self) -> complex:
        """Of the boundary in t."""
        re, im = self.setup['boundary'][6:8]
        return complex(re, im)

    def rows(self) -> List[Tuple[str, str]]:
        """What is worth a glance, as (name, text)."""
        s, e = self.setup, self.engine
        known = {'kappa': s['kappa'], 'csw': s['csw'], 'mass': s['mass']}
        numbers = ', '.join('%s %.8g' % (k, v) for k, v in known.items() if v == v and v)
        return [('state', self.state), ('setup', s['name']), ('configuration', s['gauge']), ('lattice', 'x'.join(map(str, self.dims))),
                ('action', '%s  %s' % (s['action'], numbers)), ('plaquette', '%.8f' % s['plaquette']), ('solver', s['solver']),
                ('slots', '%d of %d busy' % (e['slots_busy'], e['slots'])), ('device', '%s %s' % (e['backend'], e['device']))]

    def _repr_html_(self) -> str:
        return notebook.table('quarkd ' + self.version, self.rows())


@dataclass(frozen=True)
class Setup:
    """A setup of the daemon: a configuration and an operator. everything: the members of quark_setup_t by name."""

    name: str
    state: str
    is_default: bool
    gauge: str
    action: str
    parameters: Dict[str, str]
    dims: Tuple[int, ...]
    slots: int
    slots_busy: int
    everything: Dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, s: Any) -> Setup:
        d = plain(s)
        return cls(d['name'], state_name(d['state']), d['is_default'], d['gauge'], d['action'], pairs(d['parameters']), tuple(d['dims']),
                   d['slots'], d['slots_busy'], d)

    def is_of(self, report: Report) -> bool:
        """Whether it still has the configuration and the operator that a report of it tells."""
        return (self.action, self.parameters) == (report.setup['action'], report.setup['parameters']) and all(
            self.everything[name] == report.setup[name] for name in ('gauge', 'digest', 'boundary', 'kappa'))

    def check(self) -> None:
        """Raises why the setup has failed, if it has."""
        if self.state == 'failed':
            raise errors.make(self.everything['code'], 'setup "%s": %s' % (self.name, self.everything['text']))

    def _repr_html_(self) -> str:
        rows = [('state', self.state), ('configuration', self.gauge), ('lattice', 'x'.join(map(str, self.dims))),
                ('action', '%s %s' % (self.action, ' '.join('%s=%s' % pair for pair in self.parameters.items()))),
                ('slots', '%d of %d busy' % (self.slots_busy, self.slots))]
        return notebook.table('setup ' + self.name, rows)
