"""Some documents of a task, asked, scored and aggregated by the engine as in a run, with nothing kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from lmms_eval.api.model import Model
from lmms_eval.api.task import MetricDefinition, Selection, Task
from lmms_eval.config import build_config, resolved_cli_args
from lmms_eval.engine.aggregate import AggregateOptions, MetricResult, TaskResult
from lmms_eval.engine.evaluate import EngineOptions, evaluate
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.store import RunStore


def tried(tasks: Sequence[Task], model: Model, documents: int) -> tuple[TaskResult, ...]:
    """Put the first documents of loaded tasks to a model; files that an aggregation writes go to a folder that goes.

    Raises:
        LmmsEvalError: the model or the data turned out unusable.
    """
    plans = [plan_task(task, documents, 0) for task in tasks]
    with TemporaryDirectory(prefix="lmms-eval-check-") as folder:
        given = resolved_cli_args(
            build_config({"model": "baseline", "tasks": ",".join(task.name for task in tasks), "output_path": folder})
        )
        aggregate = AggregateOptions(bootstrap_iters=0, arguments=SimpleNamespace(**given), allow_blank=True)
        with closing(RunStore(Path(folder), "check")) as store:
            result = evaluate(plans, Selection(tuple(tasks)), model, store, EngineOptions(aggregate=aggregate))
    assert result is not None  # a run of one process aggregates
    return result.tasks


def first_reason(result: TaskResult) -> str:
    """The most frequent reason for which documents are not scored; empty where all are."""
    return next(iter(result.outcome.reasons), "")


def number_of(metric: MetricResult) -> float | None:
    """The value of a metric, withheld or not, if it is a number."""
    value: Any = metric.value if metric.value is not None else metric.partial
    is_number = isinstance(value, int | float) and not math.isnan(value)
    return float(value) if is_number else None


def ends(definition: MetricDefinition) -> tuple[float | None, float | None]:
    """The best and the worst value that a metric can have; ``None`` where that is not known."""
    stated = definition.score_range
    if stated is None:
        return None, None
    low, high = (end if math.isfinite(end) else None for end in (stated.low, stated.high))
    return (low, high) if definition.higher_is_better is False else (high, low)
