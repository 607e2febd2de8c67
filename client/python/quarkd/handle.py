"""A connection of libquark as Python holds it: who may use it, when it is closed, and what its events say.

Threads may share it. Calls into libquark release the GIL; `with handle as conn` keeps it open meanwhile.
"""
from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Optional

from . import errors
from ._quark import ffi, lib

if TYPE_CHECKING:
    from .request import Request

SLICE_MS = 100  # signals are seen so often


class Handle:
    """Closed by `close`, or when nothing refers to it any more."""

    def __init__(self, endpoint: str, options: Any, server_key: Optional[str] = None) -> None:
        self.endpoint, self.server_key = endpoint, server_key
        conn, err = ffi.new('quark_connection_t **'), ffi.new('quark_error_t *')
        errors.check(lib.quark_connect(endpoint.encode(), options, conn, err), err)
        self._conn = conn[0]
        self._pid = os.getpid()
        self._changed = threading.Condition()  # its lock may be taken again: finalizers run anywhere
        self._calls = 0
        self._closed = False
        self._draining = threading.Lock()
        self.dead: Optional[errors.Error] = None
        self.requests: weakref.WeakValueDictionary[int, Request] = weakref.WeakValueDictionary()

    def __enter__(self) -> Any:
        if os.getpid() != self._pid:
            raise errors.ForkError('this connection belongs to process %d, which this one was forked from: connect again' % self._pid)
        with self._changed:
            if self._closed:
                raise errors.make(lib.QUARK_SHUTTING_DOWN, 'the connection is closed')
            self._calls += 1
        return self._conn

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._calls -= 1
            if self._closed and not self._calls:
                self._changed.notify_all()

    def usable(self) -> bool:
        """Whether calls have a chance: open, and in the process that opened it."""
        return not self._closed and os.getpid() == self._pid

    def close(self) -> None:
        """Waits for calls under way in other threads, at most a moment, and ends the session. More than once is no error."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            if self._closed:
                return
            self._closed = True
            while self._calls:
                self._changed.wait()
        lib.quark_close(self._conn)

    def __del__(self) -> None:
        if hasattr(self, '_draining'):  # else it never was connected
            self.close()

    def client_id(self) -> bytes:
        """16 bytes, which are known to nobody else."""
        out = ffi.new('uint8_t[16]')
        with self as conn:
            lib.quark_client_id(conn, out)
        return bytes(out)

    def fileno(self) -> int:
        """A descriptor that can be read while events wait."""
        with self as conn:
            return lib.quark_fd(conn)

    def drain(self) -> None:
        """Takes all events that wait to the requests that they are about. Does nothing where another thread does so already."""
        if not self._draining.acquire(blocking=False):
            return
        try:
            event, err = ffi.new('quark_event_t *'), ffi.new('quark_error_t *')
            while not self.dead:
                with self as conn:
                    code = lib.quark_event_next(conn, 0, event, err)
                if code:
                    self.dead = errors.of(err)
                elif event.kind == lib.QUARK_EVENT_DEAD:
                    self.dead = errors.make(event.code, 'the connection has ended: ' + errors.code_name(event.code))
                elif event.kind == lib.QUARK_EVENT_NONE:
                    return
                else:
                    request = self.requests.get(event.request)
                    if request:
                        request.take(event)
            for request in list(self.requests.values()):
                request.wake()
        finally:
            self._draining.release()

    def check_alive(self) -> None:
        """Raises why the connection has ended, if it has."""
        if self.dead:
            raise self.dead
