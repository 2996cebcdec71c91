"""Filling of a result table with the scores of tasks (General-Bench specification §7 and §10.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.tasks.general_bench.facts import LANGUAGE, TaskFacts, find_task, fold
from lmms_eval.tasks.general_bench.facts.metrics import Metric, metrics
from lmms_eval.tasks.general_bench.levels.paper import checked, unit_warnings
from lmms_eval.tasks.general_bench.levels.report import Profile
from lmms_eval.tasks.general_bench.levels.results import LevelResult
from lmms_eval.tasks.general_bench.levels.tables import (
    METRIC_COLUMN,
    NAME_COLUMN,
    Cell,
    Table,
    exact_number,
    with_column,
)


class Filled(Struct, frozen=True):
    """A result table with the model's column."""

    table: Table
    model: str
    cells: Mapping[str, Mapping[int, float]]
    """Scores by sheet and row."""
    updated: tuple[str, ...]
    """Sheets with a result (profile ``reference``: even if no row was found)."""
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def register(model: str, results: Sequence[LevelResult], table: Table, profile: Profile = "paper") -> Filled:
    """Put results into a table's rows, in a column named after the model.

    In the profile ``paper``, rows are found by task names in any spacing and case, and metrics by any spelling.
    Declared units are converted. A result without a row, or given twice with different scores, is a problem. In the
    profile ``reference``, names and metrics must be equal, the last of several results counts, and values are
    unchanged. A result without a row is a warning.

    Raises:
        UsageError: the model's name is not a text for a cell, or the table has a column of that name already.
        DataError: the table's form is not the template's.
    """
    if not model.strip() or not model.isprintable():
        raise UsageError(f"model {model!r}: give a name that can be the head of a column")
    for name, sheet in table.sheets.items():
        if model.casefold() in (column.casefold() for column in sheet.columns):
            raise UsageError(
                f"{table.source}, sheet {name}: there is a column {model!r} already; give another template"
            )
    return _by_reference(model, results, table) if profile == "reference" else _by_paper(model, results, table)


def _by_reference(model: str, results: Sequence[LevelResult], table: Table) -> Filled:
    cells: dict[str, dict[int, float]] = {}
    warnings: list[str] = []
    problems: list[str] = []
    places = {name: _places(table, name) for name in table.task_sheets}
    wanted = {_sheet_of(result) for result in results}
    for result in results:
        sheet = _sheet_of(result)
        rows = [row for row, key in enumerate(places.get(sheet, ())) if key == (result.task_name, result.metric)]
        if not isinstance(result.score, int | float) or not math.isfinite(result.score):
            problems.append(f"{result.label}: {result.score!r} is no number for a cell")
            continue
        for row in rows:
            cells.setdefault(sheet, {})[row] = result.score
        if not rows:
            warnings.append(f"{result.label}: no row of sheet {sheet} has this task name and metric; left out")
    updated = tuple(name for name in table.sheets if name in wanted)
    return Filled(with_column(table, model, cells), model, cells, updated, tuple(problems), tuple(warnings))


def _sheet_of(result: LevelResult) -> str:
    if result.modality == LANGUAGE:
        return LANGUAGE
    return f"{result.modality}-{result.task_type.capitalize()}"


def _places(table: Table, sheet: str) -> list[tuple[Cell, Cell]]:
    content = table.sheets[sheet]
    for one in (NAME_COLUMN, METRIC_COLUMN):
        if one not in content.columns:
            known = ", ".join(map(repr, filter(None, content.columns))) or "none"
            raise DataError(f"{table.source}, sheet {sheet}: no column {one!r}; columns: {known}")
    name, metric = (content.columns.index(one) for one in (NAME_COLUMN, METRIC_COLUMN))
    return [(row[name], row[metric]) for row in content.rows]


def _by_paper(model: str, results: Sequence[LevelResult], table: Table) -> Filled:
    rows = _folded_rows(table)
    scores: dict[TaskFacts, float] = {}
    problems: list[str] = []
    refused: set[TaskFacts] = set()
    for result in results:
        try:
            task, score = _taken(result)
            if task not in rows:
                raise DataError(f"the template has no row of this task in sheet {task.sheet}")
            if scores.setdefault(task, score) != score:
                refused.add(task)
                raise DataError(f"given twice, as {scores[task]:g} and {score:g}; neither is taken")
        except LmmsEvalError as error:
            problems.append(f"{result.label}: {error}")
    cells: dict[str, dict[int, float]] = {}
    for task in scores.keys() - refused:
        sheet, row = rows[task]
        cells.setdefault(sheet, {})[row] = scores[task]
    updated = tuple(name for name in table.sheets if name in cells)
    warnings = unit_warnings(scores)
    for result in results:
        scored, expected = result.items_scored, result.items_expected
        if scored is not None and expected is not None and scored < expected:
            warnings.append(f"{result.label}: {scored} of {expected} items have a score")
    return Filled(with_column(table, model, cells), model, cells, updated, tuple(problems), tuple(warnings))


def _folded_rows(table: Table) -> dict[TaskFacts, tuple[str, int]]:
    found: dict[TaskFacts, tuple[str, int]] = {}
    for sheet in table.task_sheets:
        for row, (name, _) in enumerate(_places(table, sheet)):
            try:
                found.setdefault(find_task(str(name)), (sheet, row))
            except UsageError:  # a row of another benchmark is kept unchanged
                continue
    return found


def _taken(result: LevelResult) -> tuple[TaskFacts, float]:
    """Return the task of a result, and its score in the unit of the result table."""
    task = find_task(result.task_name)
    for kind, given, known in (("modality", result.modality, task.modality), ("type", result.task_type, task.paradigm)):
        if given and known and fold(given) != fold(known):
            raise DataError(f"its {kind} is given as {given!r}, but this is a task of sheet {task.sheet}")
    value = exact_number(result.score)
    if value is None:
        raise DataError(f"score {result.score!r} is no number")
    return task, checked(task, result.metric, _in_unit(metrics()[task.metric], value, result.unit))


def _in_unit(metric: Metric, value: float, unit: str) -> float:
    if unit in ("", metric.unit):
        return value
    if (unit, metric.unit) == ("fraction", "percent"):
        return value * 100
    if (unit, metric.unit) == ("percent", "fraction"):
        return value / 100
    raise DataError(f"unit {unit!r}: {metric.spellings[0]} is given in {metric.unit!r}")
