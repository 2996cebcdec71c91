"""Files of JSON objects, one in each line, whose lines are found again by their offset."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from lmms_eval.errors import DataError


@dataclass(frozen=True, slots=True)
class JsonLine:
    """An object, the number of its line from 1 on, and the offset of its first byte."""

    number: int
    offset: int
    record: dict[str, Any]


def read_json_lines(path: Path) -> Iterator[JsonLine]:
    """Read the objects of a file; blank lines are passed over.

    Raises:
        DataError: the file cannot be read, or a line holds no JSON object.
    """
    offset = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                start, offset = offset, offset + len(line)
                if line.strip():
                    yield JsonLine(number, start, _record(line, path, number))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


class LinesAt:
    """The objects of a file by the offset of their line; the file is opened for the first, and kept open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def record(self, offset: int) -> dict[str, Any]:
        """Read the object whose line begins at an offset.

        Raises:
            DataError: the file cannot be read, or has changed since the offset was noted.
        """
        try:
            if self._file is None:
                self._file = open(self.path, "rb")  # noqa: SIM115 - closed with this object
                weakref.finalize(self, self._file.close)
            self._file.seek(offset)
            line = self._file.readline()
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        return _record(line, self.path, None)


def load_json(data: bytes) -> Any:
    """Read JSON; NaN and infinities, which Python's own writer lets through, are read too. Raises ``ValueError``."""
    try:
        return orjson.loads(data)
    except ValueError:
        try:
            return json.loads(data)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _record(line: bytes, path: Path, number: int | None) -> dict[str, Any]:
    where = f"{path}, line {number}" if number else f"{path} (changed while it was read?)"
    try:
        record = load_json(line)
    except ValueError as error:
        raise DataError(f"{where}: no JSON: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: a JSON object is needed, this is a {type(record).__name__}")
    return record
