"""Reading of files: regular files only, UTF-8 texts, tables, and paths relative to the file that states them."""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lmms_eval.errors import TaskError

MOST_BYTES = 1 << 32
"""Bytes of the largest file that is read as a whole."""
Row = Mapping[str, str]


def read_plain(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a regular file as a whole. Pipes, which wait for a writer, and devices, which may never end, are refused.

    Args:
        path: the file; links are followed.
        most: the largest size in bytes.

    Raises:
        OSError: the file is missing, cannot be read, is not a regular file, or is too large.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            reason = os.strerror(errno.EISDIR) if stat.S_ISDIR(found.st_mode) else "Not a regular file"
            raise OSError(errno.EINVAL, reason, str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"Larger than {most} bytes", str(path))
        return file.read(found.st_size)  # data that is appended meanwhile is left out


def read_plain_text(path: Path, encoding: str = "utf-8", most: int = MOST_BYTES) -> str:
    """Read a regular text file as a whole, with line ends as ``\\n``.

    Raises:
        OSError: as ``read_plain``.
        UnicodeDecodeError: the file has another encoding.
    """
    text = read_plain(path, most).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_text(path: Path, included_by: Path | None = None, most: int = MOST_BYTES) -> str:
    """Read a text file without its byte order mark.

    Raises ``TaskError`` if it is missing, not UTF-8, larger than ``most`` bytes, or no regular file.
    """
    try:
        return read_plain_text(path, "utf-8-sig", most)
    except OSError as error:
        by = f" (included by {included_by})" if included_by else ""
        raise TaskError(f"{path}: cannot be read{by}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: is not UTF-8 text: {error}") from error


def read_table(path: Path) -> Sequence[Row]:
    """Read the rows of a tab-separated file as mappings from column name to cell. Empty lines are skipped.

    Raises ``TaskError`` if the file cannot be read, or a line has too few or too many cells.
    """
    return rows_of(path, state_of(path))


def state_of(path: Path) -> tuple[int, int]:
    """Return the modification time and size of a file. A change of the file changes one of them."""
    try:
        found = path.stat()
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error.strerror or error}") from error
    return found.st_mtime_ns, found.st_size


@functools.lru_cache(maxsize=32)
def rows_of(path: Path, _state: tuple[int, int]) -> Sequence[Row]:
    """Read a table as ``read_table`` does, cached by the state of the file."""
    lines = [(number, line) for number, line in enumerate(read_text(path).splitlines(), 1) if line.strip()]
    if not lines:
        raise TaskError(f"{path}: the table is empty: its first line must hold the names of the columns")
    columns = [name.strip() for name in lines[0][1].split("\t")]
    rows = []
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != len(columns):
            raise TaskError(f"{path}, line {number}: {len(cells)} cells in a table of {len(columns)} columns")
        rows.append(MappingProxyType(dict(zip(columns, cells, strict=True))))
    return tuple(rows)


class StatedPath(str):
    """A path from a YAML file; ``folder`` is the folder of that file."""

    folder: Path

    def __new__(cls, text: str, folder: Path) -> StatedPath:
        made = super().__new__(cls, text)
        made.folder = folder
        return made

    @property
    def in_folder(self) -> Path:
        """The path, relative to the folder of the stating file."""
        return self.folder / Path(self).expanduser()
