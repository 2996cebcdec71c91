"""Paired comparison with an earlier run's samples (``--baseline``)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
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
    metric = _compared_metric(result, store)
    earlier = read_baseline(Path(path), [metric] if metric else [], result.task.score_key)
    current = dict(_current_scores(result, store, metric)) if metric else {}
    shared = sorted(set(earlier) & set(current))
    if len(shared) < 2:
        return None
    baseline = [earlier[doc_id] for doc_id in shared]
    paired = stats.paired_ttest([current[doc_id] for doc_id in shared], baseline)
    return PairedScores(
        baseline=baseline_display_name(path),
        baseline_score=100 * math.fsum(baseline) / len(baseline),
        mean_difference=100 * paired.mean_diff,
        ci_lower=100 * paired.ci_lower,
        ci_upper=100 * paired.ci_upper,
        pvalue=paired.p_value,
        n=len(shared),
    )


def read_baseline(path: Path, metrics: Sequence[str] = (), score_key: str = "score") -> dict[int, float]:
    """Score by document of a samples file: one of ``metrics``, else the first field named like a score, else equality.

    The first row of a document counts; documents that were not scored are left out.

    Raises:
        DataError: the file is missing, or a line is no sample.
    """
    if not path.is_file():
        raise DataError(f"--baseline {path}: no such file; give a samples file (JSONL) of an earlier run")
    scores: dict[int, float] = {}
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if row.get("status", "scored") == "scored" and row["doc_id"] not in scores:
                    scores[int(row["doc_id"])] = _row_score(row, metrics, score_key)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(f"--baseline {path}, line {number}: not a samples line ({error!r})") from error
    return scores


def _row_score(row: Mapping[str, Any], metrics: Sequence[str], score_key: str) -> float:
    named = [key for key in row if "score" in key]
    for key in (*metrics, *named):
        value = row.get(key)
        if isinstance(value, Mapping):
            return _mapping_score(value, score_key)
        if isinstance(value, int | float):
            return float(value)
    answer = row["filtered_resps"]
    first = answer[0] if isinstance(answer, list) and answer else answer
    return float(str(row["target"]) == str(first))


def _mapping_score(value: Mapping[str, Any], score_key: str) -> float:
    number = stats.item_number(value, score_key)
    if number is not None:
        return float(number)
    said = value.get("pred_answer", value.get("pred"))
    right = value.get("answer", value.get("target"))
    return float(said is not None and str(said).lower() == str(right).lower())


def _compared_metric(result: TaskResult, store: RunStore) -> str | None:
    """One metric for both sides: the task's score key, else its first metric that gives documents a number."""
    names = dict.fromkeys([result.task.score_key, *(metric.name for metric in result.task.metrics)])
    return next((name for name in names if any(_current_scores(result, store, name))), None)


def _current_scores(result: TaskResult, store: RunStore, metric: str) -> Iterator[tuple[int, float]]:
    """The numbers of a metric through the first pipeline."""
    for record in store.scores(result.task.name, result.plan.doc_ids):
        if record.get("scores"):
            number = stats.item_number(record["scores"][0]["metrics"].get(metric), result.task.score_key)
            if number is not None:
                yield record["doc_id"], float(number)
