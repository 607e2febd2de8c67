"""Correlators by channel, with what they were made of."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from . import contract, notebook

Real = NDArray[np.float64]


class Correlator:
    """One channel.

    values   complex [momentum, t], t from the source
    momenta  the integers n of 2 pi n / L, in the order of values
    form     that of effective masses, if none is given
    """

    def __init__(self, name: str, values: NDArray[np.complex128], momenta: Tuple[Tuple[int, ...], ...], form: str) -> None:
        self.name, self.values, self.momenta, self.form = name, values, momenta, form

    def at(self, *momentum: int) -> NDArray[np.complex128]:
        """The correlator at a momentum, [t]. Errors: KeyError."""
        try:
            values: NDArray[np.complex128] = self.values[self.momenta.index(tuple(momentum))]
        except ValueError:
            raise KeyError('momentum %s: there are %s' % (momentum, list(self.momenta))) from None
        return values

    def __array__(self, dtype: Any = None) -> NDArray[Any]:
        return np.asarray(self.values, dtype)

    def meff(self, form: Optional[str] = None) -> NDArray[np.float64]:
        """Effective masses [momentum, t] of the real part (contract.meff). form: None is "cosh" of mesons by name, "smooth" of those of staggered
        fermions but the pion, and "log" of others."""
        return contract.meff(self.values.real, form or self.form)

    def __repr__(self) -> str:
        return 'Correlator(%r, %d momenta, T = %d)' % (self.name, len(self.momenta), self.values.shape[-1])

    def _repr_html_(self) -> str:
        masses = self.meff()[0]
        rows = [(str(t), '%.8g' % c.real, '-' if m != m else '%.6f' % m) for t, (c, m) in enumerate(zip(self.values[0], masses))]
        return notebook.table('%s, momentum %s' % (self.name, self.momenta[0]), rows, ('t', 'Re C(t)', 'effective mass')) + notebook.curve(masses)


class WallSums:
    """Sums over the sites of each time slice t of solves for domain wall fermions, by the daemon (docs/physics.md).

    quark     sum |q|^2
    midpoint  sum |mid|^2; None if Ls is odd
    axial     sum A_t, the conserved axial current; None if Ls is odd, or b, c are not real and the same on all slices
    t0        of the source; None: it has none
    """

    def __init__(self, quark: Real, midpoint: Optional[Real], axial: Optional[Real], t0: Optional[int] = None) -> None:
        self.quark, self.midpoint, self.axial, self.t0 = quark, midpoint, axial, t0

    @property
    def residual_mass(self) -> Real:
        """R(t) = sum |mid|^2 / sum |q|^2. Errors: ValueError without a mid-point."""
        if self.midpoint is None:
            raise ValueError('Ls is odd: there is no mid-point')
        return self.midpoint / self.quark

    def plateau(self) -> float:
        """The mean of R(t) over distances T/4 to 3T/4 from the source. Errors: ValueError."""
        if self.t0 is None:
            raise ValueError('the source is on no one time slice')
        t = len(self.quark)
        first = (t + 3) // 4
        return float(np.roll(self.residual_mass, -self.t0)[first:t - first + 1].mean())

    def __repr__(self) -> str:
        return 'WallSums(T = %d%s)' % (len(self.quark), '' if self.midpoint is None else ', R(T/2) = %.3e' % self.residual_mass[len(self.quark) // 2])


class Correlators(Mapping[str, Correlator]):
    """Channels of one propagator by name: c['pion']. about: what files of correlators say of them (client/README.md)."""

    def __init__(self, channels: Dict[str, Correlator], about: Dict[str, Any]) -> None:
        self._channels, self.about = channels, about

    def __getitem__(self, name: str) -> Correlator:
        try:
            return self._channels[name]
        except KeyError:
            raise KeyError('channel %r: there are %s' % (name, list(self))) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._channels)

    def __len__(self) -> int:
        return len(self._channels)

    def __repr__(self) -> str:
        return 'Correlators(%s)' % ', '.join(self)

    def _repr_html_(self) -> str:
        return ''.join(c._repr_html_() for c in self.values())

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each channel, momentum and time, and columns re, im."""
        import pandas
        rows = [(name, *p, t, c.real, c.imag) for name, channel in self.items()
                for p, values in zip(channel.momenta, channel.values) for t, c in enumerate(values)]
        return pandas.DataFrame(rows, columns=['channel', 'px', 'py', 'pz', 't', 're', 'im'])

    def to_hdf5(self, path: str) -> None:
        """A file as quarkctl correlator writes it (needs h5py); an older file of that name is replaced when it is complete."""
        from . import io
        io.write_correlators(path, self)
