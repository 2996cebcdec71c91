"""Contents of a run under the names that users of trackers know: scalars, texts, tables, live numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.trackers.contract import Cell, Results, Step, Table
from lmms_eval.utils.redaction import redact

if TYPE_CHECKING:
    from lmms_eval.engine.progress import ProgressLook, RunningScore

MOST_NAME = 40
"""Characters of a run's name."""
LIVE = "live"
RESULTS_TABLE, GROUPS_TABLE = "evaluation/eval_results", "evaluation/group_eval_results"
_COLUMNS = ("Version", "Filter", "num_fewshot", "Metric", "Value", "Stderr")
_NO_FILTER = ",none"
_BLANK = " "
"""Key of a group without a number."""
_MOST_TEXT = 1_000
_NOT_IN_NAMES = re.compile(r"[^\w.-]", re.ASCII)
_MOST_FILE_NAME = 120


def run_name(model: str, model_args: str, stamp: str) -> str:
    """Name a run ``MODEL_MODELARGS_DATE``, shortened in its middle part so that the date stays."""
    head = "_".join(part for part in (model, str(redact(model_args))) if part)
    return f"{head[: max(0, MOST_NAME - len(stamp) - 1)]}_{stamp}"


def name_of_file(name: str) -> str:
    """Return a name that trackers take for a file: letters, digits, points and dashes."""
    return _NOT_IN_NAMES.sub("_", name)[:_MOST_FILE_NAME]


def live_step(look: ProgressLook, told: Mapping[str, RunningScore]) -> Step:
    """Return the live numbers; of the scores by task those that differ from what was ``told`` before."""
    values: dict[str, float] = {
        f"{LIVE}/documents": look.done,
        f"{LIVE}/failed": look.failed,
        f"{LIVE}/tokens": look.tokens,
        f"{LIVE}/documents_per_second": look.rate,
    }
    for task, score in look.scores.items():
        if told.get(task) != score:
            values[f"{LIVE}/{task}/score"] = score.value
            values[f"{LIVE}/{task}/n"] = score.count
    return Step(look.done, values)


def results_of(document: Mapping[str, Any], documents: int, file: str) -> Results:
    """Take the numbers and tables out of a results document.

    Args:
        document: the results document.
        documents: finished documents of the run.
        file: path of the file that holds it.
    """
    scalars: dict[str, float] = {}
    texts: dict[str, str] = {}
    for task, entry in document["results"].items():
        for key, value in entry.items():
            name = f"{task}/{key.removesuffix(_NO_FILTER)}"
            if (number := _number(value)) is not None:
                scalars[name] = number
            elif isinstance(value, str) and key != _BLANK:
                texts[name] = value[:_MOST_TEXT]
    tables = {RESULTS_TABLE: _table(document, "results", "Tasks")}
    if document.get("groups"):
        tables[GROUPS_TABLE] = _table(document, "groups", "Groups")
    config = {"task_configs": document.get("configs", {}), "cli_configs": document.get("config", {})}
    return Results(documents, scalars, texts, tables, config, file)


def evenly(numbers: Sequence[int], most: int) -> list[int]:
    """Take at most ``most`` numbers, evenly spread over all."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[place * len(numbers) // most] for place in range(most)]


def _table(document: Mapping[str, Any], part: str, heading: str) -> Table:
    rows = tuple(row for name in document[part] for row in _rows(document, part, name))
    return Table((heading, *_COLUMNS), rows)


def _rows(document: Mapping[str, Any], part: str, name: str) -> Iterator[tuple[Cell, ...]]:
    """Make a row of each metric; what stands beside a metric as its error is part of its row."""
    entry = document[part][name]
    version = str((document.get("versions") or {}).get(name, ""))
    shots = str((document.get("n-shot") or {}).get(name, ""))
    errors = {key for key in entry if "_stderr" in key}
    for key, value in entry.items():
        metric, comma, pipeline = key.rpartition(",")
        if not comma or key in errors or not (value is None or _number(value) is not None):
            continue
        stderr = _number(entry.get(f"{metric}_stderr,{pipeline}"))
        yield (str(entry.get("alias", name)), version, pipeline, shots, metric, _number(value), stderr)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None
