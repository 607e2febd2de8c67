"""Progress of a request: a bar of tqdm where there is one, a function of the user's, or nothing."""
from __future__ import annotations

import sys
from typing import Any, Callable, Union

from .request import Progress, Request

Wish = Union[bool, None, Callable[[Progress], object]]


def _in_notebook() -> bool:
    shell = sys.modules.get('IPython')
    running = shell.get_ipython() if shell else None
    return type(running).__name__ == 'ZMQInteractiveShell'


class Show:
    """with Show(wish, request, text) as update: update() as often as one likes.

    wish: None, the default: a bar if stderr is a terminal or in a notebook; True, False: always, never; or a function of a Progress.
    Bars need tqdm; without it there are none.
    """

    def __init__(self, wish: Wish, request: Request, text: str) -> None:
        self._request, self._call, self._bar = request, wish if callable(wish) else None, None
        if wish is True or (wish is None and (sys.stderr.isatty() or _in_notebook())):
            self._bar = self._make(text)

    def _make(self, text: str) -> Any:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return tqdm(total=self._request.nrhs, desc=text, unit='rhs', leave=False)

    def __enter__(self) -> Callable[[], None]:
        return self.update

    def update(self) -> None:
        ended = max(self._request.progress.ended, len(self._request.results))
        total, residual = self._request.nrhs, self._request.progress.residual
        if len(self._request.results) == total:  # none is being solved: what has come out
            residual = max(r.residual for r in self._request.results.values())
        now = Progress(ended, total, residual, self._request.progress.iterations)
        if self._call:
            self._call(now)
        if self._bar is not None:
            self._bar.n = ended
            if now.residual == now.residual:
                self._bar.set_postfix_str('residual %.1e' % now.residual, refresh=False)
            self._bar.refresh()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
