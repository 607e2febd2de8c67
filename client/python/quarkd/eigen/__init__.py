"""Eigenvectors that the daemon computes, or gets, and keeps under a name, as calls of a connection."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from .. import errors, notebook, source
from .. import terms as term
from .._quark import ffi, lib
from ..handle import Handle
from ..request import Request
from ..smearing import Links
from ..terms import Name, name_of
from . import uploads

KINDS = {'normal': lib.QUARK_EIGEN_NORMAL, 'gamma5': lib.QUARK_EIGEN_GAMMA5, 'laplacian': lib.QUARK_EIGEN_LAPLACIAN}
STATES = ('making', 'kept', 'returning')
BLOCK = 8  # vectors that are fetched by one request


@dataclass(frozen=True)
class EigenProgress:
    """Of an `eigen` that runs: eigenvalues that have converged, of count; seconds of the engine that is at it."""

    restart: int
    converged: int
    count: int
    seconds: float


@dataclass(frozen=True)
class EigenReport:
    """Eigenvectors of a setup. state: 'making', 'kept', or 'returning' while another engine reads them. Unknown numbers are NaN."""

    name: str
    state: str
    kind: str
    count: int
    tol: float
    user: str
    lowest: float
    highest: float
    residual: float
    seconds: float
    device_bytes: int
    host_bytes: int
    field: str  # 'digest:' and 16 digits of what a client sent; '': they were computed
    basis: int = 0  # vectors of the basis of compressed ones; 0: they are whole ...
    block: Tuple[int, int, int, int] = (0, 0, 0, 0)  # ... and extents of its blocks in x, y, z, t
    unwritten: str = ''  # why they are on no disk, and go with their engine; '': nothing is wrong
    zero_plus: int = -1  # zero modes of overlap fermions (kind gamma5) of chirality +1, ...
    zero_minus: int = -1  # ... of -1; the index is their difference; -1: not known, or of another action

    @classmethod
    def of(cls, r: Any) -> EigenReport:
        kind = next((k for k, v in KINDS.items() if v == r.kind), '?')
        return cls(ffi.string(r.name).decode(), STATES[r.state], kind, r.count, r.tol, ffi.string(r.user).decode('utf-8', 'replace'), r.lowest, r.highest,
                   r.residual, r.seconds, r.device_bytes, r.host_bytes, ffi.string(r.field).decode(), r.basis,
                   (r.block[0], r.block[1], r.block[2], r.block[3]), ffi.string(r.unwritten).decode('utf-8', 'replace'), r.zero_plus, r.zero_minus)


@dataclass(frozen=True)
class Eigenvectors:
    """What `eigen` has found. values, residuals: [count], ascending; of the Laplacian [t, count]. The vectors are the daemon's."""

    name: str
    kind: str
    values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    _connection: Eigen = field(repr=False)
    _setup: Name = field(repr=False, default=None)

    def __len__(self) -> int:
        return int(self.values.shape[-1])

    def vectors(self, numbers: Union[int, Sequence[int], None] = None, **terms: Any) -> NDArray[Any]:
        """As `Connection.eigenvectors`; numbers None: all of them."""
        return self._connection.eigenvectors(self.name, range(len(self)) if numbers is None else numbers, setup=self._setup,
                                             t=-1 if self.kind == 'laplacian' else 0, **terms)

    def array(self) -> NDArray[Any]:
        """Those of the Laplacian as `Connection.vectors` takes them: [t, n, z, y, x, colour]."""
        if self.kind != 'laplacian':
            raise ValueError('eigenvectors %s are of kind %s: only those of the Laplacian are of time slices' % (self.name, self.kind))
        out: NDArray[Any] = np.empty((*self.values.shape, 0), complex)
        for n in range(len(self)):
            one = self._connection.eigenvectors(self.name, n, setup=self._setup, t=-1)[..., 0, :]
            if not n:
                out = np.empty((one.shape[0], len(self), *one.shape[1:]), complex)
            out[:, n] = one
        return out

    def drop(self) -> None:
        """The daemon forgets them."""
        self._connection.drop_eigen(self.name, setup=self._setup)

    def _repr_html_(self) -> str:
        return notebook.table('eigenvectors ' + self.name, [('kind', self.kind), ('count', str(len(self))), ('lowest', '%.8g' % self.values.min()),
                                                            ('highest', '%.8g' % self.values.max()), ('residual', '%.2g' % self.residuals.max())])


class Eigen:
    """The part of Connection about eigenvectors."""

    _handle: Handle
    patience: float
    apply: Callable[..., Any]

    def eigen(self, name: str, count: int, kind: str = 'normal', *, tol: float = 1e-8, space: int = 0, order: int = 0, restarts: int = 0,
              links: Optional[Links] = None, basis: int = 0, block: Sequence[int] = (), setup: Name = None, priority: int = 4, deadline: float = 0.0,
              progress: Optional[Callable[[EigenProgress], object]] = None, patience: Optional[float] = None) -> Eigenvectors:
        """Has the daemon compute the lowest eigenvectors of a setup, and keep them under a name for all who may use it.

        kind      'normal': Mhat^+ Mhat on even sites; 'gamma5': gamma_5 M, those of least modulus; 'laplacian': minus the Laplacian in space, `count` of
                  each time slice, with smeared `links`
        tol       |A v - lambda v| over the largest eigenvalue
        space, order, restarts   vectors of the Krylov space, order of the polynomial, restarts at most; 0: chosen
        basis     so many of the lowest, a multiple of 8, are a basis that all are written in, compressed ('normal'): the daemon keeps these and coefficients.
                  The others are less exact then; `residuals` say how exact they are
        block     extents in x, y, z, t of the blocks that the basis is cut into; (): 4, or 2 where that does not divide the lattice
        progress  a function of an EigenProgress
        Errors: ValueError; RequestError; SolveError if they do not converge: then there are none. Ctrl-C cancels.
        """
        params, keep = self._params(name, count, term.choose('kind', kind, KINDS), tol, setup)
        params.space, params.order, params.restarts, params.basis = space, order, restarts, basis
        if len(block) not in (0, 4):
            raise ValueError('block %r: four extents are needed' % (tuple(block),))
        for mu, extent in enumerate(block):
            params.block[mu] = extent
        params.priority, params.deadline_ms = priority, term.milliseconds('deadline', deadline)
        if links:
            links.fill(params.links)
        found = self._make(lib.quark_eigen, params, progress, patience)
        del keep
        return Eigenvectors(name, kind, found[..., 0], found[..., 1], self, setup)

    def eigen_values(self, name: str, *, setup: Name = None, patience: Optional[float] = None) -> Eigenvectors:
        """What `eigen` has returned of eigenvectors that are kept, whoever has had them made: nothing is computed again.

        Errors: RequestError: NOT_FOUND; BUSY: they are being made; SolveError if they are lost meanwhile.
        """
        report = next((r for r in self.eigen_list(setup) if r.name == name), None)
        params, keep = self._params(name, report.count if report else 1, KINDS[report.kind] if report else KINDS['normal'], 1e-8, setup)
        found = self._make(lib.quark_eigen_values, params, None, patience)
        del keep
        return Eigenvectors(name, report.kind if report else 'normal', found[..., 0], found[..., 1], self, setup)

    def vectors(self, name: str, array: Any, *, tol: Optional[float] = None, setup: Name = None, keep: float = 0.0, priority: int = 4,
                deadline: float = 0.0, patience: Optional[float] = None) -> Eigenvectors:
        """Gives vectors to the daemon, which keeps them under a name as the eigenvectors of the Laplacian of a setup.

        array    [t, n, z, y, x, colour]: orthonormal on each time slice; complex64 travels, and is kept, as 32 bit. Nothing is sent if the daemon has it
        tol      how large an element of |V^+ V - 1| may be on a time slice; None: 1e-4 for complex64, 1e-9 for complex128
        keep     seconds that the daemon keeps what was sent after its last use, for `vectors` of another setup; 0: not at all
        The eigenvalues are not known: `values` are 0, and `residuals` the largest element of each vector's row of |V^+ V - 1|.
        Errors: TypeError, ValueError; RequestError; BAD_ARGUMENT, which names what is not finite, not normalised, or not orthogonal.
        """
        taken, patient = uploads.take(array), self.patience if patience is None else patience
        with uploads.sent(self._handle, taken, term.milliseconds('keep', keep), patient) as digest:
            params, texts = self._params(name, taken.shape[1], KINDS['laplacian'], uploads.tolerance(taken) if tol is None else tol, setup)
            params.priority, params.deadline_ms = priority, term.milliseconds('deadline', deadline)
            texts.append(ffi.new('char[]', b'digest:%016x' % digest))
            params.field = texts[-1]
            found = self._make(lib.quark_eigen, params, None, patience)
        return Eigenvectors(name, 'laplacian', found[..., 0], found[..., 1], self, setup)

    def _params(self, name: str, count: int, kind: int, tol: float, setup: Name) -> Tuple[Any, List[Any]]:
        """The parameters, and the texts that must stay as long."""
        if '\0' in name:
            raise ValueError('name %r: it has a zero byte' % name)
        params, keep = ffi.new('quark_eigen_params_t *'), [ffi.new('char[]', os.fsencode(name))]
        lib.quark_eigen_params_init(params)
        params.name, params.kind, params.count, params.tol = keep[0], kind, count, tol
        where = name_of(setup)
        if where is not None:
            keep.append(ffi.new('char[]', os.fsencode(where)))
            params.setup = keep[-1]
        return params, keep

    def _make(self, call: Any, params: Any, progress: Optional[Callable[[EigenProgress], object]], patience: Optional[float]) -> NDArray[np.float64]:
        """Eigenvalues and residuals, [count, 2]; of the Laplacian [t, count, 2]."""
        request = Request(self._handle, 1)
        request.submit(call, params, self.patience if patience is None else patience)
        try:
            result = request.wait(0, each=lambda: self._tell(request, progress))
        except KeyboardInterrupt:
            request.cancel()
            raise
        if result.code:
            raise result.error('eigenvectors %s' % ffi.string(params.name).decode())
        pairs: NDArray[np.float64] = request.view(0).view(np.float64).reshape(-1, 2).copy()
        request.ack(0)
        return pairs.reshape(-1, params.count, 2) if params.kind == KINDS['laplacian'] else pairs

    def _tell(self, request: Request, call: Optional[Callable[[EigenProgress], object]]) -> None:
        if not call:
            return
        p = ffi.new('quark_eigen_progress_t *')
        with self._handle as conn:
            code = lib.quark_eigen_watch(conn, request.number, p, ffi.NULL)
        if not code and p.count:
            call(EigenProgress(p.restart, p.converged, p.count, p.seconds))

    def eigenvectors(self, name: str, numbers: Union[int, Sequence[int]], *, t: int = 0, spin: int = 0, slice: int = 0, setup: Name = None,
                     **terms: Any) -> NDArray[Any]:
        """Fetches vectors as fields: [n, t, z, y, x, spin, colour], without the first axis for one number.

        Those of 'normal' are zero on odd sites (parity='even' leaves these out); those of the Laplacian are of time slice t (-1: of each), in `spin`;
        those of an action with a fifth dimension are of its slice `slice`. The other terms are those of `apply`. Errors: RequestError.
        """
        one = isinstance(numbers, (int, np.integer))
        wanted: List[int] = [int(numbers)] if isinstance(numbers, (int, np.integer)) else [int(n) for n in numbers]
        out = [self.apply(source.vector(name, wanted[i:i + BLOCK], t=t, spin=spin, slice=slice), 'smear', setup=setup, **terms)
               for i in range(0, len(wanted), BLOCK)]
        if not out:
            raise ValueError('numbers: there are none')
        fields: NDArray[Any] = np.concatenate(out)
        first: NDArray[Any] = fields[0]
        return first if one else fields

    def eigen_list(self, setup: Name = None) -> List[EigenReport]:
        """The eigenvectors of a setup."""
        found, count, err = ffi.new('quark_eigen_report_t[]', lib.QUARK_EIGEN_NAMES), ffi.new('uint32_t *'), ffi.new('quark_error_t *')
        where = name_of(setup)
        with self._handle as conn:
            errors.check(lib.quark_eigen_list(conn, ffi.NULL if where is None else os.fsencode(where), found, count, err), err)
        return [EigenReport.of(found[i]) for i in range(count[0])]

    def drop_eigen(self, name: str, setup: Name = None) -> None:
        """The daemon forgets the eigenvectors of a name. Errors: RequestError, also while they are used."""
        err, where = ffi.new('quark_error_t *'), name_of(setup)
        with self._handle as conn:
            errors.check(lib.quark_eigen_drop(conn, ffi.NULL if where is None else os.fsencode(where), os.fsencode(name), err), err)
