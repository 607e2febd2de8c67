"""Correlators of many configurations or sources: means, errors, and what other programs of analysis take."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import contract

if TYPE_CHECKING:
    from .correlator import Correlators

Samples = NDArray[np.float64]


class Ensemble(Mapping[str, Samples]):
    """Real parts of correlators, by channel: [sample, momentum, t]. A sample is a configuration; several sources of one are averaged first.

    >>> from quarkd.correlator import Correlator, Correlators
    >>> one = lambda a: Correlators({'pion': Correlator('pion', a * np.ones((1, 4), complex), ((0, 0, 0),), 'cosh')}, {'config': 'cfg%d' % (a // 2)})
    >>> e = Ensemble([one(1), one(2), one(3)])
    >>> e.configurations, e['pion'][:, 0, 0]
    (['cfg0', 'cfg1'], array([1. , 2.5]))
    """

    def __init__(self, correlators: Sequence[Correlators]) -> None:
        if not correlators:
            raise ValueError('an ensemble of no correlators')
        self._form = {name: c.form for name, c in correlators[0].items()}
        self.momenta = next(iter(correlators[0].values())).momenta
        groups: Dict[Any, List[Correlators]] = {}
        for i, one in enumerate(correlators):
            if {name: c.values.shape for name, c in one.items()} != {name: c.values.shape for name, c in correlators[0].items()} or any(
                    c.momenta != self.momenta for c in one.values()):
                raise ValueError('correlators %d have other channels, momenta or times than the first: %s, %s' % (i, one, correlators[0]))
            groups.setdefault(one.about.get('config') or i, []).append(one)
        self.configurations = [str(name) for name in groups]
        self._samples: Dict[str, Samples] = {
            name: np.array([np.mean([one[name].values.real for one in group], axis=0) for group in groups.values()]) for name in correlators[0]}

    def __getitem__(self, name: str) -> Samples:
        return self._samples[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def __repr__(self) -> str:
        return 'Ensemble(%s, %d configurations)' % (', '.join(self), len(self.configurations))

    def jackknife(self, name: str, function: Callable[[NDArray[Any]], ArrayLike] = lambda mean: mean) -> Tuple[NDArray[Any], NDArray[Any]]:
        """(value, error) of a function of the mean [momentum, t] (contract.jackknife)."""
        return contract.jackknife(self[name], function)

    def meff(self, name: str, form: Optional[str] = None) -> Tuple[NDArray[Any], NDArray[Any]]:
        """(value, error) of effective masses [momentum, t]; form as in Correlator.meff."""
        chosen = form or self._form[name]
        return self.jackknife(name, lambda mean: contract.meff(mean, chosen))

    def to_gvar(self) -> Any:
        """Means and their covariance as gvar has them: arrays [momentum, t] by channel, correlated among all (needs gvar)."""
        gvar = _needed('gvar', 'to_gvar')
        return gvar.dataset.avg_data({name: samples for name, samples in self.items()})

    def to_pyerrors(self, ensemble: str, configurations: Optional[Sequence[int]] = None) -> Dict[str, List[Any]]:
        """A pyerrors.Corr for each channel and momentum (needs pyerrors).

        ensemble        its name, such as 'A654'
        configurations  their numbers in the Monte Carlo chain; None: 1, 2, ...
        """
        pyerrors = _needed('pyerrors', 'to_pyerrors')
        numbers = list(configurations) if configurations is not None else list(range(1, len(self.configurations) + 1))
        if len(numbers) != len(self.configurations) or any(b <= a for a, b in zip(numbers, numbers[1:])):
            raise ValueError('configurations: must be %d numbers that grow' % len(self.configurations))

        def corr(samples: Samples) -> Any:
            return pyerrors.Corr([pyerrors.Obs([samples[:, t]], [ensemble], idl=[numbers]) for t in range(samples.shape[1])])
        return {name: [corr(samples[:, p]) for p in range(samples.shape[1])] for name, samples in self.items()}


def _needed(name: str, what: str) -> Any:
    """A package that is imported when it is asked for."""
    import importlib
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError('%s needs the package %s, which is not installed' % (what, name)) from None
