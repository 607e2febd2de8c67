"""quarkd in asyncio: `async with quarkd.aconnect() as q: x = await q.solve(b)`.

Calls that talk to the daemon run in the loop's executor; ends of right-hand sides come through quark_fd. A task that is cancelled
cancels its right-hand sides at the daemon.
"""
from __future__ import annotations

import asyncio
import functools
import weakref
from types import TracebackType
from typing import Any, Callable, Generator, List, Optional, Type

from .connection import Connection, connect
from .future import Future
from .handle import Handle

_watched: weakref.WeakKeyDictionary[Handle, List[Any]] = weakref.WeakKeyDictionary()  # [loop, futures that wait]


async def _run(call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(call, *arguments, **more))


async def _end_of(future: Future) -> None:
    """Waits until it has ended. The descriptor is watched as long as somebody waits."""
    loop, handle = asyncio.get_running_loop(), future._request.handle
    ended: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ended.done():
            ended.set_result(None)

    def from_any_thread() -> None:
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:  # the loop is closed: nobody waits
            pass
    future.when_done(from_any_thread)
    watch = _watched.setdefault(handle, [loop, 0])
    if watch[0] is not loop:  # another loop, which has ended
        watch[:] = [loop, 0]
    watch[1] += 1
    fd = handle.fileno()
    if watch[1] == 1:
        loop.add_reader(fd, handle.drain)
    try:
        await ended
    finally:
        watch[1] -= 1
        if not watch[1]:
            loop.remove_reader(fd)


async def result_of(future: Future) -> Any:
    """What `await future` is."""
    try:
        await _end_of(future)
    except asyncio.CancelledError:
        if future._request.handle.usable():
            await asyncio.shield(_run(future.cancel))
        raise
    return await _run(future.result)


class AsyncConnection:
    """A Connection whose calls are coroutines. `sync` is the connection itself; arguments and errors are those of its methods."""

    def __init__(self, sync: Connection) -> None:
        self.sync = sync

    async def submit(self, b: Any, **terms: Any) -> Future:
        """Connection.submit; `await` the future for the solution."""
        return (await self._submitted(self.sync.submit, b, terms))[0]

    async def submit_many(self, b: Any, **terms: Any) -> List[Future]:
        """Connection.submit_many"""
        return await self._submitted(self.sync.submit_many, b, terms)

    async def _submitted(self, call: Callable[..., Any], b: Any, terms: Any) -> List[Future]:
        """A task that is cancelled while the executor submits cancels what came of it."""
        running = asyncio.ensure_future(_run(call, b, **terms))
        try:
            made = await asyncio.shield(running)
        except asyncio.CancelledError:
            running.add_done_callback(_discard)
            raise
        return made if isinstance(made, list) else [made]

    async def solve(self, b: Any, **terms: Any) -> Any:
        """The solution of one right-hand side; with `masses` Connection.solve, in the executor."""
        if terms.get('masses') is not None:
            return await _run(self.sync.solve, b, **terms)
        return await (await self.submit(b, **terms))

    async def apply(self, x: Any, part: str = 'M', **terms: Any) -> Any:
        """Connection.apply, in the executor."""
        return await _run(self.sync.apply, x, part, **terms)

    async def status(self) -> Any:
        """Connection.status"""
        return await _run(self.sync.status)

    async def propagator(self, *arguments: Any, **terms: Any) -> Any:
        """Connection.propagator, in the executor: it goes on to its end if its task is cancelled."""
        return await _run(self.sync.propagator, *arguments, **dict({'progress': False}, **terms))

    async def propagators(self, *arguments: Any, **terms: Any) -> Any:
        """Connection.propagators, likewise."""
        return await _run(self.sync.propagators, *arguments, **dict({'progress': False}, **terms))

    async def ready(self, *arguments: Any, **terms: Any) -> Any:
        """Connection.ready"""
        return await _run(self.sync.ready, *arguments, **terms)

    async def upload_gauge(self, *arguments: Any, **terms: Any) -> Any:
        """Connection.upload_gauge"""
        return await _run(self.sync.upload_gauge, *arguments, **terms)

    async def setup(self, *arguments: Any, **terms: Any) -> Any:
        """Connection.setup"""
        return await _run(self.sync.setup, *arguments, **terms)

    async def load(self, *arguments: Any, **terms: Any) -> Any:
        """Connection.load"""
        return await _run(self.sync.load, *arguments, **terms)

    async def drop(self, *arguments: Any, **terms: Any) -> None:
        """Connection.drop"""
        await _run(self.sync.drop, *arguments, **terms)

    async def close(self) -> None:
        await _run(self.sync.close)

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()


def _discard(running: asyncio.Future[Any]) -> None:
    if not running.cancelled() and not running.exception():
        made = running.result()
        for future in made if isinstance(made, list) else [made]:
            asyncio.get_running_loop().run_in_executor(None, future.cancel)


class _Connecting:
    """What aconnect returns: to be awaited, or entered by async with."""

    def __init__(self, endpoint: Optional[str], options: Any) -> None:
        self._endpoint, self._options = endpoint, options
        self._made: Optional[AsyncConnection] = None

    async def _connect(self) -> AsyncConnection:
        return AsyncConnection(await _run(connect, self._endpoint, **self._options))

    def __await__(self) -> Generator[Any, None, AsyncConnection]:
        return self._connect().__await__()

    async def __aenter__(self) -> AsyncConnection:
        self._made = await self._connect()
        return self._made

    async def __aexit__(self, *_: object) -> None:
        if self._made:
            await self._made.close()


def aconnect(endpoint: Optional[str] = None, **options: Any) -> _Connecting:
    """An AsyncConnection: `async with aconnect() as q`, or `q = await aconnect()`. The options are those of `connect`."""
    return _Connecting(endpoint, options)
