"""A request of libquark: submitted, uploaded, waited for, fetched, released."""
from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy as np
from numpy.typing import NDArray

from . import arrays, errors
from ._quark import ffi, lib
from .correlator import WallSums
from .handle import SLICE_MS, Handle

PIECE = 8 << 20  # of an upload: signals are seen between two of them
PUT = 10.0       # seconds until one asks whether the daemon takes anything
WALL_TIMES = 512 # time slices of sums, at most
PAUSE = 0.5      # before a full daemon is asked again, unless it says when


@dataclass(frozen=True)
class Result:
    """How a right-hand side ended. status: "OK" if its tolerance was reached; residual: |b - M x| / |b| in double precision, NaN
    if there was no solve; hq_residual: NaN unless tol_hq was given; seconds in the solver; queue_seconds before that, NaN if unknown; bytes of the
    solution, 0 if there is none; unitarity: of links."""

    rhs: int
    code: int
    status: str
    text: str
    residual: float
    iterations: int
    applications: int
    seconds: float
    queue_seconds: float
    norm_b: float
    norm_x: float
    bytes: int
    hq_residual: float
    unitarity: float

    @classmethod
    def of(cls, r: Any) -> Result:
        return cls(r.rhs, r.status, errors.code_name(r.status), ffi.string(r.text).decode('utf-8', 'replace'), r.true_residual, r.iterations,
                   r.applications, r.seconds, r.queue_seconds, r.norm_b, r.norm_x, r.bytes, r.hq_residual, r.unitarity)

    def error(self, what: str = 'right-hand side') -> errors.Error:
        """The exception for a result that is not OK."""
        about = ', residual %.3g after %d iterations' % (self.residual, self.iterations) if self.residual == self.residual else ''
        if self.hq_residual == self.hq_residual:
            about += ', heavy-quark residual %.3g' % self.hq_residual
        e = errors.make(self.code, '%s %d: %s%s%s' % (what, self.rhs, self.status, self.text and ': ' + self.text, about))
        if isinstance(e, errors.SolveError):
            e.rhs = self.rhs
        if isinstance(e, errors.ConvergenceError):
            e.residual, e.hq_residual, e.iterations = self.residual, self.hq_residual, self.iterations
        return e


@dataclass(frozen=True)
class Progress:
    """Right-hand sides that have ended, of total; residual: the largest of those that are being solved, at the end of all."""

    ended: int
    total: int
    residual: float
    iterations: int


def _release(handle: Handle, number: Any) -> None:
    if number[0] and handle.usable():
        try:
            with handle as conn:
                lib.quark_release(conn, number[0], ffi.NULL)
        except errors.Error:  # closed meanwhile, and so released
            pass


class Request:
    """What quark_submit or quark_contract has made. Released when nothing refers to it; what has not ended is cancelled then."""

    def __init__(self, handle: Handle, nrhs: int) -> None:
        self.handle, self.nrhs, self.bytes, self.detached = handle, nrhs, 0, False
        self._acked: Set[int] = set()
        self._number = ffi.new('uint64_t *')
        # There before the request is: an interrupt between its acceptance and the next line does not lose it.
        self._release = weakref.finalize(self, _release, handle, self._number)
        self._release.atexit = False
        self.results: Dict[int, Result] = {}
        self.progress = Progress(0, nrhs, float('nan'), 0)
        self._lock = threading.RLock()
        self._callbacks: Dict[int, List[Callable[[], None]]] = {}

    @classmethod
    def of(cls, handle: Handle, number: int, nrhs: int, size: int) -> Request:
        """One of an earlier connection, which this one has attached to."""
        request = cls(handle, nrhs)
        request._number[0], request.bytes = number, size
        handle.requests[number] = request
        request.detach()
        return request

    def detach(self) -> None:
        """It stays when nothing refers to it, until all solutions are fetched."""
        self.detached = True
        self._release.detach()

    @property
    def number(self) -> int:
        return int(self._number[0])

    def submit(self, call: Callable[..., int], params: Any, patience: float) -> None:
        """Calls quark_submit or quark_contract, again while the daemon has no room, for at most `patience` seconds."""
        size, err = ffi.new('uint64_t *'), ffi.new('quark_error_t *')
        give_up = time.monotonic() + patience
        while True:
            with self.handle as conn:
                code = call(conn, params, self._number, size, err)
            if not code:
                break
            e = errors.of(err)
            if not e.retryable or code in (lib.QUARK_TIMEOUT, lib.QUARK_SHUTTING_DOWN) or time.monotonic() >= give_up:
                raise e
            time.sleep(min(e.retry_after or PAUSE, max(0.0, give_up - time.monotonic())))
        self.bytes = size[0]
        self.handle.requests[self.number] = self

    def token(self) -> Tuple[bytes, int, bytes]:
        """By which others join a request in parts: client, number, token."""
        out, err = ffi.new('uint8_t[16]'), ffi.new('quark_error_t *')
        with self.handle as conn:
            errors.check(lib.quark_join_token(conn, self.number, out, err), err)
        return self.handle.client_id(), self.number, bytes(out)

    def join(self, token: Tuple[bytes, int, bytes], part: int) -> None:
        """Takes a part of a request of another connection."""
        size, err = ffi.new('uint64_t *'), ffi.new('quark_error_t *')
        with self.handle as conn:
            errors.check(lib.quark_join(conn, token[0], token[1], token[2], part, self._number, size, ffi.NULL, err), err)
        self.bytes = size[0]
        self.handle.requests[self.number] = self

    def upload(self, array: NDArray[Any], times: int = 1) -> None:
        """Sends a contiguous array, all right-hand sides, `times` times one after the other. It can be written again then."""
        found = arrays.buffer_of(array)
        if found and array.nbytes * times == self.nrhs * self.bytes:
            self._put(*found, self.nrhs // times)
            return
        data, err = ffi.from_buffer(array.reshape(-1).view(np.uint8)), ffi.new('quark_error_t *')
        for begin in list(range(0, len(data), PIECE)) * times:
            with self.handle as conn:
                code = lib.quark_upload(conn, self.number, data + begin, min(PIECE, len(data) - begin), err)
            errors.check(code, err)

    def _put(self, memory: Any, offset: int, n: int) -> None:
        """The same from a buffer of n, which is read where it is."""
        err = ffi.new('quark_error_t *')
        for rhs in range(self.nrhs):
            with self.handle as conn:
                code = lib.quark_put(conn, self.number, rhs, memory, offset + rhs % n * self.bytes, err)
            errors.check(code, err)
        patience = time.monotonic() + PUT
        while lib.quark_buffer_wait(memory, SLICE_MS, err):
            self.handle.check_alive()
            if time.monotonic() > patience:
                self.flush()  # which knows whether the daemon still takes something

    def take(self, event: Any) -> None:
        """What an event says of this request."""
        if event.kind == lib.QUARK_EVENT_RESULT:
            self._note(Result.of(event.result))
        else:
            self.progress = Progress(event.ended, self.nrhs, event.residual, event.iterations)

    def _note(self, result: Result) -> None:
        with self._lock:
            self.results[result.rhs] = result
            callbacks = self._callbacks.pop(result.rhs, [])
        for call in callbacks:
            call()

    def wake(self) -> None:
        """The connection has ended: whoever waits is to look."""
        with self._lock:
            callbacks = [call for calls in self._callbacks.values() for call in calls]
            self._callbacks.clear()
        for call in callbacks:
            call()

    def when_done(self, rhs: int, call: Callable[[], None]) -> None:
        """Calls, from any thread, when rhs has ended or the connection has; at once if it has."""
        with self._lock:
            if not self.poll(rhs) and not self.handle.dead:
                self._callbacks.setdefault(rhs, []).append(call)
                return
        call()

    def poll(self, rhs: int) -> Optional[Result]:
        """How rhs ended, or None."""
        return self.results.get(rhs) or self._wait(rhs, 0)

    def _wait(self, rhs: int, ms: int) -> Optional[Result]:
        r, err = ffi.new('quark_result_t *'), ffi.new('quark_error_t *')
        with self.handle as conn:
            code = lib.quark_wait(conn, self.number, rhs, ms, r, err)
        if code == lib.QUARK_TIMEOUT:
            return None
        errors.check(code, err)
        result = Result.of(r)
        self._note(result)
        return result

    def wait(self, rhs: int, timeout: Optional[float] = None, each: Optional[Callable[[], None]] = None) -> Result:
        """Waits until rhs has ended, outside the GIL, and calls `each` ten times a second. Errors: Timeout after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        found = self.results.get(rhs)
        while not found:
            left = SLICE_MS if deadline is None else max(0, min(SLICE_MS, int(1000 * (deadline - time.monotonic()))))
            found = self._wait(rhs, left)
            self.handle.drain()
            if found:
                break
            self.handle.check_alive()
            if deadline is not None and time.monotonic() >= deadline:
                raise errors.make(lib.QUARK_TIMEOUT, 'right-hand side %d has not ended in %g s' % (rhs, timeout or 0))
            if each:
                each()
        return found

    def view(self, rhs: int) -> NDArray[np.uint8]:
        """The bytes of a solution, read-only: the daemon's memory if it is on this machine, else a copy that was fetched."""
        size = self.results[rhs].bytes if rhs in self.results else self.bytes
        buffer = np.empty(size, np.uint8)
        view, err = ffi.new('quark_view_t *'), ffi.new('quark_error_t *')
        with self.handle as conn:
            code = lib.quark_view_open(conn, self.number, rhs, ffi.from_buffer(buffer, require_writable=True), size, view, err)
        errors.check(code, err)
        if not view.mapped:
            buffer.flags.writeable = False
            return buffer
        # The array holds the buffer, the buffer the pointer, and the end of the pointer closes the view.
        data = ffi.gc(ffi.cast('char *', view.data), lambda _: lib.quark_view_close(view))
        return np.frombuffer(memoryview(ffi.buffer(data, size)).toreadonly(), np.uint8)

    def wall_sums(self, rhs: int) -> Optional[WallSums]:
        """What came with the result of rhs, which has ended; None: nothing did."""
        err, n = ffi.new('quark_error_t *'), ffi.new('uint32_t *')
        found: List[Optional[NDArray[np.float64]]] = []
        for which in (lib.QUARK_WALL_QUARK, lib.QUARK_WALL_MIDPOINT, lib.QUARK_WALL_AXIAL):
            room = np.empty(WALL_TIMES)
            with self.handle as conn:
                code = lib.quark_wall_sums(conn, self.number, rhs, which, ffi.from_buffer('double[]', room, require_writable=True), len(room), n, err)
            errors.check(code, err)
            found.append(room[:n[0]].copy() if n[0] else None)
        return WallSums(found[0], found[1], found[2]) if found[0] is not None else None

    def flush(self) -> None:
        """Waits until the daemon has all that was uploaded."""
        err = ffi.new('quark_error_t *')
        with self.handle as conn:
            errors.check(lib.quark_flush(conn, self.number, err), err)

    def ack(self, rhs: int) -> None:
        """The daemon may forget the solution; of a detached request all of it after the last one."""
        err = ffi.new('quark_error_t *')
        self._acked.add(rhs)
        with self.handle as conn:
            if self.detached and len(self._acked) == self.nrhs:
                errors.check(lib.quark_forget(conn, self.number, err), err)
            else:
                errors.check(lib.quark_ack(conn, self.number, rhs, err), err)

    def cancel(self, rhs: int = -1) -> None:
        """Ends rhs, or all that have not ended; returns when the daemon knows."""
        err = ffi.new('quark_error_t *')
        with self.handle as conn:
            errors.check(lib.quark_cancel(conn, self.number, rhs, err), err)

    def release(self) -> None:
        """The daemon forgets the request and what it keeps of it. More than once is no error."""
        if self.detached:
            _release(self.handle, self._number)
        self._release()
