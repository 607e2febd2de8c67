"""Solutions to come."""
from __future__ import annotations

import queue
import select
import time
from typing import Any, Generator, Iterable, Iterator, Optional, Tuple

from numpy.typing import NDArray

from . import errors
from .arrays import Back
from .correlator import WallSums
from .handle import SLICE_MS
from .request import Request, Result


class Future:
    """One right-hand side that is being solved. `await future` works in any loop of asyncio."""

    def __init__(self, request: Request, rhs: int, dtype: Any, shape: Tuple[int, ...], back: Back) -> None:
        self._request, self.rhs, self._dtype, self._shape, self._back = request, rhs, dtype, shape, back
        self._value: Optional[Any] = None

    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._value is not None or self._request.poll(self.rhs) is not None

    def info(self, timeout: Optional[float] = None) -> Result:
        """Waits for the end and tells how it was: residual, iterations, seconds. Errors: Timeout, and the end of the connection."""
        return self._request.wait(self.rhs, timeout)

    def wall_sums(self, timeout: Optional[float] = None) -> Optional[WallSums]:
        """Waits for the end; of domain wall fermions what was summed over time slices, else None."""
        self._request.wait(self.rhs, timeout)
        return self._request.wall_sums(self.rhs)

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the solution and returns it as the kind of array that the right-hand side was; of numpy: read-only.

        Errors: ConvergenceError and others of its own right-hand side; Timeout after `timeout` seconds, when it goes on.
        Ctrl-C cancels it at the daemon first.
        """
        if self._value is None:
            try:
                self._request.wait(self.rhs, timeout)
            except KeyboardInterrupt:
                self.cancel()
                raise
            self._value = self._back(self._fetch())
        return self._value

    def exception(self, timeout: Optional[float] = None) -> Optional[errors.Error]:
        """Waits, and returns what `result` would raise; None: there is a solution."""
        result = self._request.wait(self.rhs, timeout)
        return result.error() if result.code else None

    def cancel(self) -> None:
        """Ends it at the daemon, unless it has ended."""
        self._request.cancel(self.rhs)

    def _fetch(self) -> NDArray[Any]:
        """The solution of what has ended. The daemon may forget it then; its memory stays as long as the array."""
        result = self._request.results[self.rhs]
        error = result.error() if result.code else None
        if error and not (result.bytes and isinstance(error, errors.ConvergenceError)):
            raise error
        array: NDArray[Any] = self._request.view(self.rhs).view(self._dtype).reshape(self._shape)
        self._request.ack(self.rhs)
        if error:
            assert isinstance(error, errors.ConvergenceError)
            error.solution = self._back(array)
            raise error
        return array

    def _fetch_when_done(self) -> NDArray[Any]:
        self._request.wait(self.rhs)
        return self._fetch()

    def when_done(self, call: Any) -> None:
        """Calls, from any thread, when it has ended or the connection has."""
        self._request.when_done(self.rhs, call)

    def __await__(self) -> Generator[Any, None, Any]:
        from . import aio
        return aio.result_of(self).__await__()

    def __repr__(self) -> str:
        found = self._request.results.get(self.rhs)
        return 'Future(request %d, rhs %d, %s)' % (self._request.number, self.rhs, found.status if found else 'not ended')


def as_completed(futures: Iterable[Future], timeout: Optional[float] = None) -> Iterator[Future]:
    """The futures in the order in which they end. Errors: Timeout, if one has not ended `timeout` seconds after the first call."""
    waiting = list(futures)
    ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
    deadline = None if timeout is None else time.monotonic() + timeout
    handles = {id(f._request.handle): f._request.handle for f in waiting}
    for f in waiting:
        f.when_done(lambda f=f: ended.put(f))
    for _ in waiting:
        while ended.empty():
            if deadline is not None and time.monotonic() >= deadline:
                raise errors.make(404, 'not all right-hand sides have ended in %g s' % (timeout or 0))
            # Another thread may take the events: then the next look finds what it has found.
            select.select([handle.fileno() for handle in handles.values()], [], [], SLICE_MS / 1000)
            for handle in handles.values():
                handle.drain()
        yield ended.get()


