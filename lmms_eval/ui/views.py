"""Live views of jobs: one follows the journals of a job while somebody looks at it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from lmms_eval.http.guard import Guard
from lmms_eval.viewer.live.app import live_app
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.options import ReportOptions

MOST_VIEWS = 4
IDLE_S = 120.0
"""A view that nobody has asked for so long is closed when another one is opened."""


@dataclass(slots=True)
class _Open:
    watch: Watch
    app: ASGIApp
    asked: float


class Views:
    """The views that are open. A context manager: it closes them.

    Args:
        guard: who may look.
        is_ending: the server is about to end.
    """

    def __init__(self, guard: Guard, is_ending: Callable[[], bool]) -> None:
        self._guard, self._is_ending = guard, is_ending
        self._lock = threading.Lock()
        self._open: OrderedDict[Path, _Open] = OrderedDict()

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            while self._open:
                self._open.popitem()[1].watch.__exit__()

    def app(self, output: Path) -> ASGIApp:
        """The view of an output folder. Raises ``DataError`` where there is none yet."""
        with self._lock:
            found = self._open.pop(output, None)
            if found is None:
                watch = Watch(output, ReportOptions()).__enter__()
                found = _Open(watch, live_app(watch, self._guard, self._is_ending), 0.0)
            found.asked = time.monotonic()
            self._open[output] = found
            self._close_old()
            return found.app

    def _close_old(self) -> None:
        """Close views beyond the number that is kept, and those that nobody looks at any more."""
        now = time.monotonic()
        for output, view in [*self._open.items()]:
            if len(self._open) > MOST_VIEWS or now - view.asked > IDLE_S:
                del self._open[output]
                view.watch.__exit__()
