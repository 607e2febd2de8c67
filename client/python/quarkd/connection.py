"""A connection to quarkd."""
from __future__ import annotations

import errno
import os
import stat
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union, cast, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import arrays, errors, notebook
from . import source as sources
from . import terms as term
from ._quark import ffi, lib
from .eigen import Eigen
from .eigen.perambulators import Perambulators
from .future import Future
from .handle import Handle
from .progress import Show, Wish
from .propagator import Propagator
from .request import Request
from .setups import Setups, pauses
from .smearing import Gauss, real
from .status import Report
from .terms import Name, name_of

if TYPE_CHECKING:
    from .mpi import Bricks

KEY_TEXT = 40


def _endpoint(given: str) -> str:
    """An endpoint, or the first word of the file that quarkd --endpoint-file wrote it to."""
    if '://' in given:
        return given.split()[0]
    try:
        fd = os.open(given, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, encoding='ascii', errors='replace') as f:
            words = f.read(1024).split() if stat.S_ISREG(os.fstat(fd).st_mode) else []
    except OSError as e:
        if e.errno == errno.ENOENT:
            raise FileNotFoundError(e.errno, 'neither an endpoint such as tcp://HOST:PORT nor a file of quarkd --endpoint-file', given) from None
        raise
    if not words or '://' not in words[0]:
        raise ValueError('%s: its first line is not an endpoint such as tcp://HOST:PORT' % given)
    return words[0]


def _server_key(given: str) -> str:
    """40 characters of Z85, or the file NAME.pub that quarkctl keygen wrote."""
    if len(given) == KEY_TEXT and not os.path.exists(given):
        return given
    with open(given, encoding='ascii', errors='replace') as f:
        for line in f.read(1 << 16).splitlines():
            name, equals, value = (word.strip() for word in line.partition('='))
            if equals and name == 'key' and len(value) == KEY_TEXT:
                return value
    raise ValueError('%s: has no public key: give the file NAME.pub that quarkctl keygen wrote' % given)


class Connection(Setups, Eigen, Perambulators):
    """A connection to quarkd, made by `connect`. Threads may share it; a child of fork may not use it.

    patience: seconds that calls wait for a daemon that is full or not ready
    """

    def __init__(self, endpoint: Optional[str] = None, *, user: Optional[str] = None, program: str = 'quarkd-python', setup: Name = None,
                 server_key: Optional[str] = None, key: Optional[str] = None, timeout: float = 10.0, local: bool = True,
                 patience: float = 300.0, client_id: Optional[bytes] = None) -> None:
        given = endpoint or os.environ.get('QUARKD_ENDPOINT') or 'tcp://127.0.0.1:5555'
        server_key = server_key or os.environ.get('QUARKD_SERVER_KEY') or None
        key = key or os.environ.get('QUARKD_KEY') or None
        self.endpoint, self.patience, self.setup_name = _endpoint(given), patience, name_of(setup)
        self._again: Dict[str, Any] = {'user': user, 'program': program, 'server_key': server_key, 'key': key, 'timeout': timeout,
                                       'patience': patience}
        options, texts = ffi.new('quark_options_t *'), []
        lib.quark_options_init(options)
        options.timeout_ms, options.local = max(1, min(int(timeout * 1000), 4_000_000_000)), local
        for member, value in (('user', user), ('program', program), ('setup', self.setup_name), ('key_file', key),
                              ('server_key', _server_key(server_key) if server_key else None)):
            if value is not None:
                texts.append(ffi.new('char[]', os.fsencode(value)))
                setattr(options, member, texts[-1])
        if client_id is not None:
            texts.append(ffi.new('uint8_t[16]', client_id))
            options.client_id = texts[-1]
        self._handle = Handle(self.endpoint, options, ffi.string(options.server_key).decode() if options.server_key else None)
        self._known_shape: Dict[Optional[str], Tuple[int, ...]] = {}
        self._reports: Dict[str, Report] = {}  # of setups other than that of the connection

    # ---- its state ----

    def close(self) -> None:
        """Ends the session: the daemon drops its requests and what it keeps for them. Arrays stay as they are."""
        self._handle.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    @property
    def local(self) -> bool:
        """Whether fields go through shared memory at the moment."""
        with self._handle as conn:
            return bool(lib.quark_local(conn))

    def status(self) -> Report:
        """The state of the daemon, and of the setup of this connection."""
        report, err = ffi.new('quark_report_t *'), ffi.new('quark_error_t *')
        with self._handle as conn:
            errors.check(lib.quark_status(conn, report, err), err)
        return Report.of(report[0])

    def ready(self, setup: Name = None, patience: Optional[float] = None) -> Report:
        """Waits until the daemon, or a setup, is ready, and returns its report. Errors: Timeout; that of a setup that has failed."""
        name = name_of(setup)
        if name == 'default' and self.setup_name is None:
            name = None
        if name is not None and name != self.setup_name:
            return self._ready_elsewhere(name, patience)
        give_up = time.monotonic() + (self.patience if patience is None else patience)
        for _ in pauses():
            report = self.status()
            if report.state == 'ready':
                return report
            if report.state == 'failed' and self.setup_name is not None:
                self._wait_for(self.setup_name, 0)  # says why
            if time.monotonic() >= give_up:
                raise errors.make(lib.QUARK_TIMEOUT, 'the daemon is not ready: %s %s' % (report.state, report.engine['last_error']))
        raise AssertionError('pauses ends')

    def _ready_elsewhere(self, name: str, patience: Optional[float]) -> Report:
        found, seen = self._wait_for(name, self.patience if patience is None else patience), self._reports.get(name)
        if seen is None or not found.is_of(seen):  # dropped and loaded again, by whomever
            with Connection(self.endpoint, setup=name, local=False, **self._again) as other:
                self._reports[name] = other.ready(None, patience)
        return self._reports[name]

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of a right-hand side: t, z, y, x, spin, colour, of staggered fermions without spin; of doublets with the axis flavour before. Waits
        until the daemon is ready."""
        return self.ready().shape

    def __repr__(self) -> str:
        return 'Connection(%r)' % self.endpoint

    def _repr_html_(self) -> str:
        report = self.status()
        return notebook.table('quarkd %s at %s' % (report.version, self.endpoint), report.rows())

    def empty(self, shape: Optional[Sequence[int]] = None, dtype: DTypeLike = 'complex128', *, setup: Name = None) -> NDArray[Any]:
        """An array of zeros whose memory is sent without a copy, by any call that takes right-hand sides or links, of any connection.

        shape: None: of one right-hand side. Parts of it are sent likewise if they are contiguous. It is to be kept for what comes next: new
        memory takes longer to fill than memory that has been used. What was never written costs nothing, also not to send. Errors: ValueError, ProcessError (no memory).
        """
        return arrays.empty(self.ready(setup).shape if shape is None else shape, dtype)

    # ---- solves ----

    def submit(self, b: Any, *, tol: Optional[float] = None, tol_abs: float = 0.0, tol_hq: float = 0.0, max_iter: int = 10000,
               basis: str = 'degrand-rossi', normalisation: str = 'mass', flavour: int = 1, dagger: bool = False, parity: Optional[str] = None,
               schur: Optional[str] = None, batch_only: bool = False, setup: Name = None, smearing: Optional[Gauss] = None, priority: int = 4,
               deadline: float = 0.0, detach: float = 0.0, five_d: bool = False, patience: Optional[float] = None) -> Future:
        """Sends one right-hand side and returns at once with its solution to come.

        b           [t, z, y, x, spin, colour], or `shape` of other actions, what numpy takes or what has DLPack in the memory of the host; complex64 travels and
                    comes back as 32 bit, complex128 as 64 bit. An array that is contiguous is not copied here.
        tol         relative residual |b - M x| / |b|; None: 1e-10, or none if another one is given. All that are given must hold
        tol_abs     |b - M x|
        tol_hq      heavy-quark residual (docs/physics.md)
        normalisation  'mass': M; 'kappa': 2 kappa M; 'twice': of staggered fermions 2 M = 2m + D
        flavour     1 or -1: which of the two operators of an action with flavours
        dagger      solves with the adjoint M^+
        parity      'even', 'odd': b and x are fields of these sites alone, as `quarkd.half` makes them
        schur       'symmetric', 'asymmetric': the even-odd preconditioned system on that parity, Mhat x = b or A Mhat x = b
        batch_only  the solution does not depend on what else is solved, to the last bit
        smearing    of b, before the solve
        deadline    seconds from acceptance; 0: none
        detach      seconds that the result waits for `quarkd.attach` when the connection is gone; 0: it ends with the connection
        five_d      of an action with a fifth dimension: b and x are [s, t, z, y, x, spin, colour], M x = b with all its slices
        `submit_many`, `solve` and `propagators` also have
        masses      of staggered fermions up to 16 masses in place of that of the setup, from one Krylov space: a solution for each, with `tol` alone
        Errors: TypeError, ValueError (numbers, shape, words), RequestError. How the solve ends is told by the future.
        """
        return self._submit(b, False, tol=tol, tol_abs=tol_abs, tol_hq=tol_hq, max_iter=max_iter, basis=basis, normalisation=normalisation,
                            flavour=flavour, dagger=dagger, parity=parity, schur=schur, batch_only=batch_only, setup=setup, smearing=smearing,
                            priority=priority, deadline=deadline, detach=detach, five_d=five_d, patience=patience)[0]

    def submit_many(self, b: Any, **terms: Any) -> List[Future]:
        """Sends right-hand sides [n, t, z, y, x, spin, colour] as one request: a future for each, with `masses` all n of one mass after the other.

        The terms are those of `submit`.
        """
        return self._submit(b, True, **terms)

    def solve(self, b: Any, *, progress: Wish = False, **terms: Any) -> Any:
        """Solves M x = b for one right-hand side, or for all of [n, ...], and returns x as what b was; with `masses` [mass, ...] of that. The terms are
        those of `submit`.

        Errors: those of `submit`; if a right-hand side was not solved, the error of the first, when all have ended. Ctrl-C cancels.
        """
        return self._now(b, 'solve', progress, **terms)

    def apply(self, x: Any, part: str = 'M', **terms: Any) -> Any:
        """Applies a part of the operator M = A - H/2, and returns the result as what x was.

        x        a field, or fields [n, ...]; a source, of which all columns are taken; or a propagator, whose columns stay where they are
        part     'M'; 'hop': H; 'clover': A; 'clover_inverse': A^-1; 'clover_inverse_hop': A^-1 H; 'schur': Mhat = 1 - A^-1 H A^-1 H / 4 on a
                 parity, or, with schur='asymmetric', A Mhat; 'smear': x as a solve would see it (with `smearing`; of a source: what it is)
        dagger   its adjoint
        parity   'even', 'odd': fields of one parity (`quarkd.half`). The result is on it; of hops x is on the other one
        The other terms are those of `submit` that are not about solving. Errors: those of `submit`.
        """
        if part == 'solve' or {'tol', 'tol_abs', 'tol_hq', 'max_iter', 'batch_only', 'detach', 'masses'} & set(terms):
            raise ValueError('apply: part must be %s, and nothing is solved' % ', '.join(list(term.WORKS)[1:]))
        if part not in term.WORKS:
            raise ValueError('part %r: must be %s' % (part, ', '.join(list(term.WORKS)[1:])))
        if part == 'schur':
            terms = {'schur': 'symmetric', **terms}
        return self._now(x, part, False, work=part, **terms)

    def _now(self, x: Any, text: str, progress: Wish, **terms: Any) -> Any:
        """Waits for all results, and returns them as what x was."""
        many, back = True, cast(arrays.Back, arrays.as_it_is)
        if isinstance(x, Propagator):
            x = sources.sequential(x, 'id')
        if isinstance(x, sources.Source):
            futures = self._submit_source(x, **terms)
        else:
            report = self.ready(terms.get('setup'))
            array, many, back = arrays.take(x, report.shape_five if terms.get('five_d') else term.halved(report.shape, terms.get('parity')))
            futures = self._submit(array, True, **terms)
        request = futures[0]._request
        try:
            with Show(progress, request, text) as update:
                for f in futures:
                    request.wait(f.rhs, each=update)
                    update()
        except KeyboardInterrupt:
            request.cancel()
            raise
        masses = len(term.mass_list(terms.get('masses')))
        if not many and not masses:
            return back(futures[0]._fetch())
        found = np.stack([f._fetch() for f in futures])
        if masses and many:
            found = found.reshape((masses, -1) + found.shape[1:])
        return back(found)

    def _submit(self, b: Any, many: bool, *, setup: Name = None, patience: Optional[float] = None, parity: Optional[str] = None,
                **terms: Any) -> List[Future]:
        if terms.get('five_d'):
            shape = self.ready(setup).shape_five
        else:
            shape = self._shape(setup, np.shape(b) if not many else np.shape(b)[1:], parity)
        array, has_axis, back = arrays.take(b, shape)
        if has_axis != many:
            raise ValueError('right-hand sides of shape %s: submit takes one of shape %s, submit_many [n, ...] of that' % (np.shape(b), shape))
        params, keep = term.params(setup=setup, dtype=array.dtype, nrhs=len(array), parity=parity, **terms)
        request = Request(self._handle, params.nrhs)
        request.submit(lib.quark_submit, params, self.patience if patience is None else patience)
        if request.bytes != array[0].nbytes:
            self._known_shape.clear()
            raise errors.make(lib.QUARK_BAD_GEOMETRY, 'the daemon has fields of %d bytes now, not of %d' % (request.bytes, array[0].nbytes))
        try:
            request.upload(array, params.nrhs // len(array))
            if terms.get('detach'):
                request.flush()
                request.detach()
        except KeyboardInterrupt:
            request.release()
            raise
        del keep
        return [Future(request, i, array.dtype, shape, back) for i in range(request.nrhs)]

    def _submit_source(self, source: sources.Source, *, dtype: DTypeLike = 'complex128', setup: Name = None, patience: Optional[float] = None,
                       parity: Optional[str] = None, **terms: Any) -> List[Future]:
        """All columns of a source that the daemon makes."""
        report, kind = self.ready(setup), np.dtype(dtype).newbyteorder('<')
        request, _ = self._announce(source, report, kind, False, 0.0, patience, setup=setup, parity=parity, **terms)
        shape = report.shape_five if terms.get('five_d') else term.halved(report.shape, parity)
        return [Future(request, i, kind, shape, arrays.as_it_is) for i in range(request.nrhs)]

    def _announce(self, source: sources.Source, report: Report, dtype: DTypeLike, keep: bool, keep_for: float, patience: Optional[float],
                  project: Optional[Tuple[str, int]] = None, **terms: Any) -> Tuple[Request, List[sources.Column]]:
        """A request for the columns of a source. project: eigenvectors that solutions are projected onto, and how many."""
        columns = source.columns(report.dims, report.flavours, 1 if report.colour_alone else 4)
        smearing = terms.pop('smearing', None) or source.smearing
        params, texts = term.params(dtype=dtype, nrhs=len(columns), smearing=smearing, **terms)
        made = ffi.new('quark_column_t[]', columns)
        params.source, params.column, params.keep = sources.KINDS[source.kind], made, keep
        params.keep_ms, params.smear.shift = term.milliseconds('keep', keep_for), source.shift
        name = ffi.new('char[]', os.fsencode(source.vectors))
        if source.vectors:
            params.vectors = name
        if project:
            texts.append(ffi.new('char[]', os.fsencode(project[0])))
            params.project, params.project_count = texts[-1], project[1]
        request = Request(self._handle, params.nrhs)
        request.submit(lib.quark_submit, params, self.patience if patience is None else patience)
        del texts
        return request, columns

    def _shape(self, setup: Name, given: Tuple[int, ...], parity: Optional[str]) -> Tuple[int, ...]:
        """The daemon is asked for the shape once, and again where it does not fit: another setup may be the default now."""
        known, name = self._known_shape, name_of(setup)
        if name not in known or term.halved(known[name], parity) != given:
            known[name] = self.ready(setup).shape
        return term.halved(known[name], parity)

    def propagator(self, source: Union[sources.Source, str], *, tol: Optional[float] = None, tol_abs: float = 0.0, tol_hq: float = 0.0,
                   dtype: DTypeLike = 'complex128', setup: Name = None, progress: Wish = None, patience: Optional[float] = None, flavour: int = 1,
                   max_iter: int = 10000, priority: int = 4, normalisation: str = 'mass', batch_only: bool = False, keep: float = 0.0) -> Propagator:
        """Solves for all columns of a source (or quarkctl's text of one), and leaves the solutions with the daemon.

        keep: seconds after the last use when the daemon may forget them; 0: its own limit. The other terms are those of `submit`.
        Errors: ValueError, RequestError; the error of the first column that was not solved. Ctrl-C cancels.
        """
        return self._propagators(source, None, tol=tol, tol_abs=tol_abs, tol_hq=tol_hq, dtype=dtype, setup=setup, progress=progress, patience=patience,
                                 flavour=flavour, max_iter=max_iter, priority=priority, normalisation=normalisation, batch_only=batch_only, keep=keep)[0]

    def propagators(self, source: Union[sources.Source, str], masses: Sequence[float], **terms: Any) -> List[Propagator]:
        """Of staggered fermions: a propagator for each mass, from one Krylov space (`masses` of `submit`). The terms are those of `propagator`.

        They are one request: the daemon forgets the solutions when all of them are released.
        """
        return self._propagators(source, term.mass_list(masses), **terms)

    def _propagators(self, source: Union[sources.Source, str], masses: Optional[Tuple[float, ...]], *, tol: Optional[float] = None, tol_abs: float = 0.0,
                     tol_hq: float = 0.0, flavour: int = 1, normalisation: str = 'mass', dtype: DTypeLike = 'complex128', setup: Name = None,
                     progress: Wish = None, patience: Optional[float] = None, keep: float = 0.0, **more: Any) -> List[Propagator]:
        if isinstance(source, str):
            source = sources.parse(source)
        report = self.ready(setup)
        terms = term.known({'tol': tol, 'tol_abs': tol_abs, 'tol_hq': tol_hq, 'flavour': flavour, 'setup': setup, 'normalisation': normalisation})
        request, columns = self._announce(source, report, dtype, True, keep, patience, masses=masses, **more, **terms)
        try:
            with Show(progress, request, ('sequential, ' if source.through else '') + str(source)) as update:
                for i in range(request.nrhs):
                    request.wait(i, each=update)
                    update()
        except KeyboardInterrupt:
            request.cancel()
            raise
        for i in range(request.nrhs):
            if request.results[i].code:
                raise request.results[i].error('column')
        terms['max_iter'] = more.get('max_iter', 10000)
        if not masses:
            return [Propagator(self, request, source, columns, report, dtype, terms)]
        kept = set(masses)
        return [Propagator(self, request, source, columns, report.of_mass(m), dtype, terms, k * len(columns), kept) for k, m in enumerate(masses)]

    def _operator(self, report: Report, terms: Mapping[str, Any]) -> Dict[str, Any]:
        """What files say of the operator (client/README.md)."""
        s = report.setup
        has_kappa, has_csw = bool(s['kappa']), bool(s['kappa'] or s['csw'])
        text = ';'.join([s['action']] + ['%s=%s' % pair for pair in s['parameters'].items()])
        if not s['action']:
            text = 'wilson-clover;kappa=%s;csw=%s' % (real(s['kappa']), real(s['csw']))
        return {'dims': report.dims, 'action': text, 'site_reals': s['site_reals'], 'kappa': s['kappa'] if has_kappa else None,
                'mass': s['mass'], 'csw': s['csw'] if has_csw else None, 'boundary': s['boundary'], 'plaquette': s['plaquette'],
                'gauge': s['gauge'], 'digest': '%016x' % s['digest'], 'normalisation': terms['normalisation'], 'tolerance': terms['tol'] or None,
                'tolerance_abs': terms['tol_abs'] or None, 'tolerance_hq': terms['tol_hq'] or None,
                'flavour': -1 if terms['flavour'] < 0 else int(s['action'].startswith('twisted'))}

    def shutdown(self, now: bool = False) -> None:
        """Ends the daemon when it has finished all accepted requests; now: at once."""
        err = ffi.new('quark_error_t *')
        with self._handle as conn:
            errors.check(lib.quark_shutdown(conn, now, err), err)


@overload
def connect(endpoint: Optional[str] = None, *, comm: None = None, **options: Any) -> Connection: ...  # type: ignore[misc]


@overload
def connect(endpoint: Optional[str] = None, *, comm: Any, grid: Optional[Sequence[int]] = None, gather: bool = False, **options: Any) -> Bricks: ...


def connect(endpoint: Optional[str] = None, *, comm: Any = None, grid: Optional[Sequence[int]] = None, gather: bool = False,
            **options: Any) -> Union[Connection, Bricks]:
    """Connects to quarkd.

    endpoint     "tcp://HOST:PORT", or the file of quarkd --endpoint-file; None: QUARKD_ENDPOINT, or tcp://127.0.0.1:5555
    user         the work goes to this user's queue
    setup        of all calls that do not name one
    server_key, key   as quarkctl's --server-key and --key; None: QUARKD_SERVER_KEY, QUARKD_KEY
    timeout      seconds that single calls wait for an answer
    patience     seconds that calls wait for a daemon that is full or not ready
    local        False: never by shared memory
    client_id    16 bytes: those of an earlier connection, whose session this one takes over; None: random
    comm, grid   of mpi4py, and the parts in x, y, z, t: the ranks share a connection, each with its brick of the lattice (quarkd.mpi)
    gather       rank 0 has the only connection: for more ranks than the daemon has sessions
    Errors: Timeout, RequestError (keys, endpoint), FileNotFoundError, ValueError.
    """
    if comm is not None:
        from .mpi import Bricks
        return Bricks(comm, grid, endpoint, gather, options)
    if grid is not None or gather:
        raise ValueError('grid and gather are for the ranks of a comm')
    return Connection(endpoint, **options)
