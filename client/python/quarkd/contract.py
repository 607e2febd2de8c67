"""Hadron correlators: channels by quarkctl's names, contractions of propagators that are arrays, and what is made of correlators.

A propagator is an array [t, z, y, x, spin, spin0, colour, colour0], complex, DeGrand-Rossi, as `Propagator.numpy` gives it.
Formulas: docs/physics.md, Contractions. Times count from the source, momenta are integers n of 2 pi n / L.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import gamma as gammas
from ._quark import lib

Complex = NDArray[np.complex128]
Raw = Tuple[int, int, int]  # kind, sink, source of a quark_channel_t
ORIGIN = (0, 0, 0, 0)
REST = ((0, 0, 0),)

MESONS: Dict[str, Tuple[int, ...]] = {'pion': (15,), 'a4': (7,), 'a0': (0,), 'rho': (1, 2, 4), 'rho_t': (9, 10, 12), 'a1': (14, 13, 11),
                                      'b1': (3, 5, 6)}
# Pions of staggered quarks by their taste: the spin, and a taste for each polarisation.
TASTES: Dict[str, Tuple[int, Tuple[int, ...]]] = {'pioni5': (15, (14, 13, 11)), 'pionij': (7, (6, 5, 3)), 'pioni0': (15, (9, 10, 12)),
                                                  'pioni': (7, (1, 2, 4)), 'pion0': (15, (8,)), 'pions': (7, (0,))}
BARYONS = {'nucleon': (lib.QUARK_NUCLEON, 1), 'nucleon_minus': (lib.QUARK_NUCLEON, -1), 'delta': (lib.QUARK_DELTA, 1)}
CORNER = 'nucleon_corner'  # of fields with colour alone
NUMBERS = {lib.QUARK_MESON: 1, lib.QUARK_NUCLEON: 16, lib.QUARK_DELTA: 144, lib.QUARK_CORNER: 1}
EPSILON = np.array([[[(i - j) * (j - k) * (k - i) / 2 for k in range(3)] for j in range(3)] for i in range(3)])
C = gammas.DIRECTIONS[3] @ gammas.DIRECTIONS[1]


# ---- channels by name ----

@dataclass(frozen=True)
class Channel:
    """One channel: sign times the mean of mesons, or a baryon of that parity. symmetric: C(T - t) = C(t), so that a cosh describes it."""

    name: str
    kind: int
    sign: int
    raw: Tuple[Raw, ...]

    @property
    def symmetric(self) -> bool:
        return self.name in MESONS or self.name in TASTES

    def form(self, colour: bool) -> str:
        """That of effective masses by `meff`. colour: of fields with colour alone, in which all but the pion have a partner that alternates in t."""
        if not self.symmetric:
            return 'log'
        return 'smooth' if colour and self.name != 'pion' else 'cosh'

    @property
    def shifts(self) -> List[int]:
        """Of mesons of fields with colour alone: the directions in which sources and sinks are shifted, bits 1, 2, 4, 8 for x, y, z, t."""
        return [shift_of(raw) for raw in self.raw]

    @property
    def is_of_walls(self) -> bool:
        """Of fields with colour alone: whether a wall makes it: of mesons the pion and gt-gt, whose sign is the same on a whole time slice."""
        return self.kind != lib.QUARK_MESON or all(raw[1] == raw[2] and raw[1] in (8, 15) for raw in self.raw)


def shift_of(raw: Raw) -> int:
    kind, sink, source = raw
    return sink ^ source if kind == lib.QUARK_MESON else 0


def _meson_sign(n: int) -> int:
    """-s of gt G^+ gt = s G."""
    k, space = bin(n).count('1'), bin(n & 7).count('1')
    return 1 if (k * (k - 1) // 2 + space) % 2 else -1


def _channel(word: str) -> Optional[Channel]:
    if word in MESONS:
        return Channel(word, lib.QUARK_MESON, _meson_sign(MESONS[word][0]), tuple((lib.QUARK_MESON, n, n) for n in MESONS[word]))
    if word in TASTES:
        spin, tastes = TASTES[word]
        return Channel(word, lib.QUARK_MESON, 1 if spin == 15 else -1, tuple((lib.QUARK_MESON, spin, n) for n in tastes))
    if word in BARYONS:
        kind, parity = BARYONS[word]
        return Channel(word, kind, parity, ((kind, 0, 0),))
    if word == CORNER:
        return Channel(word, lib.QUARK_CORNER, 1, ((lib.QUARK_CORNER, 0, 0),))
    sink, dash, source = word.partition('-')
    try:
        a, b = gammas.number(sink), gammas.number(source)
    except ValueError:
        return None
    return Channel(gammas.name(a) + '-' + gammas.name(b), lib.QUARK_MESON, 1, ((lib.QUARK_MESON, a, b),)) if dash else None


def channels(names: Union[str, Sequence[str]]) -> List[Channel]:
    """Channels by quarkctl's names: pion, a4, a0, rho, rho_t, a1, b1, nucleon, nucleon_minus, delta; all of these: "all"; of
    fields with colour alone nucleon_corner, and pions by their taste, pioni5, pionij, pioni0, pioni, pion0, pions, with pion and a4: "tastes";
    two gamma matrices as "g5-gxgt" or "15-9"; all 256 of them: "pairs". Repeated names count once. Errors: ValueError.

    >>> [c.name for c in channels('pion, rho 15-9')]
    ['pion', 'rho', 'g5-gxgt']
    """
    words = names.replace(',', ' ').split() if isinstance(names, str) else list(names)
    found: Dict[str, Channel] = {}
    for word in words:
        more = [word]
        if word == 'all':
            more = [*MESONS, *BARYONS]
        elif word == 'tastes':
            more = ['pion', 'a4', *TASTES]
        elif word == 'pairs':
            more = ['%d-%d' % (a, b) for a in range(16) for b in range(16)]
        for name in more:
            channel = _channel(name)
            if not channel:
                raise ValueError('channel "%.40s": must be pion, a4, a0, rho, rho_t, a1, b1, nucleon, nucleon_minus, delta, nucleon_corner, '
                                 'pioni5, pionij, pioni0, pioni, pion0, pions, tastes, all, pairs, or two gamma matrices such as g5-gxgt or 15-9' % name)
            found.setdefault(channel.name, channel)
    if not found:
        raise ValueError('no channel is named')
    return list(found.values())


def raw_of(wanted: Sequence[Channel]) -> List[Raw]:
    """The different contractions that channels are made of."""
    return list(dict.fromkeys(raw for channel in wanted for raw in channel.raw))


# ---- contractions of arrays ----

def _by_momentum(density: Callable[[int], NDArray[Any]], shape: Tuple[int, ...], momenta: Sequence[Sequence[int]],
                 origin: Sequence[int]) -> NDArray[Any]:
    """sum_x e^{-ip(x-x0)} density(t)[z y x, ...], as [momentum, t - t0, ...]; a slice at a time is in memory."""
    nt, nz, ny, nx = shape
    z, y, x = np.indices((nz, ny, nx))
    phases = np.array([np.exp(-2j * np.pi * (p[0] * (x - origin[0]) / nx + p[1] * (y - origin[1]) / ny + p[2] * (z - origin[2]) / nz)).ravel()
                       for p in momenta])
    slices = [np.tensordot(phases, density((origin[3] + t) % nt), 1) for t in range(nt)]
    return np.moveaxis(np.array(slices), 0, 1)


def _einsum(axes: str, *arrays: Any) -> Complex:
    out: Complex = np.einsum(axes, *arrays, optimize=True)
    return out


def _slice(s: NDArray[Any], t: int) -> Complex:
    flat: Complex = s[t].reshape((-1,) + s.shape[4:]).astype(complex, copy=False)
    return flat


def _check(s: NDArray[Any]) -> None:
    if s.ndim != 8 or s.shape[4:] != (4, 4, 3, 3):
        raise ValueError('a propagator of shape %s: must be [t, z, y, x, 4, 4, 3, 3]' % (s.shape,))


def meson(a: NDArray[Any], b: Optional[NDArray[Any]] = None, sink: gammas.Gamma = 'g5', source: gammas.Gamma = 'g5',
          momenta: Sequence[Sequence[int]] = REST, origin: Sequence[int] = ORIGIN) -> Complex:
    """sum_x e^{-ip(x-x0)} tr[g5 S_b^+ g5 G_sink S_a G_source], as [momentum, t]. b: the propagator that becomes the antiquark; None: a."""
    other = a if b is None else b
    _check(a)
    _check(other)
    g5, left, right = gammas.matrix(15), gammas.matrix(sink), gammas.matrix(source)

    def density(t: int) -> Complex:
        quark = _einsum('ij,njkab,kl->nilab', left, _slice(a, t), right)
        anti = _einsum('ij,njkab,kl->nilab', g5, _slice(other, t), g5)
        return _einsum('nijab,nijab->n', anti.conj(), quark)
    return _by_momentum(density, a.shape[:4], momenta, origin)


def boundary_factor(nt: int, t0: int, phase: complex = -1) -> Complex:
    """What a baryon takes on its way around the lattice: 1, and phase^3 from t = nt - t0 on, with phase that of the boundary in t.

    >>> boundary_factor(4, 1).real
    array([ 1.,  1.,  1., -1.])
    """
    return np.where(np.arange(nt) < nt - t0, 1, complex(phase) ** 3)


def _colours(first: Complex, second: Complex) -> Complex:
    """R_cc'^{pq} = eps_abc eps_a'b'c' first_aa'^{mp} second_bb'^{mq}, as [n, p, q, c, c']."""
    half = _einsum('def,nmpbcd->nmpbcef', EPSILON, _einsum('abc,nmpad->nmpbcd', EPSILON, first))
    return _einsum('nmpbcef,nmqbe->npqcf', half, second)


def nucleon(a: NDArray[Any], b: Optional[NDArray[Any]] = None, momenta: Sequence[Sequence[int]] = REST, origin: Sequence[int] = ORIGIN,
            phase: complex = -1) -> Complex:
    """The 4 x 4 matrix <N Nbar> of N = eps (a^T C g5 b) a, as [momentum, t, spin, spin']. b None: a. phase: of the boundary in t."""
    other = a if b is None else b
    _check(a)
    _check(other)
    cg5 = C @ gammas.matrix(15)

    def density(t: int) -> Complex:
        u, d = _slice(a, t), _slice(other, t)
        r = _colours(u, _einsum('mk,nkqab->nmqab', cg5, d))
        straight = _einsum('pq,npqcf,nstcf->nst', cg5, r, u)
        return straight + _einsum('pq,ntqcf,nspcf->nst', cg5, r, u)
    factor = boundary_factor(a.shape[0], origin[3], phase).reshape(-1, 1, 1)
    out: Complex = _by_momentum(density, a.shape[:4], momenta, origin) * factor
    return out


def delta(a: NDArray[Any], momenta: Sequence[Sequence[int]] = REST, origin: Sequence[int] = ORIGIN, phase: complex = -1) -> Complex:
    """<D_i Dbar_j> of D_i = eps (a^T C g_i a) a, as [momentum, t, i, j, spin, spin'] with i, j of x, y, z."""
    _check(a)
    sign = (1, -1, 1)

    def density(t: int) -> Complex:
        u = _slice(a, t)
        out = np.empty((len(u), 3, 3, 4, 4), complex)
        for i in range(3):
            r = _colours(u, _einsum('mk,nkqab->nmqab', C @ gammas.DIRECTIONS[i], u))
            for j in range(3):
                g = C @ gammas.DIRECTIONS[j]
                straight = _einsum('pq,npqcf,nstcf->nst', g, r, u)
                crossed = _einsum('pq,ntqcf,nspcf->nst', g, r, u)
                out[:, i, j] = -2 * sign[j] * (straight + 2 * crossed)
        return out
    factor = boundary_factor(a.shape[0], origin[3], phase).reshape(-1, 1, 1, 1, 1)
    out: Complex = _by_momentum(density, a.shape[:4], momenta, origin) * factor
    return out


def correlators(a: NDArray[Any], names: Union[str, Sequence[str]] = 'pion', momenta: Sequence[Sequence[int]] = REST,
                origin: Sequence[int] = ORIGIN, phase: complex = -1) -> Dict[str, Complex]:
    """Channels by name of one propagator, each [momentum, t]: what `Propagator.correlator` gives, computed here."""
    wanted = channels(names)
    parts = []
    for kind, sink, source in raw_of(wanted):
        if kind == lib.QUARK_MESON:
            parts.append(meson(a, a, sink, source, momenta, origin))
        else:
            parts.append(nucleon(a, a, momenta, origin, phase) if kind == lib.QUARK_NUCLEON else delta(a, momenta, origin, phase))
    raw = np.concatenate([part.ravel() for part in parts])
    return evaluate(wanted, raw, len(momenta), a.shape[0], phase)


# ---- channels of raw correlators ----

def evaluate(wanted: Sequence[Channel], raw: Complex, nmom: int, nt: int, phase: complex) -> Dict[str, Complex]:
    """Channels [momentum, t] of raw correlators [raw channel][momentum][t][numbers], as the daemon gives them for `raw_of`."""
    at: Dict[Raw, Complex] = {}
    for key in raw_of(wanted):
        n = nmom * nt * NUMBERS[key[0]]
        at[key], raw = raw[:n].reshape(nmom, nt, -1), raw[n:]
    out: Dict[str, Complex] = {}
    for channel in wanted:
        if channel.kind == lib.QUARK_MESON:
            out[channel.name] = channel.sign * np.mean([at[key][:, :, 0] for key in channel.raw], axis=0)
        elif channel.kind == lib.QUARK_CORNER:
            out[channel.name] = at[channel.raw[0]][:, :, 0]
        else:
            out[channel.name] = _baryon(channel, at[channel.raw[0]], phase)
    return out


def _baryon(channel: Channel, g: Complex, phase: complex) -> Complex:
    nmom, nt = g.shape[:2]
    if channel.kind == lib.QUARK_DELTA:
        space = gammas.DIRECTIONS[:3]
        part = g.reshape(nmom, nt, 3, 3, 4, 4)  # [j, i] for P_ij = delta_ij - g_i g_j / 3
        spin = np.einsum('ptiiab->ptab', part) - np.einsum('iab,jbc,ptjicd->ptad', space, space, part, optimize=True) / 3
    else:
        spin = g.reshape(nmom, nt, 4, 4)
    plain, turned = np.einsum('ptaa->pt', spin), np.einsum('ab,ptba->pt', gammas.DIRECTIONS[3], spin)
    ahead, behind = (plain + channel.sign * turned) / 2, (plain - channel.sign * turned) / 2
    behind = np.roll(behind[:, ::-1], 1, axis=1)  # at T - t
    around = np.full(nt, np.conj(complex(phase) ** 3))
    around[0] = 1
    out: Complex = channel.sign * (ahead + behind * around) / 2
    return out


# ---- what is made of correlators ----

def _log_quotient(m: float, a: float, b: float) -> float:
    """log of cosh(m a) / cosh(m b), without overflow."""
    x, y = m * abs(a), m * abs(b)
    return float(x - y + np.log1p(np.exp(-2 * x)) - np.log1p(np.exp(-2 * y)))


def _cosh_mass(c0: float, c1: float, t: int, nt: int) -> float:
    a, b = t - nt / 2, t + 1 - nt / 2
    if not (c1 != 0 and c0 / c1 > 0 and np.isfinite(c0 / c1)):
        return float('nan')
    want = float(np.log(c0 / c1))
    if abs(a) < abs(b):
        a, b, want = b, a, -want
    if not want > 0 or abs(a) == abs(b):
        return float('nan')
    low, high = 0.0, (want + math.log(2)) / (abs(a) - abs(b))
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if _log_quotient(middle, a, b) < want else (low, middle)
    return (low + high) / 2


def meff(c: ArrayLike, form: str = 'cosh') -> NDArray[np.float64]:
    """Effective masses of real correlators [..., t], one for each t and t + 1 modulo T; NaN where there is none.

    "cosh": the m > 0 with C(t) / C(t+1) = cosh(m (t - T/2)) / cosh(m (t+1 - T/2)); "log": log C(t) / C(t+1); "smooth": "cosh" of
    (C(t-1) + 2 C(t) + C(t+1)) / 4, in which partners that alternate in t are small: for staggered fermions, but for the pion.

    >>> t = np.arange(8)
    >>> meff(np.cosh(0.5 * (t - 4)))[:3].round(12)
    array([0.5, 0.5, 0.5])
    >>> meff(np.cosh(0.5 * (t - 4)), 'smooth')[1:3].round(12)
    array([0.5, 0.5])
    """
    if form not in ('cosh', 'log', 'smooth'):
        raise ValueError('form "%s": must be cosh, log or smooth' % form)
    values: NDArray[np.float64] = np.asarray(np.real(c), float)
    if form == 'smooth':
        values = (np.roll(values, 1, axis=-1) + 2 * values + np.roll(values, -1, axis=-1)) / 4
    after = np.roll(values, -1, axis=-1)
    if form == 'log':
        with np.errstate(divide='ignore', invalid='ignore'):
            q = values / after
            masses: NDArray[np.float64] = np.log(np.where(q > 0, q, np.nan))
            return masses
    nt = values.shape[-1]
    out = np.empty(values.shape)
    for index in np.ndindex(values.shape):
        out[index] = _cosh_mass(float(values[index]), float(after[index]), index[-1], nt)
    return out


def jackknife(samples: ArrayLike, function: Callable[[NDArray[Any]], ArrayLike] = lambda mean: mean) -> Tuple[NDArray[Any], NDArray[Any]]:
    """(value, error) of a function of a mean: samples [n, ...], n >= 2; function: of an array [...].

    The value is that of the mean of all. The error is sqrt((n - 1) / n sum |f_i - mean f|^2) of the means that leave one out.

    >>> value, error = jackknife([1.0, 2.0, 3.0])
    >>> print(value, round(float(error), 6))
    2.0 0.57735
    """
    x = np.asarray(samples)
    n = len(x)
    if n < 2:
        raise ValueError('jackknife: %d samples, must be 2 at least' % n)
    total = x.sum(0)
    left = np.array([function((total - one) / (n - 1)) for one in x])
    spread = np.abs(left - left.mean(0)) ** 2
    return np.asarray(function(total / n)), np.sqrt((n - 1) / n * spread.sum(0))
