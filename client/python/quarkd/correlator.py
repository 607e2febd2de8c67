"""Correlators by channel, with what they were made of."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from . import contract, notebook


class Correlator:
    """One channel.

    values   complex [momentum, t], t from the source
    momenta  the integers n of 2 pi n / L, in the order of values
    """

    def __init__(self, name: str, values: NDArray[np.complex128], momenta: Tuple[Tuple[int, ...], ...], symmetric: bool) -> None:
        self.name, self.values, self.momenta, self.symmetric = name, values, momenta, symmetric

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
        """Effective masses [momentum, t] of the real part; form: "cosh", the default of mesons by name, or "log" (contract.meff)."""
        return contract.meff(self.values.real, form or ('cosh' if self.symmetric else 'log'))

    def __repr__(self) -> str:
        return 'Correlator(%r, %d momenta, T = %d)' % (self.name, len(self.momenta), self.values.shape[-1])

    def _repr_html_(self) -> str:
        masses = self.meff()[0]
        rows = [(str(t), '%.8g' % c.real, '-' if m != m else '%.6f' % m) for t, (c, m) in enumerate(zip(self.values[0], masses))]
        return notebook.table('%s, momentum %s' % (self.name, self.momenta[0]), rows, ('t', 'Re C(t)', 'effective mass')) + notebook.curve(masses)


class Correlators(Mapping[str, Correlator]):
    """Channels of one propagator by name: c['pion']. about: what files of correlators say of them (client/README.md)."""

    def __init__(self, channels: Dict[str, Correlator], about: Dict[str, Any]) -> None:
        self._channels, self.about = channels, about

    def __getitem__(self, name: str) -> Correlator:
        return self._channels[name]

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
