"""Paired comparison with an earlier run's samples (``--baseline``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval import stats
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import DataError
from lmms_eval.utils import baseline_display_name


@dataclass(frozen=True, slots=True)
class PairedScores:
    """This run against the baseline, over the documents that both have. Scores and interval in percent."""

    baseline: str
    baseline_score: float
    mean_difference: float
    ci_lower: float
    ci_upper: float
    pvalue: float
    n: int


def compare(result: TaskResult, store: RunStore, path: str) -> PairedScores | None:
    """Pair by ``doc_id``; ``None`` if fewer than two documents have a number on both sides.

    Raises:
        DataError: the samples file is missing or unreadable.
    """
    earlier = read_baseline(Path(path), [metric.name for metric in result.task.metrics])
    current = dict(_current_scores(result, store))
    shared = sorted(set(earlier) & set(current))
    if len(shared) < 2:
        return None
    baseline = [earlier[doc_id] for doc_id in shared]
    paired = stats.paired_ttest([current[doc_id] for doc_id in shared], baseline)
    return PairedScores(
        baseline=baseline_display_name(path),
        baseline_score=100 * sum(baseline) / len(baseline),
        mean_difference=100 * paired.mean_diff,
        ci_lower=100 * paired.ci_lower,
        ci_upper=100 * paired.ci_upper,
        pvalue=paired.p_value,
        n=len(shared),
    )


def read_baseline(path: Path, metrics: list[str]) -> dict[int, float]:
    """Score by document of a samples file: the field named like a score, else the task's metric, else equality."""
    if not path.is_file():
        raise DataError(f"--baseline {path}: no such file; give a samples file (JSONL) of an earlier run")
    scores: dict[int, float] = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                scores.setdefault(int(row["doc_id"]), _row_score(row, metrics))
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"--baseline {path}, line {number}: not a samples line ({error!r})") from error
    return scores


def _row_score(row: Mapping[str, Any], metrics: list[str]) -> float:
    named = [key for key in row if "score" in key]
    for key in (*named, *metrics):
        value = row.get(key)
        if isinstance(value, Mapping):
            return _mapping_score(value)
        if isinstance(value, int | float):
            return float(value)
    answer = row["filtered_resps"]
    first = answer[0] if isinstance(answer, list) and answer else answer
    return float(str(row["target"]) == str(first))


def _mapping_score(value: Mapping[str, Any]) -> float:
    number = stats.item_number(value)
    if number is not None:
        return float(number)
    said = value.get("pred_answer", value.get("pred"))
    right = value.get("answer", value.get("target"))
    return float(said is not None and str(said).lower() == str(right).lower())


def _current_scores(result: TaskResult, store: RunStore) -> Iterator[tuple[int, float]]:
    """The task's score key or first metric, through the first pipeline."""
    names = [result.task.score_key, *(metric.name for metric in result.task.metrics)]
    for record in store.scores(result.task.name, result.plan.doc_ids):
        if "failed" in record:
            continue
        metrics = record["scores"][0]["metrics"]
        value = next((metrics[name] for name in names if name in metrics), None)
        number = stats.item_number(value, result.task.score_key)
        if number is not None:
            yield record["doc_id"], float(number)
