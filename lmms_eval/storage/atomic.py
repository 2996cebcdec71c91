"""Atomic replacement of files: at any moment a reader finds the complete old file or the complete new one."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from lmms_eval.errors import DataError, JournalError
from lmms_eval.utils.files import read_plain


@contextlib.contextmanager
def replacing(path: Path, survives_power_loss: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary binary file that replaces ``path`` when the block ends, and is removed if the block raises.

    A missing folder is created.

    Args:
        path: the file to replace.
        survives_power_loss: wait until the data are on disk; not needed for data that the same command can recreate.

    Raises:
        OSError: the folder cannot be created, or the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb", buffering=1 << 20) as file:
            yield file
            file.flush()
            if survives_power_loss:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # also a KeyboardInterrupt in the caller's block
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file completely, or leave it unchanged. Raises ``JournalError`` if it cannot be written."""
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror or error}") from error


class LatestFile:
    """Writes a file in a background thread. Of the contents that arrive during a write only the latest is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Condition()
        self._waiting: Callable[[], bytes] | None = None
        self._is_closed = False
        self._error: JournalError | None = None
        self._thread: threading.Thread | None = None

    def put(self, render: Callable[[], bytes]) -> None:
        """Let the thread call ``render()`` and write the result. Raises ``JournalError`` if an earlier write failed."""
        with self._changed:
            self._raise_error()
            self._waiting = render
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="latest-file", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Wait until the latest content is written. Raises ``JournalError`` if a write failed."""
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
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting is not None or self._is_closed)
                render, self._waiting = self._waiting, None
            if render is None:
                return
            try:
                write_atomically(self._path, render())
            except JournalError as error:
                self._error = error
                return


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. Raises ``DataError`` if it cannot be read or is damaged."""
    try:
        return json.loads(read_plain(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no complete JSON file: {error}") from error
