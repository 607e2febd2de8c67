"""Smearings of sources and sinks, and of the links in them, by quarkctl's names."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional, Tuple

from ._quark import lib

KINDS = {'ape': (lib.QUARK_APE, 1.0), 'stout': (lib.QUARK_STOUT, 0.25), 'hyp': (lib.QUARK_HYP, 1.0)}
MOST_ALPHA, LEAST, MOST_STEPS, MOST_LINK_STEPS = 10.0, 1e-6, 1000, 100


def real(x: float) -> str:
    """The shortest text of a number that reads as the same: '0.25', '20'."""
    return repr(float(x)).removesuffix('.0')


@dataclass(frozen=True)
class Links:
    """Smeared links: made by `ape`, `stout` and `hyp`."""

    kind: str
    parameters: Tuple[float, ...]
    steps: int
    everywhere: bool = False  # time-like links and staples as well

    def __post_init__(self) -> None:
        for i, p in enumerate(self.parameters):
            if not 0 <= p <= KINDS[self.kind][1]:
                raise ValueError('%s: parameter %d is %g, must be 0 to %g' % (self.kind, i + 1, p, KINDS[self.kind][1]))
        if not 1 <= self.steps <= MOST_LINK_STEPS:
            raise ValueError('%s: %d steps, must be 1 to %d' % (self.kind, self.steps, MOST_LINK_STEPS))

    def __str__(self) -> str:
        numbers = [real(p) for p in self.parameters] + [str(self.steps)]
        return '%s:%s%s' % (self.kind, ','.join(numbers), ',4d' if self.everywhere else '')

    def fill(self, out: Any) -> None:
        """Into a quark_smearing_t."""
        out.links = KINDS[self.kind][0]
        out.link_param[0:len(self.parameters)] = list(self.parameters)
        out.link_steps, out.link_all = self.steps, self.everywhere


def ape(alpha: float, steps: int, everywhere: bool = False) -> Links:
    """APE smearing of spatial links with spatial staples; everywhere: of all, with all.

    >>> str(ape(0.6, 20))
    'ape:0.6,20'
    """
    return Links('ape', (alpha,), steps, everywhere)


def stout(rho: float, steps: int, everywhere: bool = False) -> Links:
    """Stout smearing, as `ape`.

    >>> stout(0.3, 1)
    Traceback (most recent call last):
        ...
    ValueError: stout: parameter 1 is 0.3, must be 0 to 0.25
    """
    return Links('stout', (rho,), steps, everywhere)


def hyp(alpha1: float, alpha2: float, alpha3: float, steps: int = 1) -> Links:
    """HYP smearing."""
    return Links('hyp', (alpha1, alpha2, alpha3), steps)


@dataclass(frozen=True)
class Gauss:
    """Gaussian smearing in space: `steps` times psi <- (psi + alpha sum of the 6 neighbours) / (1 + 6 alpha), with these links."""

    alpha: float
    steps: int
    links: Optional[Links] = None

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= MOST_STEPS:
            raise ValueError('gauss: %d steps, must be 1 to %d' % (self.steps, MOST_STEPS))
        if not (math.isfinite(self.alpha) and abs(self.alpha) <= MOST_ALPHA and abs(1 + 6 * self.alpha) >= LEAST):
            raise ValueError('gauss: alpha = %g, must be from -%g to %g but not -1/6' % (self.alpha, MOST_ALPHA, MOST_ALPHA))

    def __str__(self) -> str:
        return 'gauss:%s,%d' % (real(self.alpha), self.steps)

    def fill(self, out: Any) -> None:
        """Into a quark_smearing_t."""
        out.alpha, out.steps = self.alpha, self.steps
        if self.links:
            self.links.fill(out)


def gauss(*, steps: int, alpha: Optional[float] = None, width: Optional[float] = None, links: Optional[Links] = None) -> Gauss:
    """Gaussian smearing by alpha, or by Chroma's width W: (1 + W^2/(4 steps) Laplacian)^steps.

    >>> str(gauss(alpha=0.25, steps=10)), str(gauss(width=2, steps=20))
    ('gauss:0.25,10', 'gauss:0.07142857142857144,20')
    >>> gauss(width=-1, steps=20)
    Traceback (most recent call last):
        ...
    ValueError: gauss: width -1: must be above 0
    >>> gauss(width=2, steps=6)
    Traceback (most recent call last):
        ...
    ValueError: gauss: steps 6: width 2 has no alpha near 6.00 steps
    """
    if (alpha is None) == (width is None):
        raise ValueError('gauss: one of alpha and width')
    if width is not None:
        a = width * width / (4 * steps)
        if not width > 0:
            raise ValueError('gauss: width %r: must be above 0' % width)
        if abs(1 - 6 * a) < LEAST:
            raise ValueError('gauss: steps %d: width %g has no alpha near %.2f steps' % (steps, width, 1.5 * width * width))
        alpha = a / (1 - 6 * a)
    assert alpha is not None
    return Gauss(alpha, steps, links)
