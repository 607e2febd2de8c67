"""Programs of several ranks (mpi4py): each has a brick of the lattice, and calls are collective.

Rank 0 owns the requests. Each rank has a connection, joins them, and moves its own brick; with gather=True rank 0 has the only connection, bricks are
gathered there, and solutions scattered from there. A call that fails on one rank raises on all.
"""
from __future__ import annotations

import math
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import arrays, errors, gauge
from . import source as sources
from . import terms as term
from ._quark import lib
from .connection import Connection
from .correlator import Correlators
from .future import Future
from .propagator import Propagator
from .request import Request, Result
from .status import Report, Setup

Grid = Tuple[int, int, int, int]
T = TypeVar('T')
LOOK = 0.0005  # seconds between two looks of the ranks that wait for rank 0


def default_grid(size: int, dims: Sequence[int]) -> Grid:
    """As square as the extents x, y, z, t allow, t first; parts have even extents. Errors: ValueError: there is none.

    >>> default_grid(8, (4, 4, 4, 8)), default_grid(1, (4, 4, 4, 8))
    ((1, 1, 2, 4), (1, 1, 1, 1))
    """
    best: Optional[Tuple[int, Tuple[int, ...], Grid]] = None
    for gx, gy, gz in ((x, y, z) for x in _divisors(size) for y in _divisors(size // x) for z in _divisors(size // x // y)):
        grid = (gx, gy, gz, size // (gx * gy * gz))
        if all(n % (2 * g) == 0 for n, g in zip(dims, grid)):
            part = [n // g for n, g in zip(dims, grid)]
            surface = sum(math.prod(part) // n for n, g in zip(part, grid) if g > 1)
            best = min(best or (surface + 1, grid, grid), (surface, grid, grid))  # of equal surfaces t is cut most
    if not best:
        raise ValueError('%d ranks: there is no grid that cuts %s into even parts' % (size, 'x'.join(map(str, dims))))
    return best[2]


def _divisors(n: int) -> List[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _reals(array: NDArray[Any]) -> NDArray[Any]:
    """As MPI has a type for: the same memory."""
    return array.reshape(-1).view(np.float32 if array.dtype.itemsize == 8 else np.float64)


@dataclass(frozen=True)
class BrickGauge:
    """Links that the daemon has, as Bricks.upload_gauge says on every rank: the members of Gauge."""

    digest: int
    dims: Tuple[int, ...]
    sent: bool
    unitarity: float
    boundary: Optional[str]
    _whole: Optional[gauge.Gauge]  # rank 0

    def release(self) -> None:
        """The daemon may forget the links, unless a setup is made of them. Of one rank: the first one's call counts."""
        if self._whole:
            self._whole.release()


class Bricks:
    """The collective connection that `quarkd.connect(comm=...)` makes.

    comm, rank     of mpi4py
    grid           parts in x, y, z, t; rank ((ct gz + cz) gy + cy) gx + cx has the part at c
    slices         where this rank's part is in an array [t, z, y, x, ...] of the whole lattice
    connection     that of this rank; None on others than 0 with gather
    """

    def __init__(self, comm: Any, grid: Optional[Sequence[int]], endpoint: Optional[str], gather: bool, options: Dict[str, Any]) -> None:
        self.comm, self.rank, self.gather = comm, int(comm.Get_rank()), gather
        self.connection: Optional[Connection] = None

        def begin() -> Report:
            self.connection = Connection(endpoint, **options)
            return self.connection.ready()
        self._default: Report = self._root(begin)
        dims = self._default.dims
        self.grid: Grid = default_grid(comm.Get_size(), dims) if grid is None else self._checked(grid, dims)
        self.slices = self._slices(self.rank, dims)
        if not gather:
            where = self._root(lambda: self._own().endpoint)
            self._together(self._connect, where, options)

    def __repr__(self) -> str:
        return 'Bricks(rank %d of %d, grid %s)' % (self.rank, self.comm.Get_size(), 'x'.join(map(str, self.grid)))

    def _connect(self, endpoint: str, options: Dict[str, Any]) -> None:
        if self.rank:
            self.connection = Connection(endpoint, **options)

    def _checked(self, grid: Sequence[int], dims: Sequence[int]) -> Grid:
        if len(grid) != 4 or math.prod(grid) != self.comm.Get_size() or any(g < 1 or n % g for n, g in zip(dims, grid)):
            raise ValueError('grid %s: must be four numbers for x, y, z, t that divide %s, with a product of %d, the number of ranks'
                             % (tuple(grid), 'x'.join(map(str, dims)), self.comm.Get_size()))
        gx, gy, gz, gt = (int(g) for g in grid)
        return gx, gy, gz, gt

    def _slices(self, part: int, dims: Sequence[int]) -> Tuple[slice, ...]:
        """Of t, z, y, x."""
        out = []
        for n, g in zip(dims, self.grid):
            part, c = divmod(part, g)
            out.append(slice(c * (n // g), (c + 1) * (n // g)))
        return tuple(reversed(out))

    # ---- ranks agree ----

    def _root(self, call: Callable[[], T]) -> T:
        """What a call gives on rank 0, or raises, on all ranks; others sleep meanwhile."""
        value: Any = None
        if self.rank == 0:
            try:
                value = (True, call())
            except KeyboardInterrupt:
                raise
            except Exception as e:
                if isinstance(e, errors.ConvergenceError):
                    e.solution = None  # of the whole lattice
                value = (False, e)
        done = self.comm.Ibarrier()
        while not done.Test():
            time.sleep(LOOK)
        good, result = self.comm.bcast(value, 0)
        if not good:
            raise result
        out: T = result
        return out

    def _together(self, call: Callable[..., T], *arguments: Any) -> T:
        """What a call gives on this rank, or an error on all ranks if it raises on one."""
        value, mine = None, None
        try:
            value = call(*arguments)
        except Exception as e:
            mine = e
        first = next(((rank, text) for rank, text in enumerate(self.comm.allgather(None if mine is None else str(mine))) if text is not None), None)
        if mine is not None:
            raise mine
        if first:
            raise errors.make(100, 'rank %d: %s' % first)
        out: T = value  # type: ignore[assignment]
        return out

    # ---- bricks ----

    def _gather(self, brick: NDArray[Any], dims: Sequence[int], front: int) -> Optional[NDArray[Any]]:
        """The whole array of bricks, whose lattice stands behind `front` axes, on rank 0."""
        size = self.comm.Get_size()
        all_bricks = np.empty((size,) + brick.shape, brick.dtype) if self.rank == 0 else None
        self.comm.Gather(_reals(np.ascontiguousarray(brick)), None if all_bricks is None else _reals(all_bricks), 0)
        if all_bricks is None:
            return None
        out = np.empty(brick.shape[:front] + tuple(reversed(dims)) + brick.shape[front + 4:], brick.dtype)
        for part in range(size):
            out[(slice(None),) * front + self._slices(part, dims)] = all_bricks[part]
        return out

    def _scatter(self, whole: Optional[NDArray[Any]], like: Tuple[int, ...], dtype: DTypeLike, dims: Sequence[int], front: int) -> NDArray[Any]:
        parts = None
        if whole is not None:
            parts = np.stack([whole[(slice(None),) * front + self._slices(part, dims)] for part in range(self.comm.Get_size())])
        out = np.empty(like, dtype)
        self.comm.Scatter(None if parts is None else _reals(parts), _reals(out), 0)
        return out

    def _report(self, setup: term.Name) -> Report:
        name = term.name_of(setup)
        if name is None:
            return self._default
        return self._root(lambda: self._own().ready(name))  # each time: it may have been loaded again, by whomever

    def _own(self) -> Connection:
        assert self.connection is not None
        return self.connection

    def shape_of(self, setup: term.Name = None) -> Tuple[int, ...]:
        """Of a right-hand side of this rank: [t, z, y, x, spin, colour], of doublets with the axis flavour before, of staggered fermions without spin.
        Collective if a setup is named."""
        return self._brick(self._report(setup))

    def _brick(self, report: Report) -> Tuple[int, ...]:
        return report.shape[:-4 - len(report.site)] + tuple(s.stop - s.start for s in self._slices(self.rank, report.dims)) + report.site

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.shape_of()

    def empty(self, shape: Optional[Sequence[int]] = None, dtype: DTypeLike = 'complex128') -> NDArray[Any]:
        """Connection.empty, of this rank's brick."""
        return arrays.empty(self.shape if shape is None else shape, dtype)

    # ---- calls, all of them collective ----

    def solve(self, b: Any, **terms: Any) -> Any:
        """Connection.solve of bricks: b is this rank's part of one right-hand side, or of several [n, ...]. The terms are the same on all ranks."""
        return self._work(b, 'solve', **terms)

    def apply(self, x: Any, part: str = 'M', **terms: Any) -> Any:
        """Connection.apply of bricks."""
        return self._work(x, part, **terms)

    def _work(self, b: Any, work: str, *, parity: None = None, **terms: Any) -> Any:
        if parity is not None:
            raise ValueError('bricks have all sites: parity must be None')
        if terms.get('masses') is not None:
            raise ValueError('masses: not of bricks')
        report = self._report(terms.get('setup'))
        shape = self._brick(report)
        array, many, back = self._together(lambda: arrays.take(b, shape))
        self._together(lambda: self._alike((array.dtype.str, array.shape[0])))
        found = (self._by_root if self.gather else self._in_parts)(array, report, work, terms)
        return back(np.stack(found) if many else found[0])

    def _in_parts(self, array: NDArray[Any], report: Report, work: str, terms: Dict[str, Any]) -> List[NDArray[Any]]:
        """Each rank sends its part, and has that of the solutions where the daemon has it."""
        request = Request(self._own()._handle, len(array))

        def begin() -> Tuple[bytes, int, bytes]:
            patience = terms.pop('patience', None)
            params, _texts = term.params(dtype=array.dtype, nrhs=len(array), work=work, grid=self.grid, part=0, **terms)
            request.submit(lib.quark_submit, params, self._own().patience if patience is None else patience)
            return request.token()
        token = self._root(begin)
        self._together(self._join, request, token)
        self._together(request.upload, array)
        futures = [Future(request, i, array.dtype, array.shape[1:], arrays.as_it_is) for i in range(len(array))]
        # Rank 0 lets the request go for all, so nobody goes on before all have what they need.
        return self._together(lambda: [f._fetch_when_done() for f in futures])

    def _join(self, request: Request, token: Tuple[bytes, int, bytes]) -> None:
        if self.rank:
            request.join(token, self.rank)

    def _by_root(self, array: NDArray[Any], report: Report, work: str, terms: Dict[str, Any]) -> List[NDArray[Any]]:
        shape = array.shape[1:]
        front, under_way, failed = len(shape) - 4 - len(report.site), [], None
        for brick in array:
            whole = self._gather(brick, report.dims, front)
            if whole is not None and failed is None:
                try:
                    under_way += self._own()._submit(whole[None], True, work=work, **terms)
                except Exception as e:  # told below, when all ranks are there
                    failed = e
        fetched: List[Any] = [None]

        def result(i: int) -> None:
            if failed:
                raise failed
            fetched[0] = under_way[i].result()
        out = []
        for i in range(len(array)):
            self._root(lambda i=i: result(i))  # type: ignore[misc]
            out.append(self._scatter(fetched[0], shape, array.dtype, report.dims, front))
        return out

    def _alike(self, mine: Any) -> None:
        all_of_them = self.comm.allgather(mine)
        if any(other != all_of_them[0] for other in all_of_them):
            raise ValueError('ranks have other numbers of right-hand sides, or other types: %s' % all_of_them)

    def propagator(self, source: Union[sources.Source, str], **terms: Any) -> BrickPropagator:
        """Connection.propagator; its columns stay with the daemon."""
        terms.setdefault('progress', False)
        kept: List[Propagator] = []

        def begin() -> Tuple[List[Result], str]:
            kept.append(self._own().propagator(source, **terms))
            return kept[0].results, kept[0].dtype.str
        results, dtype = self._root(begin)
        return BrickPropagator(self, kept[0] if kept else None, results, np.dtype(dtype), self._report(terms.get('setup')))

    def upload_gauge(self, links: Any, boundary: gauge.Boundary = None, *, plaquette: Optional[float] = None, keep: float = 0.0) -> BrickGauge:
        """Connection.upload_gauge of this rank's links. Nothing is gathered if the daemon has them."""
        array = self._together(lambda: gauge.take(links))
        dims, digest = [g * n for g, n in zip(self.grid, reversed(array.shape[:4]))], self.digest(array)
        made: List[gauge.Gauge] = []
        opened: List[Request] = []

        def begin() -> Tuple[bool, Any]:
            q = self._own()
            request, there = gauge.open_field(q._handle, array.dtype, dims, digest, plaquette, term.milliseconds('keep', keep), q.patience,
                                              None if self.gather else self.grid)
            opened.append(request)
            return there, None if there or self.gather else request.token()
        there, token = self._root(begin)
        mine = None if there else self._gather(array, dims, 0) if self.gather else array
        if token and self.rank:
            opened.append(Request(self._own()._handle, 1))
        if token:
            self._together(self._join, opened[0], token)

        def end() -> Tuple[float, bool]:
            made.append(gauge.send(opened[0], dims, digest, mine, gauge.boundary_text(boundary)))
            return made[0].unitarity, made[0].sent
        unitarity, sent = self._together(end) if token else self._root(end)
        return BrickGauge(digest, tuple(dims), sent, unitarity, gauge.boundary_text(boundary), made[0] if made and not self.rank else None)

    def digest(self, links: Any) -> int:
        """quarkd.gauge.digest of the links of all ranks."""
        array = self._together(lambda: gauge.take(links))
        part, (t, z, y, x) = array.shape[:4], self._edges(array.shape[:4])
        dims = [g * n for g, n in zip(self.grid, reversed(part))]
        it, iz, iy, ix = np.meshgrid(*(np.arange(b, b + n, dtype=np.uint64) for b, n in zip((t, z, y, x), part)), indexing='ij')
        sites = ((it * np.uint64(dims[2]) + iz) * np.uint64(dims[1]) + iy) * np.uint64(dims[0]) + ix
        return int(sum(self.comm.allgather(gauge.digest(array, sites.ravel()))) % 2**64)

    def _edges(self, part: Sequence[int]) -> Tuple[int, ...]:
        """Where this rank's part begins: t, z, y, x."""
        self._together(lambda: self._alike(tuple(part)))
        number, out = self.rank, []
        for g, n in zip(self.grid, reversed(part)):
            number, c = divmod(number, g)
            out.append(c * n)
        return tuple(reversed(out))

    def setup(self, name: Optional[str] = None, *, gauge: BrickGauge, **terms: Any) -> Setup:
        """Connection.setup"""
        return self._root(lambda: self._own().setup(name, gauge=gauge._whole or '', **terms))

    def drop(self, setup: term.Name, now: bool = False) -> None:
        """Connection.drop"""
        self._root(lambda: self._own().drop(setup, now))

    def close(self) -> None:
        """Ends the sessions."""
        if self.connection:
            self.connection.close()

    def __enter__(self) -> Bricks:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class BrickPropagator:
    """A propagator that the daemon keeps, of which each rank can have its part. results: how each column ended; whole: on rank 0."""

    def __init__(self, bricks: Bricks, whole: Optional[Propagator], results: List[Result], dtype: np.dtype[Any], report: Report) -> None:
        self.bricks, self.whole, self.results, self.dtype, self._at = bricks, whole, results, dtype, report

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return 'BrickPropagator(%d columns, residual %.2e)' % (len(self), max(r.residual for r in self.results))

    def column(self, i: int) -> NDArray[Any]:
        """This rank's part of a column. Collective."""
        lattice = tuple(s.stop - s.start for s in self.bricks._slices(self.bricks.rank, self._at.dims))
        front = len(self._at.shape) - 4 - len(self._at.site)
        shape = self._at.shape[:front] + lattice + self._at.site
        fetched: List[NDArray[Any]] = []
        self.bricks._root(lambda: fetched.append(self._own()[i].numpy()))
        return self.bricks._scatter(fetched[0] if fetched else None, shape, self.dtype, self._at.dims, front)

    def numpy(self) -> NDArray[Any]:
        """This rank's part [t, z, y, x, spin, spin0, colour, colour0] of the twelve columns, of three [t, z, y, x, colour, colour0]. Collective."""
        if self._at.colour_alone and len(self) == 3:
            return np.stack([self.column(i) for i in range(3)], axis=-1)
        if len(self) != 12 or self._at.flavours > 1:
            raise ValueError('%d columns of %d flavours: this is for the 12 of a source with all spins and colours' % (len(self), self._at.flavours))
        columns = np.stack([self.column(i) for i in range(12)])
        return np.ascontiguousarray(columns.reshape((4, 3) + columns.shape[1:]).transpose(2, 3, 4, 5, 6, 0, 7, 1))

    def correlator(self, *arguments: Any, **terms: Any) -> Correlators:
        """Propagator.correlator, on all ranks. anti: a BrickPropagator."""
        anti = terms.pop('anti', None)
        if anti is not None:
            terms['anti'] = anti.whole
        return self.bricks._root(lambda: self._own().correlator(*arguments, **terms))

    def sequential(self, *arguments: Any, **terms: Any) -> BrickPropagator:
        """Propagator.sequential"""
        terms.setdefault('progress', False)
        kept: List[Propagator] = []

        def begin() -> List[Result]:
            kept.append(self._own().sequential(*arguments, **terms))
            return kept[0].results
        results = self.bricks._root(begin)
        return BrickPropagator(self.bricks, kept[0] if kept else None, results, self.dtype, self._at)

    def release(self) -> None:
        """The daemon forgets the solutions."""
        self.bricks._root(lambda: self._own().release())

    def _own(self) -> Propagator:
        assert self.whole is not None
        return self.whole
