"""The place of a report: a folder or file of its own, to which one process writes at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.viewer.page import is_report

PAGE = "index.html"
_LOCK = ".writing"
"""File in a folder that is being written; a kill leaves it there, without its lock."""


def check_place(out: Path, single_file: bool) -> None:
    """Check that nothing is lost where a report is written.

    Raises:
        UsageError: there is something else than a report.
        LmmsEvalError: it cannot be read.
    """
    try:
        if single_file and out.is_dir():
            raise UsageError(f"{out} is a folder: with --single_file give --out the name of a file")
        if single_file or out.is_file():
            is_free = not out.exists() or (single_file and is_report(out))
        else:
            is_empty = not out.is_dir() or all(item.name == _LOCK for item in out.iterdir())
            is_free = is_empty or is_report(out / PAGE)
    except OSError as error:
        raise LmmsEvalError(f"cannot read {out}: {error.strerror or error}") from error
    if not is_free:
        raise UsageError(f"{out} holds something else than a report: give --out another name")


@contextlib.contextmanager
def writing_alone(folder: Path) -> Iterator[None]:
    """Keep other processes from writing the same report: two of them would mix their pieces.

    Raises:
        UsageError: another process writes it.
        LmmsEvalError: the folder cannot be made or written.
    """
    path = folder / _LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        if not _is_locked(handle, path):
            raise UsageError(f"{folder} is being written by another process: wait for it, or give --out another name")
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _is_locked(handle: int, path: Path) -> bool:
    """Lock the file, which another process may have unlinked in between; where there are no locks it counts as ours."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return path.exists() and os.path.samestat(os.fstat(handle), path.stat())
