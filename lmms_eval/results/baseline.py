"""Paired comparison with an earlier run's samples (``--baseline``)."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval import stats
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.early import looked_interval
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import DataError
from lmms_eval.utils.numbers import ScoreRange

_SHARES = ScoreRange(0.0, 1.0)
_RIGHT_OR_WRONG = frozenset({"acc", "accuracy", "exact_match"})
"""Metrics that a line without any score of its own has by comparing answer and target."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: one metric through one filter pipeline."""

    metric: str
    filter: str

    def __str__(self) -> str:
        return f"{self.metric},{self.filter}"


@dataclass(frozen=True, slots=True)
class PairedScores:
    """A metric of this run against the baseline's, over the documents that both have."""

    baseline: str
    unit: str
    """``percent``, or empty: the metric's own, where its scores are no shares."""
    baseline_score: float
    difference: float
    """Mean of this run's scores less the baseline's."""
    ci_lower: float | None
    """``None`` with ``ci_upper`` where all differences are alike, and so say nothing of their spread."""
    ci_upper: float | None
    pvalue: float | None
    """``None`` where all differences are one number that is not 0, and of a task that has ended early."""
    n: int


def compare(result: TaskResult, store: RunStore, path: Path, name: str) -> dict[str, PairedScores]:
    """Pair by ``doc_id``, by ``METRIC,FILTER`` for every number of the task that is the mean of its documents'.

    A row with fewer than two documents that have a number on both sides has no entry. ``name`` is what the table calls
    the baseline.

    Raises:
        DataError: the samples file is missing or unreadable.
    """
    means = {Row(one.metric, one.filter): one for one in result.metrics if one.scale > 0 and one.value is not None}
    earlier = read_baseline(path, means, result.task.score_key)
    current = _current_scores(result, store, means)
    found = {}
    for row, metric in means.items():
        shared = sorted(set(earlier[row]) & set(current[row]))
        if len(shared) >= 2:
            scores = [current[row][doc_id] for doc_id in shared], [earlier[row][doc_id] for doc_id in shared]
            paired = _paired(metric, *scores, name)
            found[str(row)] = paired if result.early_stop is None else _stopped(paired, metric, earlier[row])
    return found


def _stopped(paired: PairedScores, metric: MetricResult, baseline: Mapping[int, float]) -> PairedScores:
    """The comparison of a task that has ended early: with the interval that holds at every look, and without a test,
    since one that holds for a number of documents that the scores have decided is not to be had."""
    unit = 100.0 if paired.unit == "percent" else 1.0
    looked, interval = metric.looked, None
    scaled = {doc_id: metric.scale * score for doc_id, score in baseline.items()}
    if looked is not None and all(score in looked.part.within for score in scaled.values()):
        interval = looked_interval([replace(looked, part=replace(looked.part, baseline=scaled))])
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return replace(
        paired,
        ci_lower=None if low is None else unit * low / metric.scale,
        ci_upper=None if high is None else unit * high / metric.scale,
        pvalue=None,
    )


def _paired(metric: MetricResult, current: list[float], baseline: list[float], name: str) -> PairedScores:
    within = metric.certainty.score_range
    width = (within.high - within.low) / metric.scale
    is_known = within != stats.ANY_NUMBER
    is_percent = within == ScoreRange(0.0, metric.scale) if is_known else all(x in _SHARES for x in current + baseline)
    unit = 100.0 if is_percent else 1.0
    paired = stats.paired_ttest(current, baseline)
    spreads = paired.se_diff > 0
    return PairedScores(
        baseline=name,
        unit="percent" if is_percent else "",
        baseline_score=unit * math.fsum(baseline) / len(baseline),
        difference=unit * paired.mean_diff,
        ci_lower=unit * max(paired.ci_lower, -width) if spreads else None,
        ci_upper=unit * min(paired.ci_upper, width) if spreads else None,
        pvalue=paired.p_value if math.isfinite(paired.t_stat) else None,
        n=paired.n,
    )


def read_baseline(path: Path, rows: Collection[Row] = (), score_key: str = "score") -> dict[Row, dict[int, float]]:
    """Scores by document of a samples file, for each of the ``rows``.

    A line without a filter belongs to every pipeline; of several lines of a document the first counts; documents that
    were not scored are left out. A file that has not the metric by its name, as other harnesses write them, gives one
    whose name has ``score`` the first field so named, and right-or-wrong metrics the equality of answer and target.

    Raises:
        DataError: the file is missing, or a line is no sample.
    """
    if not path.is_file():
        raise DataError(f"--baseline {path}: no such file; give a samples file (JSONL) of an earlier run")
    scores: dict[Row, dict[int, float]] = {row: {} for row in rows}
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                sample = json.loads(line)
                doc_id = int(sample["doc_id"])
                if sample.get("status", "scored") != "scored":
                    continue
                if "filtered_resps" not in sample:
                    raise KeyError("filtered_resps")
                for row, found in scores.items():
                    if sample.get("filter", row.filter) == row.filter and doc_id not in found:
                        score = _line_score(sample, row.metric, score_key)
                        if score is not None:
                            found[doc_id] = score
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(f"--baseline {path}, line {number}: not a samples line ({error!r})") from error
    return scores


def _line_score(sample: Mapping[str, Any], metric: str, score_key: str) -> float | None:
    if metric in sample:
        return _number(sample[metric], score_key)
    named = [key for key in sample if "score" in key]
    if named:
        return _number(sample[named[0]], score_key) if "score" in metric else None
    if metric not in _RIGHT_OR_WRONG:
        return None
    answer = sample["filtered_resps"]
    first = answer[0] if isinstance(answer, list) and answer else answer
    return float(str(sample["target"]) == str(first))


def _number(value: Any, score_key: str) -> float | None:
    number = stats.item_number(value, score_key)
    if number is not None or not isinstance(value, Mapping):
        return None if number is None else float(number)
    said = value.get("pred_answer", value.get("pred"))
    right = value.get("answer", value.get("target"))
    return None if said is None or right is None else float(str(said).lower() == str(right).lower())


def _current_scores(result: TaskResult, store: RunStore, rows: Collection[Row]) -> dict[Row, dict[int, float]]:
    found: dict[Row, dict[int, float]] = {row: {} for row in rows}
    for record in store.scores(result.task.name, result.doc_ids):
        for score in record.get("scores", ()):
            for metric, value in score["metrics"].items():
                number = stats.item_number(value, result.task.score_key)
                scores = found.get(Row(metric, score["filter"]))
                if number is not None and scores is not None:
                    scores[record["doc_id"]] = float(number)
    return found
