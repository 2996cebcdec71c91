"""Files that are replaced as a whole: at any instant the old or the new one is there, complete."""

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
    """A binary file to write into; it takes the place of ``path`` when the block ends, and is removed if it raises.

    The folder is made if it is missing.

    Args:
        survives_power_loss: wait until the disk has it; not needed for what the same command makes again.

    Raises:
        OSError: the folder cannot be made, or the file not be written.
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
    except BaseException:  # also where the caller, whose block runs inside, is interrupted
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file as a whole, or leave it as it was.

    Raises:
        JournalError: the folder is missing, read-only or full.
    """
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror or error}") from error


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


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: it cannot be read, or is cut short or damaged.
    """
    try:
        return json.loads(read_plain(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no complete JSON file: {error}") from error
