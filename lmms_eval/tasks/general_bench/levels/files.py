"""Result tables as files: the workbook's layout (``.xlsx``), CSV and JSON.

openpyxl is imported when a workbook is read or written (``pip install "lmms_eval[xlsx]"``).
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import replacing
from lmms_eval.tasks._task_utils.workbooks import workbook_library
from lmms_eval.tasks.general_bench.levels.tables import METRIC_COLUMN, NAME_COLUMN, Cell, Sheet, Table

MAX_WORKBOOK_BYTES = 256 * 2**20
_CSV_COLUMNS = ("sheet", "row", "task_name", "metric", "score")


def read_result_table(path: Path, model: str) -> Table:
    """Read a result table. A CSV or JSON file holds one model, in a column named ``model``.

    Raises:
        DataError: the file is missing, unreadable, or of another layout.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; give a result workbook (.xlsx, .csv or .json)")
    match path.suffix.lower():
        case ".xlsx":
            return read_workbook(path)
        case ".csv":
            return _from_rows(path, list(_csv_rows(path)), model)
        case ".json":
            return _from_rows(path, list(_json_rows(path)), model)
    raise DataError(f"{path}: of no known kind; give a .xlsx, .csv or .json file")


def read_workbook(path: Path) -> Table:
    """Read all sheets of a workbook.

    Raises:
        DataError: it cannot be opened as a workbook.
    """
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


def _csv_rows(path: Path) -> Iterator[Mapping[str, Cell]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                yield row if "score" not in row else {**row, "score": _cell(row["score"])}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _cell(text: str | None) -> Cell:
    """Return the cell for a text of a CSV file: ``None``, a number, or the text."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _json_rows(path: Path) -> Iterator[Mapping[str, Cell]]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    rows = content.get("rows") if isinstance(content, Mapping) else content
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(f"{path}: no list of rows in it; it must be what register wrote")
    yield from rows


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
    """Write the workbook of a table, values only.

    Raises:
        DataError: it cannot be written.
    """
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
    write_bytes(path, content.getvalue())


def write_rows(table: Table, model: str, stem: Path) -> list[Path]:
    """Write ``STEM.csv`` and ``STEM.json``: a row for each task, empty if there is no score."""
    rows: list[dict[str, Cell]] = []
    for name, sheet in table.task_sheets.items():
        task, metric, score = (sheet.columns.index(one) for one in (NAME_COLUMN, METRIC_COLUMN, model))
        for place, row in enumerate(sheet.rows):
            rows.append(dict(zip(_CSV_COLUMNS, (name, place, row[task], row[metric], row[score]), strict=True)))
    text = io.StringIO()
    writer = csv.DictWriter(text, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".csv", ".json")]
    write_bytes(paths[0], text.getvalue().encode())
    write_bytes(paths[1], json.dumps({"model": model, "rows": rows}, ensure_ascii=False).encode())
    return paths


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file as a whole.

    Raises:
        DataError: it cannot be written.
    """
    try:
        with replacing(path.absolute(), survives_power_loss=False) as file:
            file.write(content)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
