"""Text files beside tasks: UTF-8 texts, and tab-separated tables. Without YAML, which takes 20 ms to import."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lmms_eval.errors import TaskError

Row = Mapping[str, str]


def read_text(path: Path, included_by: Path | None = None) -> str:
    """Read a file, without a byte order mark. Raises ``TaskError`` if it is missing or no UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        by = f" (included by {included_by})" if included_by else ""
        raise TaskError(f"{path}: cannot be read{by}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: is not UTF-8 text: {error}") from error


def read_table(path: Path) -> Sequence[Row]:
    """The rows of a tab-separated file as mappings, cell by column name; lines that are empty are passed over.

    Raises:
        TaskError: it cannot be read, or a line has too few or too many cells.
    """
    return rows_of(path, state_of(path))


def state_of(path: Path) -> tuple[int, int]:
    """Return the time and size of a file, which change when it does."""
    try:
        found = path.stat()
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error.strerror or error}") from error
    return found.st_mtime_ns, found.st_size


@functools.lru_cache(maxsize=32)
def rows_of(path: Path, _state: tuple[int, int]) -> Sequence[Row]:
    """Do as ``read_table`` for a file in a known state."""
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
