"""The contract of the readers: a format tells whether a file is its own, and reads it as a run."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.json_lines import load_json

LONGEST_LINE = 1 << 26
"""Bytes of a first line that are looked at: longer ones are of no known format."""


class Looked:
    """A file as far as it was looked at to recognise its format."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def first_line(self) -> bytes:
        """The first line that is not blank. Raises ``DataError`` if the file cannot be read."""
        try:
            with open(self.path, "rb") as file:
                while line := file.readline(LONGEST_LINE):
                    if line.strip():
                        return line
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        return b""

    @cached_property
    def record(self) -> dict[str, Any]:
        """The JSON object in the first line; empty if there is none."""
        return _object(self.first_line)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON object of the first line, else the one that the file is as a whole; empty if there is none."""
        if self.record or not self.first_line.lstrip().startswith(b"{"):
            return self.record
        try:
            return _object(self.path.read_bytes())
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error

    @cached_property
    def members(self) -> frozenset[str]:
        """Names of the files in a zip archive; empty if it is none."""
        if not self.first_line.startswith(b"PK"):
            return frozenset()
        try:
            with zipfile.ZipFile(self.path) as archive:
                return frozenset(archive.namelist())
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
            return frozenset()


@dataclass(frozen=True, slots=True)
class Format:
    """A format of runs."""

    needs: str
    """Content of a file of it, for the line that refuses an unknown one."""
    is_this: Callable[[Looked], bool]
    read: Callable[[Path], RunRows]
    """Raises ``DataError`` or ``UsageError``. The run's name need not be unique yet."""


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = load_json(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
