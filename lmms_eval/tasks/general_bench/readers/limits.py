"""Limits of an answer's file (a regular file of bounded size), and the error for a damaged one."""

from __future__ import annotations

from pathlib import Path

from lmms_eval.errors import DataError

MAX_BYTES = 1 << 30
"""Largest size of most files. A larger one is not read."""


def regular_file(path: Path, most: int = MAX_BYTES) -> Path:
    """Check that ``path`` is a non-empty file of at most ``most`` bytes, and return it.

    Raises:
        DataError: it is a folder, a device or a pipe, is empty, too large, or cannot be looked at.
    """
    try:
        found, size = path.is_file(), path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if not found:
        raise DataError(f"{path} is no file")
    if not size:
        raise DataError(f"{path} is empty")
    if size > most:
        raise DataError(f"{path} has {size} bytes; more than {most} are not read")
    return path
