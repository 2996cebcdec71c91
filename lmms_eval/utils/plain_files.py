"""Reading files that options name: regular ones alone, up to a bound."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 1 << 32
"""Of a file that is read as a whole."""


def read_plain(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a regular file as a whole: no pipe, which waits for a writer, and no device, which may never end.

    Args:
        path: the file; links are followed.
        most: the largest size in bytes.

    Raises:
        OSError: it is missing, cannot be read, is not a regular file, or is too large.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            told = os.strerror(errno.EISDIR) if stat.S_ISDIR(found.st_mode) else "Not a regular file"
            raise OSError(errno.EINVAL, told, str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"Larger than {most} bytes", str(path))
        return file.read(found.st_size)  # what is written meanwhile is left out


def read_plain_text(path: Path, encoding: str = "utf-8", most: int = MOST_BYTES) -> str:
    """Read a regular text file as a whole, with line ends as ``\\n``.

    Raises:
        OSError: as ``read_plain``.
        UnicodeDecodeError: it is of another encoding.
    """
    text = read_plain(path, most).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
