"""Fermion actions for PyQUDA whose solves a quarkd daemon does: of PyQUDA only its package of fields, pyquda_comm, is needed, and no libquda.

    from quarkd import pyquda
    dirac = pyquda.getClover(latt_info, mass, tol, maxiter, xi_0, csw_t, csw_r)
    with dirac.useGauge(gauge):
        propagator = pyquda.invert(dirac, 'point', [0, 0, 0, 0])

Links are those of a file, without boundary factors: that of t is latt_info.t_boundary. Solutions are M^-1 b with M = (m + ...) - H/2, as Chroma has
them. Ranks are those of PyQUDA; each moves its own brick. The daemon makes the setup, private to this user, and keeps it for the next program.
"""
from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from .. import source as sources
from ..arrays import half, whole
from ..connection import Connection, connect
from ..gauge import Gauge
from ..mpi import BrickGauge, Bricks
from ..status import Setup

Link = Union[Connection, Bricks]
PARITIES = ('even', 'odd')


def _host(data: Any) -> NDArray[Any]:
    """Numbers in the memory of the host: cupy's arrays have get."""
    return np.asarray(data.get() if hasattr(data, 'get') else data)


def lexico(data: Any) -> NDArray[Any]:
    """[..., parity, t, z, y, x/2, spin, colour] as [..., t, z, y, x, spin, colour]."""
    array = _host(data)
    parts = [whole(array[..., p, :, :, :, :, :, :], word) for p, word in enumerate(PARITIES)]
    return np.asarray(parts[0] + parts[1])


def evenodd(field: Any) -> NDArray[Any]:
    """The other way."""
    return np.stack([half(field, word) for word in PARITIES], axis=-7)


def lexico_links(data: Any) -> NDArray[Any]:
    """[mu, parity, t, z, y, x/2, 3, 3] as [t, z, y, x, mu, 3, 3]."""
    return np.ascontiguousarray(np.moveaxis(lexico(data), 0, 4))


def _connect(latt_info: Any, options: Dict[str, Any]) -> Link:
    """Ranks are numbered as quarkd numbers parts, whatever the order of PyQUDA's grid is."""
    import pyquda_comm
    made: Link
    if latt_info.mpi_size == 1:
        made = connect(**options)
        return made
    gx, gy, gz, gt = latt_info.grid_size
    cx, cy, cz, ct = latt_info.grid_coord
    comm = pyquda_comm.getMPIComm().Split(0, ((ct * gz + cz) * gy + cy) * gx + cx)
    made = connect(comm=comm, grid=(gx, gy, gz, gt), **options)
    return made


class Dirac:
    """What PyQUDA calls on a FermionDirac. setup: the one in use, None before loadGauge."""

    def __init__(self, latt_info: Any, tol: float, maxiter: int, terms: Dict[str, Any], connection: Optional[Link] = None, **options: Any) -> None:
        self.latt_info, self.tol, self.maxiter, self._terms = latt_info, tol, maxiter, terms
        self.connection: Link = connection if connection is not None else _connect(latt_info, options)
        self.setup: Optional[Setup] = None
        self._gauge: Union[Gauge, BrickGauge, None] = None

    # ---- links ----

    def loadGauge(self, gauge: Any) -> None:
        """Gives a LatticeGauge to the daemon, which has it already if anybody of this user sent it, and waits for its setup."""
        boundary = (1, 1, 1, self.latt_info.t_boundary)
        links = lexico_links(gauge.data)
        if isinstance(self.connection, Bricks):
            bricks = self.connection.upload_gauge(links, boundary)
            self._gauge, self.setup = bricks, self.connection.setup(gauge=bricks, **self._terms)
        else:
            field = self.connection.upload_gauge(links, boundary)
            self._gauge, self.setup = field, self.connection.setup(gauge=field, **self._terms)

    @contextlib.contextmanager
    def useGauge(self, gauge: Any) -> Iterator[Dirac]:
        """with dirac.useGauge(gauge): loadGauge, and freeGauge at the end."""
        self.loadGauge(gauge)
        try:
            yield self
        finally:
            self.freeGauge()

    def freeGauge(self) -> None:
        """Lets the links go. The setup stays with the daemon until another one needs its room: the next load of these links is free."""
        if self._gauge is not None:
            self._gauge.release()
        self._gauge = self.setup = None

    def _loaded(self) -> Setup:
        if self.setup is None:
            raise RuntimeError('no gauge is loaded: call loadGauge first')
        return self.setup

    # ---- fields ----

    def invert(self, b: Any) -> Any:
        """M^-1 b of a LatticeFermion."""
        return self._made(b, self.connection.solve(lexico(b.data), tol=self.tol, max_iter=self.maxiter, setup=self._loaded()))

    def invertMultiSrc(self, b: Any) -> Any:
        """M^-1 b of a MultiLatticeFermion, all at once."""
        return self.invert(b)

    def invertRestart(self, b: Any, restart: int = 0) -> Any:
        """As invert: the residual that the daemon stops at is the true one."""
        return self.invert(b)

    def invertMultiSrcRestart(self, b: Any, restart: int = 0) -> Any:
        """As invertMultiSrc."""
        return self.invert(b)

    def mat(self, x: Any) -> Any:
        """M x"""
        return self._made(x, self.connection.apply(lexico(x.data), 'M', setup=self._loaded()))

    def matDagMat(self, x: Any) -> Any:
        """M^+ M x"""
        there = self.connection.apply(lexico(x.data), 'M', setup=self._loaded())
        return self._made(x, self.connection.apply(there, 'M', dagger=True, setup=self._loaded()))

    def _made(self, like: Any, field: NDArray[Any]) -> Any:
        data = evenodd(field)
        return _like(like, self.latt_info, data)

    def setPrecision(self, *_: Any, **__: Any) -> None:
        """The daemon chooses its precisions; fields have their own."""

    def performance(self) -> None:
        """The daemon's reports tell (quarkctl status)."""


def _like(like: Any, latt_info: Any, data: NDArray[Any]) -> Any:
    """A field of the same class, where the other one is."""
    made = type(like)(latt_info, len(data), data) if data.ndim == 8 else type(like)(latt_info, data)
    if getattr(like, 'location', 'numpy') != 'numpy':
        made.toDevice()
    return made


def getDirac(latt_info: Any, mass: float, tol: float, maxiter: int, xi_0: float = 1.0, clover_csw_t: float = 0.0, clover_csw_r: float = 0.0,
             multigrid: Any = None, **more: Any) -> Dirac:
    """A Wilson or clover action, as pyquda_utils.core.getDirac makes it.

    multigrid  is not looked at: the daemon sets its own up
    more       connection=, or options of quarkd.connect; solver=, precision= of the setup
    """
    terms = {key: more.pop(key) for key in ('solver', 'precision') if key in more}
    if xi_0 != 1 or clover_csw_t != clover_csw_r:
        terms.update(action='anisotropic-clover', parameters={'mass': float(mass), 'xi0': float(xi_0), 'c-r': float(clover_csw_r), 'c-t': float(clover_csw_t)})
    else:
        terms.update(action='wilson-clover', parameters={'mass': float(mass), 'csw': float(clover_csw_t)})
    return Dirac(latt_info, tol, maxiter, terms, **more)


def getClover(latt_info: Any, mass: float, tol: float, maxiter: int, xi_0: float = 1.0, clover_csw_t: float = 0.0, clover_csw_r: float = 0.0,
              multigrid: Any = None, **more: Any) -> Dirac:
    """As getDirac."""
    return getDirac(latt_info, mass, tol, maxiter, xi_0, clover_csw_t, clover_csw_r, multigrid, **more)


def invert(dirac: Dirac, source_type: str, t_srce: Union[int, Sequence[int]], **terms: Any) -> Any:
    """The LatticePropagator of a source that the daemon makes: 'point' at [x, y, z, t], 'wall' on slice t, in global coordinates."""
    from pyquda_comm.field import LatticePropagator
    if source_type == 'point' and not isinstance(t_srce, int) and len(t_srce) == 4:
        source = sources.point(*(int(n) for n in t_srce))
    elif source_type == 'wall' and isinstance(t_srce, int):
        source = sources.wall(t_srce)
    else:
        raise ValueError('source %r at %r: must be point at [x, y, z, t], or wall at t; for others fill a LatticeFermion' % (source_type, t_srce))
    options: Dict[str, Any] = {'tol': dirac.tol, 'max_iter': dirac.maxiter, 'setup': dirac._loaded(), 'progress': False, **terms}
    kept = dirac.connection.propagator(source, **options)
    numbers = kept.numpy()
    kept.release()
    lattice = numbers.shape[:4]
    flat = evenodd(numbers.reshape(lattice + (16, 9)))
    return LatticePropagator(dirac.latt_info, flat.reshape(flat.shape[:5] + (4, 4, 3, 3)))
