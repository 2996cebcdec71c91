"""Files of JSON objects, one in each line, whose lines are found again by their offset."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import orjson

from lmms_eval.errors import DataError


@dataclass(frozen=True, slots=True)
class JsonLine:
    """An object, the number of its line from 1 on, and its place: in a file the offset of the first byte."""

    number: int
    offset: int
    record: dict[str, Any]


def read_json_lines(path: Path) -> Iterator[JsonLine]:
    """Read the objects of a file; blank lines are passed over.

    Raises:
        DataError: the file cannot be read, or a line holds no JSON object.
    """
    for number, offset, line in _raw_lines(path):
        yield JsonLine(number, offset, _record(line, path, number))


def _raw_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of the lines that are not blank."""
    offset = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                start, offset = offset, offset + len(line)
                if line.strip():
                    yield number, start, line
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


class FileSamples:
    """The lines of a samples file; a place is the offset of a line.

    Args:
        path: the file.
        is_strict: a line that is no JSON object is an error; else it is passed over and counted.
    """

    def __init__(self, path: Path, is_strict: bool = True) -> None:
        self.path, self.is_strict = path, is_strict
        self.where = str(path)
        self._at = LinesAt(path)
        self.damaged = 0
        """Lines that the last reading passed over."""

    def lines(self) -> Iterator[JsonLine]:
        """Go through the lines. Raises ``DataError`` as ``read_json_lines``."""
        if self.is_strict:
            yield from read_json_lines(self.path)
            return
        self.damaged = 0
        for number, offset, data in _raw_lines(self.path):
            try:
                record = load_json(data)
            except ValueError:
                record = None
            if isinstance(record, dict):
                yield JsonLine(number, offset, record)
            else:
                self.damaged += 1

    def at(self, place: int) -> dict[str, Any]:
        """Read the line at a place. Raises ``DataError``."""
        return self._at.record(place)


class SampleLines(Protocol):
    """Lines of a samples file, wherever they come from, each found again by its place."""

    @property
    def where(self) -> str:
        """The file or folder, for messages."""
        ...

    @property
    def damaged(self) -> int:
        """Lines that the last reading passed over."""
        ...

    def lines(self) -> Iterator[JsonLine]: ...

    def at(self, place: int) -> dict[str, Any]: ...


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
