"""Scores of tasks from files, and their place in a result table (General-Bench specification §7 and §10.4)."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.tasks.general_bench.facts import LANGUAGE, Metric, TaskFacts, find_task, fold, metrics
from lmms_eval.tasks.general_bench.levels import tables
from lmms_eval.tasks.general_bench.levels.paper import checked, unit_warnings
from lmms_eval.tasks.general_bench.levels.report import Profile

_NAMES = ("task_name", "task")
_DEPTHS = ("", "*/", "*/*/", "*/*/*/", "*/*/*/*/")
"""Patterns for the depths of a data set's files: the top, and a task's folder, which may be below folders of sets."""


class LevelResult(Struct, frozen=True):
    """The score of one task. ``modality`` and ``task_type`` (the paradigm) are optional, since names are unique."""

    task_name: str
    metric: str
    score: Any
    modality: str = ""
    task_type: str = ""
    unit: str = ""
    """``percent``, ``fraction`` or ``raw``. If empty, the unit of the result table."""
    items_scored: int | None = None
    items_expected: int | None = None
    source: str = ""

    @property
    def label(self) -> str:
        return f"{self.source + ': ' if self.source else ''}{self.task_name!r} ({self.metric})"


def gather(paths: Iterable[Path]) -> tuple[list[LevelResult], list[Path], list[str]]:
    """Read result files.

    Returns the results, the files with predictions (``standalone`` scores them), and the problems: unreadable files and
    entries that are not results.
    """
    results: list[LevelResult] = []
    predictions: list[Path] = []
    problems: list[str] = []
    for path in paths:
        try:
            records = _records(path)
        except DataError as error:
            problems.append(str(error))
            continue
        is_empty = not records and path.name.casefold().startswith("prediction")
        if is_empty or any(
            isinstance(record, Mapping)
            and "score" not in record
            and any(str(key).startswith("prediction") for key in record)
            for record in records
        ):
            predictions.append(path)
            continue
        for place, record in enumerate(records):
            try:
                results.append(_result(record, str(path)))
            except DataError as error:
                problems.append(f"{path}, entry {place}: {error}")
    return results, predictions, problems


def files_of(dataset: Path, name: str) -> list[Path]:
    """Find the files of a name in a data set's folder: at the top and in the tasks' folders, sorted.

    Raises:
        DataError: there is no such folder, or no such file in it.
        UsageError: the name is a path.
    """
    if Path(name).name != name:
        raise UsageError(f"-p {name}: give the bare name of the files; their folder, or one file, goes to -d")
    if dataset.is_file():
        return [dataset]
    if not dataset.is_dir():
        raise DataError(f"{dataset}: no such folder; name the data set or a result file (-d)")
    found = sorted({path for depth in _DEPTHS for path in dataset.glob(f"{depth}{name}") if path.is_file()})
    if not found:
        raise DataError(f"{dataset}: no file {name} in it or in its tasks' folders; name it (-p)")
    return found


def _records(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        content = json.loads(text)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if isinstance(content, Mapping):
        content = next((content[key] for key in ("results", "data") if key in content), [content])
    if not isinstance(content, list):
        raise DataError(f"{path}: a list of results is expected, not {type(content).__name__}")
    return content


def _result(record: Any, source: str) -> LevelResult:
    if not isinstance(record, Mapping):
        raise DataError(f"a result is an object, not {type(record).__name__}")
    name = next((record[key] for key in _NAMES if record.get(key)), None)
    absent = [key for key, value in (("task_name", name), ("metric", record.get("metric"))) if not value]
    absent += ["score"] * ("score" not in record)
    if absent:
        raise DataError(f"no {', '.join(absent)} in it")
    counts: dict[str, int] = {}
    for key in ("items_scored", "items_expected"):
        value = record.get(key)
        if value not in (None, ""):
            try:
                counts[key] = int(value)
            except (TypeError, ValueError):
                raise DataError(f"{key} is {value!r}, no whole number") from None
    return LevelResult(
        task_name=str(name),
        metric=str(record["metric"]),
        score=record["score"],
        modality=str(record.get("modality") or ""),
        task_type=str(record.get("task_type") or ""),
        unit=str(record.get("unit") or ""),
        source=source,
        **counts,
    )


class Filled(Struct, frozen=True):
    """A result table with the model's column."""

    table: tables.Table
    model: str
    cells: Mapping[str, Mapping[int, float]]
    """Scores by sheet and row."""
    updated: tuple[str, ...]
    """Sheets with a result (profile ``reference``: even if no row was found)."""
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def register(model: str, results: Sequence[LevelResult], table: tables.Table, profile: Profile = "paper") -> Filled:
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


def _by_reference(model: str, results: Sequence[LevelResult], table: tables.Table) -> Filled:
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
    return Filled(tables.with_column(table, model, cells), model, cells, updated, tuple(problems), tuple(warnings))


def _sheet_of(result: LevelResult) -> str:
    if result.modality == LANGUAGE:
        return LANGUAGE
    return f"{result.modality}-{result.task_type.capitalize()}"


def _places(table: tables.Table, sheet: str) -> list[tuple[tables.Cell, tables.Cell]]:
    content = table.sheets[sheet]
    for one in (tables.NAME_COLUMN, tables.METRIC_COLUMN):
        if one not in content.columns:
            known = ", ".join(map(repr, filter(None, content.columns))) or "none"
            raise DataError(f"{table.source}, sheet {sheet}: no column {one!r}; columns: {known}")
    name, metric = (content.columns.index(one) for one in (tables.NAME_COLUMN, tables.METRIC_COLUMN))
    return [(row[name], row[metric]) for row in content.rows]


def _by_paper(model: str, results: Sequence[LevelResult], table: tables.Table) -> Filled:
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
    return Filled(tables.with_column(table, model, cells), model, cells, updated, tuple(problems), tuple(warnings))


def _folded_rows(table: tables.Table) -> dict[TaskFacts, tuple[str, int]]:
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
    value = tables.exact_number(result.score)
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
