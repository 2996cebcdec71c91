"""Runs for tests, as readers would give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmms_eval.compare.runs import DocumentTexts, MetricColumn, RunRows, TaskRows
from lmms_eval.results.facts import EarlyStop
from lmms_eval.utils.numbers import ScoreRange

SHARES = ScoreRange(0.0, 1.0)


def column(scores: Sequence[float | None], metric: str = "acc", **facts: Any) -> MetricColumn:
    numbers = np.array([np.nan if score is None else score for score in scores], dtype=np.float64)
    return MetricColumn(metric, facts.pop("filter", "none"), numbers, **{"score_range": SHARES, **facts})


def task(
    scores: Sequence[float | None] | Sequence[MetricColumn],
    name: str = "quiz",
    ids: Sequence[str] | None = None,
    metadata: Mapping[str, Sequence[str | None]] | None = None,
    **facts: Any,
) -> TaskRows:
    columns = [one for one in scores if isinstance(one, MetricColumn)] or [column(scores)]  # type: ignore[arg-type]
    count = len(columns[0].scores)
    return TaskRows(
        task=name,
        ids=list(map(str, range(count))) if ids is None else ids,
        statuses=facts.pop("statuses", ["scored"] * count),
        columns={str(one): one for one in columns},
        metadata=lambda: metadata or {},
        answer=facts.pop("answer", lambda row: DocumentTexts(f"answer {row}", f"target {row}")),
        **facts,
    )


def run(name: str, *tasks: TaskRows) -> RunRows:
    return RunRows(name, f"/runs/{name}.jsonl", "csv", {one.task: one for one in tasks})


def stopped(asked: int, of: int, order: str = "random:0:abcd") -> EarlyStop:
    return EarlyStop(asked, of, order, "halfwidth<=0.05")
