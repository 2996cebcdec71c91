"""A file that is written again and again while something else goes on: only the latest content matters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from lmms_eval.errors import JournalError
from lmms_eval.storage.atomic import write_atomically


class LatestFile:
    """Writes in a thread of its own. Content that comes while another is written replaces what waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Condition()
        self._waiting: Callable[[], bytes] | None = None
        self._is_closed = False
        self._error: JournalError | None = None
        self._thread: threading.Thread | None = None

    def put(self, render: Callable[[], bytes]) -> None:
        """Have ``render()`` written soon; it is called in the writing thread.

        Raises:
            JournalError: an earlier content could not be written.
        """
        with self._changed:
            self._raise_error()
            self._waiting = render
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="latest-file", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Wait until the latest content is written. Raises as ``put``."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while (render := self._next()) is not None:
            try:
                write_atomically(self._path, render())
            except JournalError as error:
                self._error = error
                return

    def _next(self) -> Callable[[], bytes] | None:
        with self._changed:
            while self._waiting is None and not self._is_closed:
                self._changed.wait()
            render, self._waiting = self._waiting, None
            return render
