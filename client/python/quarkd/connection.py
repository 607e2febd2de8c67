"""A connection to quarkd."""
from __future__ import annotations

import errno
import os
import stat
import time
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, Union

import numpy as np
from numpy.typing import DTypeLike

from . import arrays, errors, notebook
from . import source as sources
from ._quark import ffi, lib
from .future import Future
from .handle import Handle
from .progress import Show, Wish
from .propagator import Propagator
from .request import Request
from .smearing import Gauss, real
from .status import Report, Setup

BASES = {'degrand-rossi': lib.QUARK_DEGRAND_ROSSI, 'ukqcd': lib.QUARK_UKQCD, 'dirac-pauli': lib.QUARK_DIRAC_PAULI, 'openqcd': lib.QUARK_OPENQCD}
NORMALISATIONS = {'mass': lib.QUARK_MASS, 'kappa': lib.QUARK_KAPPA}
KEY_TEXT = 40
LOOK = 0.1  # seconds between two looks at a daemon that is not ready
Name = Union[str, Setup, None]


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


def _name(setup: Name) -> Optional[str]:
    return setup.name if isinstance(setup, Setup) else setup


class Connection:
    """A connection to quarkd, made by `connect`. Threads may share it; a child of fork may not use it.

    patience: seconds that calls wait for a daemon that is full or not ready
    """

    def __init__(self, endpoint: Optional[str] = None, *, user: Optional[str] = None, program: str = 'quarkd-python', setup: Name = None,
                 server_key: Optional[str] = None, key: Optional[str] = None, timeout: float = 10.0, local: bool = True,
                 patience: float = 300.0) -> None:
        given = endpoint or os.environ.get('QUARKD_ENDPOINT') or 'tcp://127.0.0.1:5555'
        server_key = server_key or os.environ.get('QUARKD_SERVER_KEY') or None
        key = key or os.environ.get('QUARKD_KEY') or None
        self.endpoint, self.patience, self.setup_name = _endpoint(given), patience, _name(setup)
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
        self._handle = Handle(self.endpoint, options)
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
        name = _name(setup)
        if name is not None and name != self.setup_name:
            return self._ready_elsewhere(name, patience)
        give_up = time.monotonic() + (self.patience if patience is None else patience)
        while True:
            report = self.status()
            if report.state == 'ready':
                return report
            if time.monotonic() >= give_up:
                raise errors.make(lib.QUARK_TIMEOUT, 'the daemon is not ready: %s %s' % (report.state, report.engine['last_error']))
            time.sleep(LOOK)

    def _ready_elsewhere(self, name: str, patience: Optional[float]) -> Report:
        if name not in self._reports:
            self._wait_for(name, self.patience if patience is None else patience)
            with Connection(self.endpoint, setup=name, local=False, **self._again) as other:
                self._reports[name] = other.ready(None, patience)
        return self._reports[name]

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of a right-hand side: t, z, y, x, spin, colour; of doublets with the axis flavour before. Waits until the daemon is ready."""
        return self.ready().shape

    def __repr__(self) -> str:
        return 'Connection(%r)' % self.endpoint

    def _repr_html_(self) -> str:
        report = self.status()
        return notebook.table('quarkd %s at %s' % (report.version, self.endpoint), report.rows())

    # ---- solves ----

    def submit(self, b: Any, *, tol: float = 1e-10, max_iter: int = 10000, basis: str = 'degrand-rossi', normalisation: str = 'mass',
               flavour: int = 1, setup: Name = None, smearing: Optional[Gauss] = None, priority: int = 4, deadline: float = 0.0,
               patience: Optional[float] = None) -> Future:
        """Sends one right-hand side and returns at once with its solution to come.

        b         [t, z, y, x, spin, colour], what numpy takes or what has DLPack in the memory of the host; complex64 travels and
                  comes back as 32 bit, complex128 as 64 bit. An array that is contiguous is not copied here.
        tol       relative residual |b - M x| / |b|
        deadline  seconds from acceptance; 0: none
        flavour   1 or -1: which of the two operators of an action with flavours
        smearing  of b, before the solve
        Errors: TypeError, ValueError (numbers, shape, words), RequestError. How the solve ends is told by the future.
        """
        futures = self._submit(b, False, tol=tol, max_iter=max_iter, basis=basis, normalisation=normalisation, flavour=flavour, setup=setup,
                               smearing=smearing, priority=priority, deadline=deadline, patience=patience)
        return futures[0]

    def submit_many(self, b: Any, **terms: Any) -> List[Future]:
        """Sends right-hand sides [n, t, z, y, x, spin, colour] as one request: a future for each. The terms are those of `submit`."""
        return self._submit(b, True, **terms)

    def solve(self, b: Any, *, progress: Wish = False, **terms: Any) -> Any:
        """Solves M x = b for one right-hand side, or for all of [n, ...], and returns x as what b was. The terms are those of `submit`.

        Errors: those of `submit`; if a right-hand side was not solved, the error of the first, when all have ended. Ctrl-C cancels.
        """
        array, many, back = arrays.take(b, self.ready(terms.get('setup')).shape)
        futures = self._submit(array, True, **terms)
        request = futures[0]._request
        try:
            with Show(progress, request, 'solve') as update:
                for f in futures:
                    request.wait(f.rhs, each=update)
                    update()
        except KeyboardInterrupt:
            request.cancel()
            raise
        if not many:
            return back(futures[0]._fetch())
        return back(np.stack([f._fetch() for f in futures]))

    def _submit(self, b: Any, many: bool, *, setup: Name = None, patience: Optional[float] = None, **terms: Any) -> List[Future]:
        shape = self._shape(setup, np.shape(b) if not many else np.shape(b)[1:])
        array, has_axis, back = arrays.take(b, shape)
        if has_axis != many:
            raise ValueError('right-hand sides of shape %s: submit takes one of shape %s, submit_many [n, ...] of that' % (np.shape(b), shape))
        params, keep = self._params(setup=setup, dtype=array.dtype, nrhs=len(array), **terms)
        request = Request(self._handle, len(array))
        request.submit(lib.quark_submit, params, self.patience if patience is None else patience)
        if request.bytes != array[0].nbytes:
            self._known_shape.clear()
            raise errors.make(lib.QUARK_BAD_GEOMETRY, 'the daemon has fields of %d bytes now, not of %d' % (request.bytes, array[0].nbytes))
        try:
            request.upload(array)
        except KeyboardInterrupt:
            request.release()
            raise
        del keep
        return [Future(request, i, array.dtype, shape, back) for i in range(len(array))]

    def _shape(self, setup: Name, given: Tuple[int, ...]) -> Tuple[int, ...]:
        """The daemon is asked for the shape once, and again where it does not fit: another setup may be the default now."""
        known, name = self._known_shape, _name(setup)
        if known.get(name) != given:
            known[name] = self.ready(setup).shape
        return known[name]

    def _params(self, *, dtype: DTypeLike, nrhs: int, tol: float = 1e-10, max_iter: int = 10000, basis: str = 'degrand-rossi',
                normalisation: str = 'mass', flavour: int = 1, setup: Name = None, smearing: Optional[Gauss] = None, priority: int = 4,
                deadline: float = 0.0) -> Tuple[Any, List[Any]]:
        """A quark_params_t and what must live as long."""
        if basis not in BASES or normalisation not in NORMALISATIONS or flavour not in (1, -1) or not 0 <= priority <= 9:
            raise ValueError('basis %r, normalisation %r, flavour %r, priority %r: must be one of %s; mass or kappa; 1 or -1; 0 to 9'
                             % (basis, normalisation, flavour, priority, ', '.join(BASES)))
        if not (0 <= deadline < 1e9 and 1 <= max_iter < 1 << 63):
            raise ValueError('deadline %r s, max_iter %r: must be 0 to 1e9 and positive' % (deadline, max_iter))
        p, keep = ffi.new('quark_params_t *'), []
        lib.quark_params_init(p)
        p.nrhs, p.dtype, p.tol, p.max_iter = nrhs, arrays.DTYPES[np.dtype(dtype).newbyteorder('<')], tol, max_iter
        p.basis, p.normalisation, p.flavour, p.priority = BASES[basis], NORMALISATIONS[normalisation], flavour, priority
        p.deadline_ms = int(deadline * 1000)
        name = _name(setup)
        if name is not None:
            keep.append(ffi.new('char[]', os.fsencode(name)))
            p.setup = keep[-1]
        if smearing:
            smearing.fill(p.smear)
        return p, keep

    def propagator(self, source: Union[sources.Source, str], *, tol: float = 1e-10, dtype: DTypeLike = 'complex128', setup: Name = None,
                   progress: Wish = None, patience: Optional[float] = None, flavour: int = 1, max_iter: int = 10000, priority: int = 4,
                   normalisation: str = 'mass', keep: float = 0.0) -> Propagator:
        """Solves for all columns of a source (or quarkctl's text of one), and leaves the solutions with the daemon.

        keep: seconds after the last use when the daemon may forget them; 0: its own limit. The other terms are those of `submit`.
        Errors: ValueError, RequestError; the error of the first column that was not solved. Ctrl-C cancels.
        """
        if isinstance(source, str):
            source = sources.parse(source)
        report = self.ready(setup)
        columns = source.columns(report.dims, report.flavours)
        terms: Dict[str, Any] = {'tol': tol, 'flavour': flavour, 'setup': setup, 'normalisation': normalisation, 'basis': 'degrand-rossi'}
        params, texts = self._params(dtype=dtype, nrhs=len(columns), smearing=source.smearing, max_iter=max_iter, priority=priority, **terms)
        made = ffi.new('quark_column_t[]', columns)
        params.source, params.column, params.keep = sources.KINDS[source.kind], made, True
        params.keep_ms = int(keep * 1000)
        request = Request(self._handle, len(columns))
        request.submit(lib.quark_submit, params, self.patience if patience is None else patience)
        del texts
        try:
            with Show(progress, request, str(source)) as update:
                for i in range(len(columns)):
                    request.wait(i, each=update)
                    update()
        except KeyboardInterrupt:
            request.cancel()
            raise
        for i in range(len(columns)):
            if request.results[i].code:
                raise request.results[i].error('column')
        return Propagator(self, request, source, columns, report, dtype, terms)

    def _operator(self, report: Report, terms: Mapping[str, Any]) -> Dict[str, Any]:
        """What files say of the operator (client/README.md)."""
        s = report.setup
        has_kappa, has_csw = bool(s['kappa']), bool(s['kappa'] or s['csw'])
        text = ';'.join([s['action']] + ['%s=%s' % pair for pair in s['parameters'].items()])
        if not s['action']:
            text = 'wilson-clover;kappa=%s;csw=%s' % (real(s['kappa']), real(s['csw']))
        return {'dims': report.dims, 'action': text, 'site_reals': s['site_reals'], 'kappa': s['kappa'] if has_kappa else None,
                'mass': s['mass'], 'csw': s['csw'] if has_csw else None, 'boundary': s['boundary'], 'plaquette': s['plaquette'],
                'gauge': s['gauge'], 'digest': '%016x' % s['digest'], 'normalisation': terms['normalisation'], 'tolerance': terms['tol'],
                'flavour': -1 if terms['flavour'] < 0 else int(s['action'].startswith('twisted'))}

    # ---- setups; all calls but setups need the role operate ----

    def setups(self) -> List[Setup]:
        """The setups of the daemon."""
        found, count, err = ffi.new('quark_setup_t[]', lib.QUARK_SETUPS), ffi.new('uint32_t *'), ffi.new('quark_error_t *')
        with self._handle as conn:
            errors.check(lib.quark_setups(conn, found, count, err), err)
        return [Setup.of(found[i]) for i in range(count[0])]

    def _wait_for(self, name: str, patience: float) -> Setup:
        give_up = time.monotonic() + patience
        while True:
            found = [s for s in self.setups() if s.name == name]
            if not found:
                raise errors.make(lib.QUARK_NOT_FOUND, 'setup "%s": the daemon has none of this name' % name)
            found[0].check()
            if found[0].state == 'ready':
                return found[0]
            if time.monotonic() >= give_up:
                raise errors.make(lib.QUARK_TIMEOUT, 'setup "%s" is not ready in %g s: %s' % (name, patience, found[0].state))
            time.sleep(LOOK)

    def load(self, name: str, *, gauge: Optional[str] = None, kappa: Optional[float] = None, mass: Optional[float] = None,
             csw: Optional[float] = None, action: Optional[str] = None, parameters: Optional[Mapping[str, Any]] = None,
             boundary: Optional[str] = None, solver: Optional[str] = None, precision: Optional[str] = None, slots: int = -1,
             dims: Optional[Tuple[int, int, int, int]] = None, make_default: bool = False, ignore_checksum: bool = False,
             evolve_from: Optional[str] = None, wait: bool = True, patience: Optional[float] = None) -> Setup:
        """Loads a setup beside those that are there, and waits until it is ready unless told otherwise.

        What is None is as quarkd was started with. gauge: a path below one of the daemon's roots. parameters: of the action.
        Errors: RequestError; why the setup failed; Timeout.
        """
        load, keep = ffi.new('quark_load_t *'), []
        lib.quark_load_init(load)
        for member, text in (('name', name), ('gauge', gauge), ('boundary', boundary), ('solver', solver), ('precision', precision),
                             ('action', action), ('evolve_from', evolve_from)):
            if text is not None:
                keep.append(ffi.new('char[]', os.fsencode(text)))
                setattr(load, member, keep[-1])
        for member, number in (('kappa', kappa), ('mass', mass), ('csw', csw)):
            if number is not None:
                setattr(load, member, number)
        pairs = []
        for k, v in (parameters or {}).items():
            keep += [ffi.new('char[]', k.encode()), ffi.new('char[]', (real(v) if isinstance(v, float) else str(v)).encode())]
            pairs.append(keep[-2:])
        array = ffi.new('quark_parameter_t[]', pairs) if pairs else ffi.NULL
        load.parameter, load.nparameter, load.slots = array, len(pairs), slots
        load.make_default, load.ignore_checksum = make_default, ignore_checksum
        if dims:
            load.dims = list(dims)
        err = ffi.new('quark_error_t *')
        self._reports.pop(name, None)
        with self._handle as conn:
            errors.check(lib.quark_load(conn, load, err), err)
        del keep
        if wait:
            return self._wait_for(name, self.patience if patience is None else patience)
        return next(s for s in self.setups() if s.name == name)

    def drop(self, setup: Name, now: bool = False) -> None:
        """Drops a setup when its open requests have ended; now: they are cancelled."""
        name, err = _name(setup) or '', ffi.new('quark_error_t *')
        self._reports.pop(name, None)
        with self._handle as conn:
            errors.check(lib.quark_drop(conn, os.fsencode(name), now, err), err)

    def make_default(self, setup: Name) -> None:
        """Makes a setup that is ready the one of requests that name none."""
        err = ffi.new('quark_error_t *')
        with self._handle as conn:
            errors.check(lib.quark_make_default(conn, os.fsencode(_name(setup) or ''), err), err)

    def shutdown(self, now: bool = False) -> None:
        """Ends the daemon when it has finished all accepted requests; now: at once."""
        err = ffi.new('quark_error_t *')
        with self._handle as conn:
            errors.check(lib.quark_shutdown(conn, now, err), err)


def connect(endpoint: Optional[str] = None, **options: Any) -> Connection:
    """Connects to quarkd.

    endpoint     "tcp://HOST:PORT", or the file of quarkd --endpoint-file; None: QUARKD_ENDPOINT, or tcp://127.0.0.1:5555
    user         the work goes to this user's queue
    setup        of all calls that do not name one
    server_key, key   as quarkctl's --server-key and --key; None: QUARKD_SERVER_KEY, QUARKD_KEY
    timeout      seconds that single calls wait for an answer
    patience     seconds that calls wait for a daemon that is full or not ready
    local        False: never by shared memory
    Errors: Timeout, RequestError (keys, endpoint), FileNotFoundError, ValueError.
    """
    return Connection(endpoint, **options)
