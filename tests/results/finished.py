"""Finished runs for tests of the report: results of tasks put together without a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.task import Group, Selection
from lmms_eval.config import RunConfig
from lmms_eval.engine.drive import AskReport
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.engine.groups import aggregate_groups
from lmms_eval.results.document import GitState, RunFacts
from tests.engine.fakes import FakeTask, mean
from tests.engine.journaled import TaskResult, aggregated, failed, metric, values_of

FACTS = RunFacts(
    config=RunConfig(model="fake", model_args="model=org/fake"),
    model_backend="fake.Fake (chat)",
    command="lmms-eval --model fake",
    date="2024-05-06T07:08:09+00:00",
    git=GitState("0123456789abcdef", "main"),
    start_time=100.0,
    end_time=160.5,
    seconds={"collect": 1.0},
    run_key="k" * 16,
)


def task_result(
    folder: Path, name: str, values: Sequence[Any] = (1.0, 0.0), lost: int = 0, aggregation: Any = mean, **options: Any
) -> TaskResult:
    """A task whose documents have these values of ``acc``; ``lost`` further ones failed."""
    task = FakeTask(len(values) + lost, name)
    task.metrics = (metric("acc", aggregation, "mean" if aggregation is mean else None),)
    records = [*values_of(task, "acc", values), *(failed(task, len(values) + n, "timeout") for n in range(lost))]
    return aggregated(folder / name, task, records, **options)


def run_result(*tasks: TaskResult, groups: Sequence[Group] = (), **report: Any) -> RunScores:
    by_name = {result.task.name: result for result in tasks}
    made = tuple(aggregate_groups(groups, by_name))
    return RunScores(tasks, made, AskReport(**report), {"ask": 2.0}, 3, "f" * 64)


def selection(*tasks: TaskResult, groups: Sequence[Group] = (), direct: Sequence[str] | None = None) -> Selection:
    names = [result.task.name for result in tasks] if direct is None else direct
    return Selection(tuple(result.task for result in tasks), tuple(groups), frozenset(names))
