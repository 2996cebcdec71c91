"""Score files -> one list of task results (pipeline specification §6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.utils.records import to_dict

PATTERN = "megabench*data_with_scores*.json"
NO_SCORE = -1
TASK_RESULTS = "task_results.json"


class TaskMean(Struct, frozen=True):
    """A task's mean, as ``task_results.json`` holds it."""

    name: str
    score: float
    eval_type: str
    """``llm`` for tasks with a judge, else ``rule``."""
    num_demo: int
    """1 if the task has a demonstration."""
    num_query: int
    fixed: float | None = None
    """The score with the official evaluator's faults repaired; ``None`` if that changes nothing, or is not stated."""

    def as_dict(self) -> dict[str, Any]:
        """Return the result with the leaderboard's keys."""
        return {key: value for key, value in to_dict(self).items() if key != "fixed"}


def read_folder(folder: Path) -> list[TaskMean]:
    """The merged results of all score files directly in a folder, in order of their names.

    Raises ``DataError`` if there is no such file, or one cannot be read; the message names the file and the task.
    """
    paths = sorted(folder.glob(PATTERN))
    if not paths:
        raise DataError(
            f"breakdown: no file named like {PATTERN} in {folder}; the evaluator's --output_file belongs there"
        )
    return merge(read_scores(read_json(path), str(path)) for path in paths)


def read_scores(content: Any, where: str) -> list[TaskMean]:
    """The scored tasks of one file: an evaluator's output, or a list as in ``task_results.json``.

    Submitted tasks that have no mean, and entries whose score is -1, are left out. Raises ``DataError`` if the content
    is neither, or an entry lacks what the leaderboard's files need of it.
    """
    is_scored_file = isinstance(content, Mapping) and isinstance(content.get("data"), Sequence)
    if not is_scored_file and not isinstance(content, list):
        raise DataError(f"{where}: neither a scored submission (with data) nor a list of task results")
    entries = content["data"] if is_scored_file else content
    name_key, score_key = ("task_name", "mean_task_score") if is_scored_file else ("name", "score")
    results = []
    for position, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise DataError(f"{where}: entry {position} is no object")
        if entry.get(score_key, NO_SCORE if is_scored_file else None) == NO_SCORE:
            continue
        place = f"{where}: task {entry.get('task_name', entry.get('name'))!r}"
        counts = _counted(entry, place) if is_scored_file else entry
        name, eval_type = entry.get(name_key), entry.get("eval_type")
        if not isinstance(name, str) or not name:
            raise DataError(f"{place}: the task has no name")
        score = _number(entry.get(score_key), place, score_key)
        if not isinstance(eval_type, str):
            raise DataError(f"{place}: no eval_type (rule or llm); evaluate the submission again with this evaluator")
        demos, queries = (int(_number(counts.get(key), place, key)) for key in ("num_demo", "num_query"))
        fixed = entry.get("fixed_mean_task_score") if is_scored_file else None
        results.append(TaskMean(name, score, eval_type, demos, queries, fixed))
    return results


def merge(files: Iterable[Sequence[TaskMean]]) -> list[TaskMean]:
    """One result a task: the first one seen, except that one with a judge replaces one without, in its place."""
    merged: dict[str, TaskMean] = {}
    for results in files:
        for result in results:
            known = merged.get(result.name)
            if known is None or (result.eval_type == "llm" and known.eval_type != "llm"):
                merged[result.name] = result
    return list(merged.values())


def _counted(entry: Mapping[str, Any], where: str) -> dict[str, int]:
    """Count demonstrations and queries of a scored task."""
    example, queries = entry.get("example_info"), entry.get("query_response")
    if not isinstance(example, Mapping):
        raise DataError(f"{where}: no example_info (an object, empty without a demonstration); it is the submission's")
    if not isinstance(queries, list):
        raise DataError(f"{where}: query_response must be a list, not {type(queries).__name__}")
    return {"num_demo": int(bool(example.get("example_text") or example.get("image_paths"))), "num_query": len(queries)}


def _number(value: Any, where: str, key: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise DataError(f"{where}: {key} must be a number, not {value!r}")
    return value
