"""Result tables: sheets with a column for each model, read from and written to workbooks (``.xlsx``), CSV and JSON.

openpyxl is imported when a workbook is read or written (``pip install "lmms_eval[xlsx]"``).
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.submissions import csv_text, write_whole
from lmms_eval.tasks._task_utils.workbooks import workbook_library
from lmms_eval.tasks.general_bench.facts import sheets

Cell = str | int | float | bool | None
NAME_COLUMN, METRIC_COLUMN = "Task Name", "Metrics"
COLUMNS = ("No", NAME_COLUMN, "Task Short Name", METRIC_COLUMN)
SPECIALIST_COLUMN = "SoTA Performance"
LEVEL_SHEET = "level-scores"
"""A sheet of this name, in any case, holds no tasks."""


class LevelRow(Struct, frozen=True):
    """A task's name, its metric in the table's spelling, and the cell of one model."""

    name: str
    metric: str
    cell: Cell


class Sheet(Struct, frozen=True):
    """A sheet of a table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Table(Struct, frozen=True):
    """Sheets by name, in their order."""

    source: str
    sheets: Mapping[str, Sheet]

    @property
    def task_sheets(self) -> Mapping[str, Sheet]:
        return {name: sheet for name, sheet in self.sheets.items() if name.casefold() != LEVEL_SHEET}


def column(sheet: Sheet, where: str, model: str) -> tuple[LevelRow, ...]:
    """Return the rows of a sheet with the cells of one model. The name is compared without case.

    Raises ``DataError`` if a column is missing.
    """
    places = {name.casefold(): place for place, name in reversed(list(enumerate(sheet.columns)))}
    wanted = (NAME_COLUMN, METRIC_COLUMN, model)
    absent = [name for name in wanted if name.casefold() not in places]
    if absent:
        known = ", ".join(map(repr, filter(None, sheet.columns))) or "none"
        raise DataError(f"{where}: no column {' and '.join(map(repr, absent))}; columns: {known}")
    name, metric, score = (places[one.casefold()] for one in wanted)
    return tuple(LevelRow(str(row[name] or ""), str(row[metric] or ""), row[score]) for row in sheet.rows)


def template() -> Table:
    """Return the empty result table, with every row of the benchmark and without a model."""
    found = {
        name: Sheet(COLUMNS, tuple((task.number, task.name, task.short_name, task.spelling) for task in rows))
        for name, rows in sheets().items()
    }
    return Table("the benchmark's template", found)


def reference_number(cell: Cell) -> float:
    """Read a cell as the reference does: plus infinity means "no score" (empty, infinite, or not a number)."""
    if cell is None or (isinstance(cell, str) and cell.strip().casefold() in ("∞", "inf", "")):
        return math.inf
    try:
        value = float(cell)
    except (ValueError, TypeError, OverflowError):
        return math.inf
    return math.inf if math.isnan(value) else value


def exact_number(cell: Cell) -> float | None:
    """Read a cell as a score, or ``None`` if the workbook has no score (empty, ``inf``, ``∞``).

    Raises ``DataError`` if the cell is no finite number.
    """
    if cell is None or (isinstance(cell, str) and cell.strip().casefold() in ("∞", "inf", "")):
        return None
    if isinstance(cell, bool):
        raise DataError(f"{cell} is no score")
    if isinstance(cell, float) and cell == math.inf:
        return None
    try:
        value = float(cell)
    except (ValueError, TypeError, OverflowError):  # cells of a workbook may be dates, results of a file lists
        hint = "; write percentages without the sign" if isinstance(cell, str) and "%" in cell else ""
        raise DataError(f"{cell!r} is no number{hint}") from None
    if not math.isfinite(value):
        raise DataError(f"{cell!r} is no finite number")
    return value


def with_column(table: Table, name: str, cells: Mapping[str, Mapping[int, float]]) -> Table:
    """Return the table with another column that holds the scores of ``cells`` (by sheet and row)."""
    filled = {}
    for sheet, content in table.sheets.items():
        given = cells.get(sheet, {})
        rows = tuple((*row, given.get(place)) for place, row in enumerate(content.rows))
        filled[sheet] = Sheet((*content.columns, name), rows)
    return Table(table.source, filled)


MAX_WORKBOOK_BYTES = 256 * 2**20
_CSV_COLUMNS = ("sheet", "row", "task_name", "metric", "score")


def read_result_table(path: Path, model: str) -> Table:
    """Read a result table. A CSV or JSON file holds one model, in a column named ``model``.

    Raises ``DataError`` if the file is missing, unreadable, or of another layout.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; give a result workbook (.xlsx, .csv or .json)")
    match path.suffix.lower():
        case ".xlsx":
            return read_workbook(path)
        case ".csv" | ".json":
            return _from_rows(path, _rows(path), model)
    raise DataError(f"{path}: of no known kind; give a .xlsx, .csv or .json file")


def read_workbook(path: Path) -> Table:
    """Read all sheets of a workbook. Raises ``DataError`` if it cannot be opened as a workbook."""
    openpyxl = workbook_library()
    invalid: type[Exception] = importlib.import_module("openpyxl.utils.exceptions").InvalidFileException
    try:
        with zipfile.ZipFile(path) as packed:  # a workbook is a zip that openpyxl unpacks in memory
            size = sum(entry.file_size for entry in packed.infolist())
        if size > MAX_WORKBOOK_BYTES:
            raise DataError(f"{path}: a workbook of {size} bytes unpacked; {MAX_WORKBOOK_BYTES} are read at most")
        book = openpyxl.load_workbook(path, data_only=True)
        found = {sheet.title: _sheet(sheet) for sheet in book.worksheets}
    except (OSError, ValueError, KeyError, TypeError, SyntaxError, zipfile.BadZipFile, invalid) as error:
        raise DataError(f"{path}: cannot be read as a workbook ({type(error).__name__}: {error})") from error
    if not found:
        raise DataError(f"{path}: a workbook without sheets")
    return Table(str(path), found)


def _sheet(sheet: Any) -> Sheet:
    rows = sheet.iter_rows(values_only=True)
    header = tuple("" if cell is None else str(cell).strip() for cell in next(rows, ()))
    width = len(header)
    content = [(*row, *(None,) * (width - len(row)))[:width] for row in rows]
    while content and all(cell is None for cell in content[-1]):
        content.pop()
    return Sheet(header, tuple(content))


def _rows(path: Path) -> list[Mapping[str, Cell]]:
    """Read the rows of a CSV or JSON file."""
    try:
        if path.suffix.lower() == ".csv":
            with open(path, encoding="utf-8-sig", newline="") as file:
                listed = csv.DictReader(file)
                return [row if "score" not in row else {**row, "score": _cell(row["score"])} for row in listed]
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    rows = content.get("rows") if isinstance(content, Mapping) else content
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(f"{path}: no list of rows in it; it must be what register wrote")
    return rows


def _cell(text: str | None) -> Cell:
    """Return the cell for a text of a CSV file: ``None``, a number, or the text."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _from_rows(path: Path, rows: list[Mapping[str, Cell]], model: str) -> Table:
    needed = ("sheet", "task_name", "metric", "score")
    absent = sorted({key for row in rows for key in needed if key not in row}) if rows else list(needed)
    if absent:
        raise DataError(f"{path}: no column {', '.join(absent)}; columns of a result file: {', '.join(_CSV_COLUMNS)}")
    found: dict[str, list[tuple[Cell, ...]]] = {}
    for row in rows:
        found.setdefault(str(row["sheet"]), []).append((row["task_name"], row["metric"], row["score"]))
    columns = (NAME_COLUMN, METRIC_COLUMN, model)
    return Table(str(path), {name: Sheet(columns, tuple(content)) for name, content in found.items()})


def write_workbook(table: Table, path: Path) -> None:
    """Write the workbook of a table, values only. Raises ``DataError`` if it cannot be written."""
    openpyxl = workbook_library()
    book = openpyxl.Workbook(write_only=True)
    content = io.BytesIO()
    refused: list[type[Exception]] = [OSError]
    with contextlib.suppress(ImportError):  # openpyxl uses lxml if it is installed, which raises its own errors
        refused.append(importlib.import_module("lxml.etree").LxmlError)
    try:  # each sheet goes through a temporary file
        for name, sheet in table.sheets.items():
            page = book.create_sheet(name)
            page.append(sheet.columns)
            for row in sheet.rows:
                page.append(row)
        book.save(content)
    except tuple(refused) as error:
        raise DataError(f"{path} cannot be written: {error} (temporary files)") from error
    write_whole(path, content.getvalue(), survives_power_loss=False)


def write_rows(table: Table, model: str, stem: Path) -> list[Path]:
    """Write ``STEM.csv`` and ``STEM.json``: a row for each task, empty if there is no score."""
    rows: list[tuple[Cell, ...]] = []
    for name, sheet in table.task_sheets.items():
        task, metric, score = (sheet.columns.index(one) for one in (NAME_COLUMN, METRIC_COLUMN, model))
        rows += [(name, place, row[task], row[metric], row[score]) for place, row in enumerate(sheet.rows)]
    records = [dict(zip(_CSV_COLUMNS, row, strict=True)) for row in rows]
    contents = {
        stem.with_name(f"{stem.name}.csv"): csv_text([_CSV_COLUMNS, *rows]),
        stem.with_name(f"{stem.name}.json"): json.dumps({"model": model, "rows": records}, ensure_ascii=False),
    }
    for path, content in contents.items():
        write_whole(path, content, survives_power_loss=False)
    return list(contents)
