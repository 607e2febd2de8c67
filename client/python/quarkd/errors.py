"""How calls fail: `Error` and its subclasses, one for each range of codes of quark.h."""
from __future__ import annotations

import builtins
from typing import Any, Dict, Optional, Type

from ._quark import ffi, lib


class Error(Exception):
    """A call or a right-hand side failed.

    code         the number of quark.h, name its name ("NAN_INPUT")
    retryable    whether the same call may succeed later
    retry_after  the daemon's advice when to try again, in seconds; 0: none
    """

    def __init__(self, text: str, code: int = 401, retryable: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.code, self.retryable, self.retry_after = code, retryable, retry_after

    @property
    def name(self) -> str:
        return code_name(self.code)


class RequestError(Error):
    """The call was not carried out; nothing changed (codes 100 to 199)."""


class SolveError(Error):
    """A right-hand side ended without a solution to its tolerance (codes 200 to 299). rhs: its index in its request."""

    def __init__(self, text: str, code: int = 401, retryable: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(text, code, retryable, retry_after)
        self.rhs: int = 0


class ConvergenceError(SolveError):
    """The tolerance was missed: `residual` (and `hq_residual`, if it was asked for) was reached in `iterations`; `solution` is what there is, or
    None."""

    def __init__(self, text: str, code: int = 401, retryable: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(text, code, retryable, retry_after)
        self.residual: float = float('nan')
        self.hq_residual: float = float('nan')
        self.iterations: int = 0
        self.solution: Optional[Any] = None


class Cancelled(SolveError):
    """The right-hand side was cancelled."""


class EngineError(Error):
    """The engine was lost (codes 300 to 399)."""


class ProcessError(Error):
    """The daemon, or the connection to it, cannot go on (codes 400 to 499)."""


class Timeout(ProcessError, builtins.TimeoutError):
    """Nothing came from the daemon in time, or a wait took longer than it may."""


class ForkError(Error):
    """A connection belongs to the process that made it: a child of fork makes its own."""


SPECIAL: Dict[int, Type[Error]] = {
    lib.QUARK_NOT_CONVERGED: ConvergenceError,
    lib.QUARK_BREAKDOWN: ConvergenceError,
    lib.QUARK_CANCELLED: Cancelled,
    lib.QUARK_TIMEOUT: Timeout,
}
RANGES: Dict[int, Type[Error]] = {1: RequestError, 2: SolveError, 3: EngineError, 4: ProcessError}


def code_name(code: int) -> str:
    """The name of a code.

    >>> code_name(202)
    'NAN_INPUT'
    """
    name: str = ffi.string(lib.quark_code_name(code)).decode()
    return name


def make(code: int, text: str, retryable: bool = False, retry_after: float = 0.0) -> Error:
    """The exception of a code.

    >>> make(200, 'missed')
    ConvergenceError('missed')
    """
    kind = SPECIAL.get(code, RANGES.get(code // 100, Error))
    return kind(text, code, retryable, retry_after)


def of(err: Any) -> Error:
    """The exception of a quark_error_t."""
    text = ffi.string(err.text).decode('utf-8', 'replace')
    return make(err.code, text or code_name(err.code), bool(err.retryable), err.retry_after_ms / 1000)


def check(code: int, err: Any) -> None:
    """Raises what a call has returned with its quark_error_t; nothing if that is QUARK_OK."""
    if code:
        raise of(err)
