"""Reading of the scores of tasks that scorers write for a result table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError, UsageError

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


class Gathered(Struct, frozen=True):
    """The contents of files: results, files with predictions (``standalone`` scores them), and problems."""

    results: tuple[LevelResult, ...]
    predictions: tuple[Path, ...]
    problems: tuple[str, ...]


def gather(paths: Iterable[Path]) -> Gathered:
    """Read result files. Unreadable files and entries that are not results become problems."""
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
    return Gathered(tuple(results), tuple(predictions), tuple(problems))


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
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    try:
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        content = json.loads(text)
    except (ValueError, RecursionError, csv.Error) as error:
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
    counts = dict(_counts(record))
    return LevelResult(
        task_name=str(name),
        metric=str(record["metric"]),
        score=record["score"],
        modality=str(record.get("modality") or ""),
        task_type=str(record.get("task_type") or ""),
        unit=str(record.get("unit") or ""),
        items_scored=counts.get("items_scored"),
        items_expected=counts.get("items_expected"),
        source=source,
    )


def _counts(record: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for key in ("items_scored", "items_expected"):
        value = record.get(key)
        if value in (None, ""):
            continue
        try:
            yield key, int(value)
        except (TypeError, ValueError):
            raise DataError(f"{key} is {value!r}, no whole number") from None
