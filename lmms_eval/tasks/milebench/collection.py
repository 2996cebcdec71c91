"""Collects ``eval.json`` files of models in ``result.json`` and ``result.csv``, as the reference's collector does."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.standalone import EVAL, FIXED, SOURCE, write_text
from lmms_eval.tasks.milebench.submission import PREDICTIONS, fingerprint

RESULT_JSON, RESULT_CSV = "result.json", "result.csv"
PASSED_OVER = frozenset({"image_quantity_level-Accuracy", "image_quantity_level-Result", "Diff-Accuracy"})
"""Keys of ``eval.json`` that are not columns."""


class Collection(Struct, frozen=True):
    """Results by model, category and data set; ``{}`` without one."""

    models: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Data sets without a result, by model."""


def taxonomy() -> Mapping[str, tuple[str, ...]]:
    """Data sets by the collector's three categories, in its order."""
    facts = datasets().values()
    return {
        **{
            f"Realistic {category.title()}": tuple(
                sorted((one.name for one in facts if one.category == category), key=str.lower)
            )
            for category in ("temporal", "semantic")
        },
        "Diagnostic": tuple(one.name for one in facts if one.set == "diagnostic"),
    }


def collect(root: Path, models: Sequence[str]) -> Collection:
    """Read the results of models below ``root``; a model named twice counts once.

    Raises:
        DataError: there is no such folder; or a result is damaged, holds something else than numbers, or was computed
            from other predictions than the file next to it. All such files are named, and nothing is collected.
    """
    if not root.is_dir():
        raise DataError(f"there is no folder {root}; --result-dir names the one that holds a folder for each model")
    problems: list[str] = []
    found: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
    absent: dict[str, list[str]] = {}
    for model in dict.fromkeys(models):
        found[model] = {}
        for category, names in taxonomy().items():
            results = {name: _read(root / model / name, problems) for name in names}
            found[model][category] = {name: result or {} for name, result in results.items()}
            absent.setdefault(model, []).extend(name for name, result in results.items() if result is None)
    if problems:
        raise DataError("\n".join([f"nothing was collected, for {len(problems)} unusable files:", *problems]))
    return Collection(found, {model: names for model, names in absent.items() if names})


def _read(folder: Path, problems: list[str]) -> Mapping[str, Any] | None:
    """The result in a folder; ``None`` without one. What is wrong with it is added to ``problems``."""
    path = folder / EVAL
    if not path.exists():
        return None
    try:
        content = read_json(path)
        problem = _problem(content) or staleness(folder)
    except DataError as error:
        problems.append(str(error))
        return None
    if problem:
        problems.append(f"{path} {problem}")
        return None
    result: Mapping[str, Any] = content
    return result


def _problem(content: Any) -> str:
    if not isinstance(content, Mapping):
        return "holds no object"
    for key, value in content.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if key not in PASSED_OVER and not is_number:
            return f"has no number as {key!r}: {json.dumps(value)[:80]}"
    return ""


def staleness(folder: Path) -> str:
    """Describe a result whose predictions differ from those next to it; empty if they agree."""
    fixed, predictions = folder / FIXED, folder / PREDICTIONS
    if not fixed.is_file() or not predictions.is_file():
        return ""
    noted = read_json(fixed)
    source = noted.get(SOURCE) if isinstance(noted, Mapping) else None
    if source is None or source == fingerprint(predictions):
        return ""
    return f"was computed from other predictions than {predictions}: evaluate again"


def table(collection: Collection) -> list[list[str]]:
    """The rows of ``result.csv`` with its header: percentages with two decimals, columns in order of first use."""
    rows = {
        model: {
            f"{name} ({metric})": round(100 * value, 2)
            for results in categories.values()
            for name, result in results.items()
            for metric, value in result.items()
            if metric not in PASSED_OVER
        }
        for model, categories in collection.models.items()
    }
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    whole = {column for column in columns if all(isinstance(cells.get(column), int) for cells in rows.values())}
    lines = [["Model", *columns]]
    for model, cells in rows.items():
        lines.append([model, *(_shown(cells.get(column), column in whole) for column in columns)])
    return lines


def _shown(value: int | float | None, is_whole: bool) -> str:
    """A column of whole numbers stays whole, as in the reference's file."""
    if value is None:
        return ""
    return str(value) if is_whole else str(float(value))


def write_collection(collection: Collection, root: Path) -> None:
    """Write ``result.json`` and ``result.csv``.

    Raises:
        DataError: a file cannot be written.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table(collection))
    write_text(root / RESULT_JSON, json.dumps(collection.models, indent=4))
    write_text(root / RESULT_CSV, text.getvalue())
