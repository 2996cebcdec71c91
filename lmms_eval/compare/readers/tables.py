"""Tables of text (CSV, TSV) and workbooks (xlsx): their rows, and the format with columns ``id`` and ``score``."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.contract import NO_FILTER, FileHead, Format, TaskBuilder
from lmms_eval.compare.runs import DocumentTexts, RunRows, TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.columns import metadata_of
from lmms_eval.results.sample import finite
from lmms_eval.tasks._task_utils.workbooks import workbook_library

LONGEST_FIELD = 1 << 27
"""Most characters of a field: VLMEvalKit's tables may contain pictures as text."""
_DELIMITERS = ",\t;"
WORKBOOK = "xl/workbook.xml"
"""File in a zip archive that marks a workbook."""


class FileRow(NamedTuple):
    """A row: the number of its last line (in a sheet, of the row), and its texts by column."""

    line: int
    values: Mapping[str, str]


class TableFile:
    """A file with a line of column names and rows. It is read again on each iteration, so that no rows are kept.

    Raises:
        DataError: the file is not such a table.
        UsageError: the file is a workbook and openpyxl is not installed.
    """

    def __init__(self, path: Path, is_workbook: bool, delimiter: str = ",") -> None:
        self.path, self.is_workbook, self.delimiter = path, is_workbook, delimiter
        _, names = next(self._texts(), (0, ()))
        self.columns = tuple(name.strip().lower() for name in names)
        """Stripped names, in lower case."""

    def rows(self) -> Iterator[FileRow]:
        """Iterate over the rows, skipping empty ones."""
        texts = self._texts()
        next(texts, None)
        for line, values in texts:
            if any(values):
                if len(values) > len(self.columns) and any(values[len(self.columns) :]):
                    raise DataError(
                        f"{self.path}, line {line}: {len(values)} fields below {len(self.columns)} column names"
                    )
                yield FileRow(line, dict(zip(self.columns, values, strict=False)))

    def _texts(self) -> Iterator[tuple[int, Sequence[str]]]:
        return self._sheet() if self.is_workbook else self._lines()

    def _lines(self) -> Iterator[tuple[int, Sequence[str]]]:
        csv.field_size_limit(LONGEST_FIELD)  # csv has only a limit for the whole process
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
            raise DataError(f"{self.path}, near line {line}: not a table of UTF-8 text: {error}") from error

    def _sheet(self) -> Iterator[tuple[int, Sequence[str]]]:
        library = workbook_library()
        try:
            with closing(library.load_workbook(self.path, read_only=True, data_only=True)) as book:
                rows = book.worksheets[0].iter_rows(values_only=True)
                for number, row in enumerate(rows, 1):
                    yield number, [_text(cell) for cell in row]
        except Exception as error:  # openpyxl raises errors of zip, XML and cells as they come
            text = " ".join(str(error).split())
            raise DataError(
                f"{self.path}: openpyxl cannot read this workbook: {type(error).__name__}: {text:.300}"
            ) from error


def open_table(head: FileHead, fits: Callable[[Sequence[str]], bool]) -> TableFile | None:
    """Open a table whose columns fit, trying all delimiters; ``None`` if the file is not such a table."""
    is_workbook = WORKBOOK in head.members
    for delimiter in () if head.members and not is_workbook else _DELIMITERS[: 1 if is_workbook else None]:
        try:
            table = TableFile(head.path, is_workbook, delimiter)
        except DataError:
            continue
        if fits(table.columns):
            return table
    return None


def number_of(text: str) -> float | None:
    """Parse a number, ``true`` or ``false``; ``None`` for any other text."""
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


KIND = "table"
_IDS = ("id", "doc_id", "sample_id", "index")
"""Names of the column of ids; the first existing one is used."""
_KNOWN = frozenset({"score", "cluster", "task", "status", "hash", "metric", "answer", "target", *_IDS})
_STATUSES: Mapping[str, Status] = {"scored": "scored", "unscored": "unscored", "failed": "failed"}


def fits(columns: Sequence[str]) -> bool:
    return "score" in columns and any(name in columns for name in _IDS)


def read_table(path: Path) -> RunRows:
    """Read a table with the columns ``id`` and ``score``.

    The columns ``cluster``, ``task``, ``status``, ``hash``, ``metric``, ``answer`` and ``target`` have their usual
    meaning. Other columns are metadata.

    Raises:
        DataError: a row has no id, or an unknown status.
    """
    table = open_table(FileHead(path), fits)
    if table is None:
        raise DataError(f"{path}: no columns id and score")
    id_column = next(name for name in _IDS if name in table.columns)
    tasks: dict[str, _Task] = {}
    for row in table.rows():
        name = row.values.get("task") or path.stem
        if name not in tasks:
            tasks[name] = _Task(TaskBuilder(name), table, path.stem, id_column, not row.values.get("task"))
        tasks[name].add(row)
    return RunRows(
        name=path.stem,
        source=str(path),
        kind=KIND,
        tasks={name: task.rows() for name, task in tasks.items()},
        notes=tuple(note for task in tasks.values() for note in task.builder.notes),
    )


class _Task:
    """The rows of one task of a table.

    Args:
        builder: the builder of its rows.
        table: the table.
        default: task of rows that name none.
        id_column: name of the column of ids.
        is_called_after_file: whether no row names the task.
    """

    def __init__(
        self, builder: TaskBuilder, table: TableFile, default: str, id_column: str, is_called_after_file: bool
    ) -> None:
        self.builder, self.table, self.default, self.id_column = builder, table, default, id_column
        self.is_called_after_file = is_called_after_file
        self.metrics: dict[str, set[int]] = {}
        """Rows that have a score, by metric."""

    def add(self, row: FileRow) -> None:
        values = row.values
        where = f"{self.table.path}, line {row.line}"
        doc_id = values.get(self.id_column, "")
        if not doc_id:
            raise DataError(f"{where}: no {self.id_column}")
        stated = values.get("status", "").strip().lower()
        if stated and stated not in _STATUSES:
            raise DataError(f"{where}: status {stated!r:.40}; give scored, unscored or failed, or leave it empty")
        number = self.builder.row(doc_id)
        metric = values.get("metric") or "score"
        seen = self.metrics.setdefault(metric, set())
        if number in seen:
            self.builder.pass_over("further rows of documents that were there already: the first counts")
            return
        seen.add(number)
        self.builder.end(number, self._score(number, metric, values.get("score", ""), stated))
        self.builder.describe(number, values.get("hash"), values.get("cluster") or None)

    def _score(self, row: int, metric: str, text: str, stated: str) -> Status:
        score = finite(number_of(text))
        is_scored = _STATUSES.get(stated, "scored") == "scored"
        self.builder.score(row, metric, NO_FILTER, score if is_scored else None)
        if not is_scored:
            return _STATUSES[stated]
        if score is None:
            self.builder.pass_over(f"values of {metric} that are not finite numbers: unscored")
        return "unscored" if score is None else "scored"

    def rows(self) -> TaskRows:
        self.builder.states_filter = False

        @cache
        def answers() -> dict[int, DocumentTexts]:
            found: dict[int, DocumentTexts] = {}
            for number, values in self._values():
                found.setdefault(number, DocumentTexts(values.get("answer", ""), values.get("target", "")))
            return found

        def fields() -> Iterator[tuple[int, Mapping[str, str]]]:
            for number, values in self._values():
                yield number, {name: text for name, text in values.items() if name not in _KNOWN}

        return replace(
            self.builder.rows(),
            metadata=cache(lambda: metadata_of(len(self.builder.ids), fields())),
            answer=(lambda row: answers().get(row)) if "answer" in self.table.columns else (lambda _: None),
            is_called_after_file=self.is_called_after_file,
        )

    def _values(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        for row in self.table.rows():
            if (row.values.get("task") or self.default) == self.builder.task:
                yield self.builder.row(row.values[self.id_column]), row.values


TABLES = Format(
    "a table (CSV, TSV, xlsx) with the columns id and score",
    lambda head: open_table(head, fits) is not None,
    read_table,
)
