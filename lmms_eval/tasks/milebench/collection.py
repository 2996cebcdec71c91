"""Collects ``eval.json`` files of models in ``result.json`` and ``result.csv``, as the reference's collector does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.submissions import csv_text, indented_json, write_whole
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.standalone import EVAL, FIXED, SOURCE
from lmms_eval.tasks.milebench.submission import PREDICTIONS, fingerprint

RESULT_JSON, RESULT_CSV = "result.json", "result.csv"
PASSED_OVER = frozenset({"image_quantity_level-Accuracy", "image_quantity_level-Result", "Diff-Accuracy"})
"""Keys of ``eval.json`` that are not columns."""


Results = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]
"""Results by model, category and data set; ``{}`` without one."""


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


def collect(root: Path, models: Sequence[str]) -> tuple[Results, Mapping[str, Sequence[str]]]:
    """Read the results of models below ``root``, and name the data sets without one by model.

    A model named twice counts once.

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
    return found, {model: names for model, names in absent.items() if names}


def _read(folder: Path, problems: list[str]) -> Mapping[str, Any] | None:
    """Read the result in a folder; ``None`` without one. What is wrong with it is added to ``problems``."""
    path = folder / EVAL
    if not path.exists():
        return None
    try:
        content: Mapping[str, Any] = read_json(path)
        if problem := _problem(content) or staleness(folder):
            raise DataError(f"{path} {problem}")
    except DataError as error:
        problems.append(str(error))
        return None
    return content


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


def table(models: Results) -> list[list[str]]:
    """The rows of ``result.csv`` with its header: percentages with two decimals, columns in order of first use."""
    rows = {
        model: {
            f"{name} ({metric})": round(100 * value, 2)
            for results in categories.values()
            for name, result in results.items()
            for metric, value in result.items()
            if metric not in PASSED_OVER
        }
        for model, categories in models.items()
    }
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    whole = {column for column in columns if all(isinstance(cells.get(column), int) for cells in rows.values())}
    lines = [["Model", *columns]]
    for model, cells in rows.items():
        values = ((cells.get(column), column in whole) for column in columns)
        lines.append([model, *("" if x is None else str(x if is_whole else float(x)) for x, is_whole in values)])
    return lines


def write_collection(models: Results, root: Path) -> None:
    """Write ``result.json`` and ``result.csv``. Raises ``DataError`` if a file cannot be written."""
    for name, text in ((RESULT_JSON, indented_json(models)), (RESULT_CSV, csv_text(table(models)))):
        write_whole(root / name, text, survives_power_loss=False)
