"""Result tables: sheets with a column for each model, as a workbook, a CSV or a JSON file holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from lmms_eval.errors import DataError
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
    """Return the rows of a sheet with the cells of one model, whose name is compared without case.

    Raises:
        DataError: a column is missing.
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
    """Return the empty result table: every row of the benchmark, without a model."""
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
    """Read a cell as a score; ``None`` if the workbook has no score (empty, ``inf``, ``∞``).

    Raises:
        DataError: the cell is no finite number.
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
    """Return the table with another column, filled with the scores of ``cells`` (by sheet and row)."""
    filled = {}
    for sheet, content in table.sheets.items():
        given = cells.get(sheet, {})
        rows = tuple((*row, given.get(place)) for place, row in enumerate(content.rows))
        filled[sheet] = Sheet((*content.columns, name), rows)
    return Table(table.source, filled)
