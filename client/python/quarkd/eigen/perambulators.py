"""Distillation: solutions that the daemon projects onto eigenvectors of time slices, as calls of a connection."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import source as sources
from ..handle import Handle
from ..request import Progress, Request
from ..status import Report
from ..terms import Name

BATCH = 256     # right-hand sides of a request
IN_FLIGHT = 2   # requests


class _Total:
    """Progress of many requests as that of one."""

    def __init__(self, call: Optional[Callable[[Progress], object]], total: int) -> None:
        self._call, self._total, self.ended = call, total, 0

    def __call__(self, request: Request) -> None:
        if self._call:
            p = request.progress
            self._call(Progress(self.ended + len(request.results), self._total, p.residual, p.iterations))


class Perambulators:
    """The part of Connection about distillation (docs/physics.md)."""

    _handle: Handle
    patience: float
    ready: Callable[..., Report]
    _announce: Callable[..., Tuple[Request, List[sources.Column]]]

    def project(self, source: Union[sources.Source, str], name: str, count: int, part: str = 'solve', *, dtype: DTypeLike = 'complex128',
                setup: Name = None, patience: Optional[float] = None, **terms: Any) -> NDArray[Any]:
        """Solves for all columns of a source, and returns the products of the solutions with the lowest `count` eigenvectors of a name, of kind laplacian.

        part   'solve', or what `apply` takes: 'smear' projects columns as they are, also of a propagator that the daemon keeps (`quarkd.sequential`)
        Result: [column, t, spin, n], sum over x of v_n(t, x)^+ x(t, x). The other terms are those of `submit`. Errors: those of `submit`; the error of the
        first column that was not solved. Ctrl-C cancels.
        """
        if isinstance(source, str):
            source = sources.parse(source)
        report, kind = self.ready(setup), np.dtype(dtype).newbyteorder('<')
        request = self._project(source, report, kind, name, count, patience, setup=setup, work=part, **terms)
        out = np.empty((request.nrhs, report.dims[3], 4, count), kind)
        self._collect(request, out, lambda r: None)
        return out

    def perambulator(self, name: str, t_sources: Union[int, Sequence[int], None] = None, *, count: Optional[int] = None,
                     dtype: DTypeLike = 'complex128', setup: Name = None, progress: Optional[Callable[[Progress], object]] = None,
                     patience: Optional[float] = None, **terms: Any) -> NDArray[Any]:
        """tau(t, t0) = V(t)^+ M^-1 V(t0) of the eigenvectors of a name, of kind laplacian: [t0, spin0, n0, t, spin, n].

        t_sources  the time slices t0; None: all of them
        count      the lowest so many; None: all that there are
        progress   a function of a Progress
        The other terms are those of `submit`; sources and solutions are in the basis that they name. Errors: as `project`; LookupError: there are no
        eigenvectors of this name. For files, and calculations that go on after an interruption: quarkctl perambulator.
        """
        report, kind = self.ready(setup), np.dtype(dtype).newbyteorder('<')
        times: Sequence[Any] = range(report.dims[3]) if t_sources is None else [t_sources] if isinstance(t_sources, (int, float, np.number)) else t_sources
        slices: List[Any] = list(times)
        if not slices or len(set(slices)) < len(slices) or not all(isinstance(t, (int, np.integer)) and 0 <= t < report.dims[3] for t in slices):
            raise ValueError('t_sources %r: must be different integers from 0 to %d' % (slices, report.dims[3] - 1))
        n = self._count(name, count, setup)
        out = np.empty((len(slices), 4, n, report.dims[3], 4, n), kind)
        work = [(i, s, first) for i in range(len(slices)) for s in range(4) for first in range(0, n, BATCH)]
        told = _Total(progress, 4 * n * len(slices))
        under_way: Dict[Tuple[int, int, int], Request] = {}
        try:
            while work or under_way:
                while work and len(under_way) < IN_FLIGHT:
                    i, s, first = key = work.pop(0)
                    source = sources.vector(name, range(first, min(first + BATCH, n)), t=slices[i], spin=s)
                    under_way[key] = self._project(source, report, kind, name, n, patience, setup=setup, **terms)
                key = next(iter(under_way))
                i, s, first = key
                request = under_way[key]
                self._collect(request, out[i, s, first:first + request.nrhs], told)
                told.ended += request.nrhs
                del under_way[key]
        except BaseException:
            for request in under_way.values():
                request.release()
            raise
        return out

    def _count(self, name: str, count: Optional[int], setup: Name) -> int:
        """How many vectors; the daemon refuses more than there are."""
        if count is not None:
            if not isinstance(count, (int, np.integer)) or count < 1:
                raise ValueError('count %r: must be an integer, 1 or more' % (count,))
            return int(count)
        eigen_list: Callable[[Name], Sequence[Any]] = getattr(self, 'eigen_list')
        for report in eigen_list(setup):
            if report.name == name:
                return int(report.count)
        raise LookupError('there are no eigenvectors %r' % name)

    def _project(self, source: sources.Source, report: Report, dtype: Any, name: str, count: int, patience: Optional[float],
                 **terms: Any) -> Request:
        if not 1 <= count <= sources.MOST_VECTORS:
            raise ValueError('count = %d: must be 1 to %d' % (count, sources.MOST_VECTORS))
        return self._announce(source, report, dtype, False, 0.0, patience, project=(name, count), **terms)[0]

    @staticmethod
    def _collect(request: Request, out: NDArray[Any], told: Callable[[Request], None]) -> None:
        """All results of a request, or the error of the first that has none."""
        try:
            for i in range(request.nrhs):
                request.wait(i, each=lambda: told(request))
                told(request)
        except KeyboardInterrupt:
            request.cancel()
            raise
        for i in range(request.nrhs):
            if request.results[i].code:
                raise request.results[i].error('column')
            out[i] = request.view(i).view(out.dtype).reshape(out.shape[1:])
            request.ack(i)
        request.release()
