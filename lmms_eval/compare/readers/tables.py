"""Tables of text (CSV, TSV) and workbooks (xlsx) as rows of texts by column."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.workbooks import workbook_library

LONGEST_FIELD = 1 << 27
"""Characters of a field: VLMEvalKit's tables may carry pictures as text."""
_DELIMITERS = ",\t;"
WORKBOOK = "xl/workbook.xml"
"""Member of the archive that a workbook is."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row, the number of the line that it ends in (of a sheet: of the row), and its texts by column."""

    line: int
    values: Mapping[str, str]


@dataclass(slots=True)
class Table:
    """A file of rows below a line of column names; read anew each time, so that no row is kept.

    Raises:
        DataError: the file cannot be read as such a table.
        UsageError: it is a workbook, and openpyxl is not installed.
    """

    path: Path
    is_workbook: bool
    delimiter: str = ","
    columns: tuple[str, ...] = field(init=False)
    """Names without blanks around them, in lower case."""

    def __post_init__(self) -> None:
        _, names = next(self._texts(), (0, ()))
        self.columns = tuple(name.strip().lower() for name in names)

    def rows(self) -> Iterator[TableRow]:
        """Read the rows; empty ones are passed over."""
        texts = self._texts()
        next(texts, None)
        for line, values in texts:
            if any(values):
                if len(values) > len(self.columns) and any(values[len(self.columns) :]):
                    raise DataError(
                        f"{self.path}, line {line}: {len(values)} fields below {len(self.columns)} column names"
                    )
                yield TableRow(line, dict(zip(self.columns, values, strict=False)))

    def _texts(self) -> Iterator[tuple[int, Sequence[str]]]:
        return self._sheet() if self.is_workbook else self._lines()

    def _lines(self) -> Iterator[tuple[int, Sequence[str]]]:
        csv.field_size_limit(LONGEST_FIELD)  # of the whole process: the module knows no other way
        reader = None
        try:
            with open(self.path, encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file, delimiter=self.delimiter)
                for row in reader:
                    yield reader.line_num, row
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except (UnicodeDecodeError, csv.Error) as error:
            line = 1 + (reader.line_num if reader is not None else 0)
            raise DataError(f"{self.path}, near line {line}: no table of UTF-8 text: {error}") from error

    def _sheet(self) -> Iterator[tuple[int, Sequence[str]]]:
        library = workbook_library()
        try:
            with closing(library.load_workbook(self.path, read_only=True, data_only=True)) as book:
                rows = book.worksheets[0].iter_rows(values_only=True)
                for number, row in enumerate(rows, 1):
                    yield number, [_text(cell) for cell in row]
        except Exception as error:
            text = " ".join(str(error).split())
            raise DataError(
                f"{self.path}: openpyxl cannot read this workbook: {type(error).__name__}: {text:.300}"
            ) from error


def open_table(path: Path, is_workbook: bool, fits: Callable[[Sequence[str]], bool]) -> Table | None:
    """Open a file whose columns fit; of text with the delimiter by which they do. ``None``: they do not."""
    for delimiter in _DELIMITERS[: 1 if is_workbook else None]:
        try:
            table = Table(path, is_workbook, delimiter)
        except DataError:
            continue
        if fits(table.columns):
            return table
    return None


def number_of(text: str) -> float | None:
    """Read a number, ``true`` or ``false``; ``None`` for any other text."""
    named = {"true": 1.0, "false": 0.0}.get(text.strip().casefold())
    if named is not None:
        return named
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
