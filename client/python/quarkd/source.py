"""Sources that the daemon makes: point, wall, Z2 and Z4 noise, and sequential ones through a propagator that it keeps.

Coordinates are global: x, y, z, t. Momenta are integers n of a factor exp(i 2 pi n x / L), which is there before smearing.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import gamma as gammas
from ._quark import lib
from .smearing import Gauss, Links, gauss

if TYPE_CHECKING:
    from .propagator import Propagator

Momentum = Tuple[int, int, int]
Column = Dict[str, int]  # members of a quark_column_t
KINDS = {'point': lib.QUARK_POINT, 'wall': lib.QUARK_WALL, 'z2': lib.QUARK_Z2, 'z4': lib.QUARK_Z4, 'sequential': lib.QUARK_SEQUENTIAL,
         'vector': lib.QUARK_VECTOR}
DILUTIONS = ('spin', 'colour', 'time', 'flavour')
MOST_COLUMNS = 1 << 24
MOST_VECTORS = 4096


@dataclass(frozen=True)
class Source:
    """One source with all its columns; made by `point`, `wall`, `z2`, `z4`, `sequential`, or from quarkctl's text by `parse`."""

    kind: str
    place: Tuple[Tuple[str, int], ...] = ()  # members of a quark_column_t that all columns have in common
    count: int = 1                           # noise: seeds
    dilute: Tuple[str, ...] = ()
    through: Optional[Propagator] = None     # sequential
    smearing: Optional[Gauss] = None
    vectors: str = ''                        # vector: the name, and which of them
    numbers: Tuple[int, ...] = ()
    shift: int = 0                           # directions of `shifted`: bits 1, 2, 4 for x, y, z

    def smeared(self, smearing: Optional[Gauss] = None, *, width: Optional[float] = None, alpha: Optional[float] = None,
                steps: Optional[int] = None, links: Optional[Links] = None) -> Source:
        """The same source with Gaussian smearing.

        >>> str(point(0, 0, 0, 0).smeared(alpha=0.25, steps=10).smearing)
        'gauss:0.25,10'
        """
        if smearing is None:
            if steps is None:
                raise ValueError('smeared: steps is missing')
            smearing = gauss(width=width, alpha=alpha, steps=steps, links=links)
        return replace(self, smearing=smearing)

    def shifted(self, directions: str) -> Source:
        """The same source of staggered fermions, moved by one site to both sides, with links, and halved, in each of these directions: mesons of
        other tastes need it (docs/physics.md). Then it is smeared; links are those of the smearing. Errors: ValueError.

        >>> point(0, 0, 0, 0).shifted('xz').shift
        5
        """
        if len(set(directions)) != len(directions) or not set(directions) <= set('xyz'):
            raise ValueError('shifted "%.20s": must be some of x, y and z, each once' % directions)
        return replace(self, shift=sum(1 << 'xyz'.index(mu) for mu in directions))

    @property
    def is_noise(self) -> bool:
        return self.kind in ('z2', 'z4')

    def __getitem__(self, member: str) -> int:
        return dict(self.place).get(member, 0)

    def __str__(self) -> str:
        """As quarkctl --source takes it."""
        p = dict(self.place)
        momentum = '%d:%d:%d' % tuple(p.get(k, 0) for k in ('px', 'py', 'pz'))
        end = ',flavour=%+d' % p['flavour'] if p.get('flavour') else ''
        if momentum != '0:0:0':
            end = ',p=' + momentum + end
        if self.kind == 'point':
            return 'point:%d,%d,%d,%d%s' % (p['x'], p['y'], p['z'], p['t'], end)
        if self.kind == 'wall':
            return 'wall:%d%s' % (p['t'], end)
        if self.kind == 'vector':
            return 'vector:%s' % self.vectors
        if self.kind == 'sequential':
            return str(self.through.source) if self.through else 'sequential'
        text = '%s:%d' % (self.kind, p['seed'])
        if p['t'] >= 0 and 'time' not in self.dilute:
            text += ':%d' % p['t']
        for key, value in (('count', self.count if self.count != 1 else 0), ('every', p.get('t_every', 0)), ('dilute', '+'.join(self.dilute))):
            text += ',%s=%s' % (key, value) if value else ''
        return text + end

    def columns(self, dims: Sequence[int], flavours: int = 1, spins: int = 4) -> List[Column]:
        """The right-hand sides on a lattice of x, y, z, t sites, in quarkctl's order. spins: 1 where fields have colour alone.

        Errors: ValueError for what is outside of it.
        """
        place = dict(self.place)
        self._check(place, dims, flavours, spins)
        if self.kind == 'vector':
            return [dict(place, vector=n) for n in self.numbers]
        if self.kind == 'sequential':
            assert self.through is not None
            return [dict(place, request=self.through.request.number, rhs=self.through.first + i) for i in range(len(self.through))]
        if self.is_noise:
            return list(self._noise(place, dims[3]))
        both = flavours > 1 and not place.get('flavour')
        return [dict(place, spin=spin, colour=colour, **({'flavour': flavour} if both else {}))
                for flavour in ((1, -1) if both else (0,)) for spin in range(spins) for colour in range(3)]

    def _check(self, place: Column, dims: Sequence[int], flavours: int, spins: int) -> None:
        for mu, name in enumerate('xyzt'):
            if place.get(name, 0) >= dims[mu]:
                raise ValueError('%s = %d is outside the lattice, which has %d' % (name, place[name], dims[mu]))
        for j, name in enumerate(('px', 'py', 'pz')):
            if abs(place.get(name, 0)) >= dims[j]:
                raise ValueError('momentum %s = %d, must be within +-%d' % (name, place[name], dims[j] - 1))
        if place.get('t_every', 0) > dims[3]:
            raise ValueError('every = %d, must be 1 to the %d time slices' % (place['t_every'], dims[3]))
        if (place.get('flavour') or 'flavour' in self.dilute) and flavours < 2:
            raise ValueError('flavour is for right-hand sides of two flavours (doublets); here they have one')
        if 'spin' in self.dilute and spins < 2:
            raise ValueError('dilute = spin is for right-hand sides with spins; here they have colour alone')

    def _noise(self, place: Column, nt: int) -> Iterator[Column]:
        by = {word: word in self.dilute for word in DILUTIONS}
        slices = (place.get('t_every') or nt) if by['time'] else 1
        total = self.count * slices * (2 if by['flavour'] else 1) * (4 if by['spin'] else 1) * (3 if by['colour'] else 1)
        if total > MOST_COLUMNS:
            raise ValueError('%d columns, must be at most %d' % (total, MOST_COLUMNS))
        for seed in range(self.count):
            for t in range(slices):
                for flavour in (1, -1) if by['flavour'] else (None,):
                    for spin in range(4) if by['spin'] else (-1,):
                        for colour in range(3) if by['colour'] else (-1,):
                            column = dict(place, seed=place['seed'] + seed, spin=spin, colour=colour)
                            if by['time']:
                                column['t'] = t
                            if flavour:
                                column['flavour'] = flavour
                            yield column


def _place(members: Column, flavour: Optional[int] = None, momentum: Momentum = (0, 0, 0)) -> Tuple[Tuple[str, int], ...]:
    if flavour not in (None, 1, -1):
        raise ValueError('flavour = %r: must be 1 or -1' % (flavour,))
    if len(momentum) != 3:
        raise ValueError('momentum %r: must be three integers' % (momentum,))
    place = dict(members, **dict(zip(('px', 'py', 'pz'), map(int, momentum))))
    if flavour:
        place['flavour'] = flavour
    return tuple((key, int(value)) for key, value in place.items())


def _coordinate(name: str, value: int) -> int:
    if not 0 <= value < 1 << 16:
        raise ValueError('%s = %d: must be 0 or more' % (name, value))
    return value


def point(x: int, y: int, z: int, t: int, *, flavour: Optional[int] = None) -> Source:
    """12 columns, one for each spin and colour at a site; of staggered fermions 3. flavour: of a doublet, the 12 of one flavour; else 24.

    >>> str(point(0, 1, 2, 3)), len(point(0, 1, 2, 3).columns((4, 4, 4, 8)))
    ('point:0,1,2,3', 12)
    """
    where = {name: _coordinate(name, value) for name, value in zip('xyzt', (x, y, z, t))}
    return Source('point', _place(where, flavour))


def wall(t: int, momentum: Momentum = (0, 0, 0), *, flavour: Optional[int] = None) -> Source:
    """12 columns, one for each spin and colour on a time slice.

    >>> str(wall(4, (0, 0, 1)))
    'wall:4,p=0:0:1'
    """
    return Source('wall', _place({'t': _coordinate('t', t)}, flavour, momentum))


def _make_noise(kind: str, seed: int, t: Optional[int], count: int, every: Optional[int], dilute: Union[str, Sequence[str]],
                momentum: Momentum, flavour: Optional[int]) -> Source:
    words = tuple(dilute.split('+')) if isinstance(dilute, str) and dilute else tuple(dilute)
    if len(set(words)) != len(words) or set(words) - set(DILUTIONS):
        raise ValueError('dilute = %s: must be %s, each once' % ('+'.join(words), ', '.join(DILUTIONS)))
    if 'time' in words and t is not None:
        raise ValueError('dilute = time already selects the time slices: leave out t')
    if 'flavour' in words and flavour is not None:
        raise ValueError('dilute = flavour already selects the flavours: leave out flavour')
    if not 1 <= count <= 1 << 20 or not 0 <= seed < 1 << 64 or (every is not None and every < 1):
        raise ValueError('seed %d, count %d, every %s: must be 0 to 2^64 - 1, 1 to 2^20, and positive' % (seed, count, every))
    where = -1 if t is None and not every else _coordinate('t', t or 0)
    place = {'seed': seed, 't': where, 'spin': -1, 'colour': -1, **({'t_every': every} if every else {})}
    return Source(kind, _place(place, flavour, momentum), count, words)


def z2(seed: int, t: Optional[int] = None, *, count: int = 1, every: Optional[int] = None, dilute: Union[str, Sequence[str]] = (),
       momentum: Momentum = (0, 0, 0), flavour: Optional[int] = None) -> Source:
    """Z2 noise of the seeds seed .. seed + count - 1 on slice t, on t, t + every, ..., or on all; docs/physics.md has its numbers.

    dilute: of "spin", "colour", "time", "flavour", a column for each component.

    >>> str(z2(7, 0, dilute='spin+colour')), len(z2(7, 0, dilute='spin+colour').columns((4, 4, 4, 8)))
    ('z2:7:0,dilute=spin+colour', 12)
    """
    return _make_noise('z2', seed, t, count, every, dilute, momentum, flavour)


def z4(seed: int, t: Optional[int] = None, *, count: int = 1, every: Optional[int] = None, dilute: Union[str, Sequence[str]] = (),
       momentum: Momentum = (0, 0, 0), flavour: Optional[int] = None) -> Source:
    """Z4 noise, as `z2`."""
    return _make_noise('z4', seed, t, count, every, dilute, momentum, flavour)


def sequential(through: Propagator, gamma: gammas.Gamma = 'g5', t: Optional[int] = None, momentum: Momentum = (0, 0, 0)) -> Source:
    """gamma exp(ipx) times each column of a propagator that the daemon keeps, on slice t or, None, on all."""
    where = -1 if t is None else _coordinate('t', t)
    return Source('sequential', _place({'t': where, 'gamma': gammas.number(gamma)}, None, momentum), through=through)


def vector(name: str, numbers: Sequence[int], *, t: int = 0, spin: int = 0, slice: int = 0) -> Source:
    """Eigenvectors that the daemon keeps (`Connection.eigen`), a column each. t, spin: of the Laplacian, the time slice (-1: each) and the spin; slice: of an
    action with a fifth dimension.

    >>> str(vector('low', [0, 1])), vector('low', [0, 1]).columns((4, 4, 4, 8))[1]['vector']
    ('vector:low', 1)
    """
    if not all(0 <= n < MOST_VECTORS for n in numbers) or t < -1 or not 0 <= spin < 4 or slice < 0:
        raise ValueError('numbers, t = %d, spin = %d, slice = %d: must be 0 to %d, -1 or more, 0 to 3, and 0 or more' % (t, spin, slice, MOST_VECTORS - 1))
    return Source('vector', _place({'t': t, 'spin': spin, 'slice': slice}), vectors=name, numbers=tuple(int(n) for n in numbers))


def _momentum(text: str) -> Momentum:
    x, y, z = (int(n) for n in text.split(':'))
    return x, y, z


def parse(text: str) -> Source:
    """quarkctl's text of a source. Errors: ValueError.

    >>> [str(parse(s)) for s in ('point:0,0,0,0', 'wall:t=3,p=1:0:0', 'z4:seed=5,every=2,dilute=time')]
    ['point:0,0,0,0', 'wall:3,p=1:0:0', 'z4:5,every=2,dilute=time']
    """
    try:
        kind, _, rest = text.partition(':')
        plain: List[str] = []
        keys: Dict[str, str] = {}
        for word in rest.split(','):
            key, equals, value = word.partition('=')
            if equals and key not in keys:
                keys[key] = value
            else:
                plain.append(word)
        flavour = int(keys.pop('flavour')) if 'flavour' in keys else None
        momentum = _momentum(keys.pop('p', '0:0:0'))
        if kind == 'point' and len(plain) == 4 and momentum == (0, 0, 0) and not keys:
            x, y, z, t = (int(word) for word in plain)
            return point(x, y, z, t, flavour=flavour)
        if kind == 'wall' and len(plain) + len(keys) == 1:
            return wall(int(keys.pop('t') if keys else plain[0]), momentum, flavour=flavour)
        if kind in ('z2', 'z4') and len(plain) <= 1:
            first = re.fullmatch(r'(\d+)(?::(\d+))?', plain[0]) if plain else None
            if plain and (not first or 'seed' in keys):
                raise ValueError
            if first:
                keys['seed'] = first[1]
                if first[2]:
                    keys['t'] = first[2]
            numbers = {key: int(keys.pop(key)) for key in ('seed', 't', 'count', 'every') if key in keys}
            dilute = keys.pop('dilute', '')
            if not keys:
                return _make_noise(kind, numbers['seed'], numbers.get('t'), numbers.get('count', 1), numbers.get('every'), dilute,
                                   momentum, flavour)
    except (KeyError, ValueError) as e:
        raise ValueError('source "%s": %s' % (text, e if isinstance(e, ValueError) and str(e) else 'a number or a key is wrong')) from None
    raise ValueError('source "%s": must be point:X,Y,Z,T, wall:T[,p=PX:PY:PZ], z2:SEED[:T] or z4:SEED[:T] with [,count=N][,every=N]'
                     '[,dilute=spin+colour+time+flavour][,p=PX:PY:PZ], each with [,flavour=+1|-1]' % text)
