"""General-Bench: tasks whose metric is not a mean over items, and General-Level (levels 2 to 5).

A part is a task. A level counts tasks that reach the specialist, so it is not a mean and is recomputed from redrawn
tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.compare.benchmarks.contract import Benchmark, Headlines, Kept, Number, TaskPair, kept
from lmms_eval.compare.runs import TaskRows
from lmms_eval.compare.strata import FunctionPart, MeanPart, PairedStratum
from lmms_eval.tasks.general_bench.facts import TaskFacts, tasks_by_id
from lmms_eval.tasks.general_bench.facts.metrics import metrics
from lmms_eval.tasks.general_bench.levels.paper import final_levels
from lmms_eval.tasks.general_bench.measures import registry
from lmms_eval.tasks.general_bench.measures.contract import Measure
from lmms_eval.tasks.general_bench.report import DEMO, PREFIX
from lmms_eval.tasks.general_bench.scoring import ItemOutcome
from lmms_eval.tasks.general_bench.summary import strict_value
from lmms_eval.utils.numbers import ScoreRange

_LEVELS = ScoreRange(0.0, 100.0)
_NOTES = ("of the tasks that both runs were asked: without those that files answer",)


def _owns(task: str, column: str) -> bool:
    facts = _facts(task)
    return facts is not None and column == f"{facts.metric},none"


def _headlines_of(pairs: Sequence[TaskPair]) -> Iterator[Headlines]:
    """Yield tasks whose value is not a mean, and the levels, separately for the data set and the demonstration."""
    for title, is_demo in (("general_bench", False), ("general_bench_demo", True)):
        found = {
            pair.task: (pair, facts, taken)
            for pair in pairs
            if pair.task.startswith(DEMO) == is_demo
            and (facts := _facts(pair.task)) is not None
            and (taken := kept(pair, _Item(facts))).values
        }
        parts = {task: _part(facts, pair, taken) for task, (pair, facts, taken) in found.items()}
        for task, (pair, facts, taken) in found.items():
            if isinstance(parts[task], FunctionPart):
                yield _of_task(facts, pair, parts[task], taken)
        if parts:
            facts_of = {task: facts for task, (_, facts, _) in found.items()}
            pairings = {task: taken.pairing for task, (_, _, taken) in found.items()}
            yield Headlines(
                {
                    f"level{number}": Number(f"{title} level {number}", "score", unit="", within=_LEVELS, notes=_NOTES)
                    for number in (2, 3, 4, 5)
                },
                parts,
                _Levels(facts_of),
                {task: task for task in parts},
                pairings,
                is_linear=False,
            )


class _Item:
    """Reader of an item's outcome in a row."""

    def __init__(self, facts: TaskFacts) -> None:
        self.column = f"{facts.metric},none"

    def __call__(self, side: TaskRows, row: int) -> Mapping[str, Any] | None:
        value = side.raw(self.column, row)
        return value if isinstance(value, Mapping) and "state" in value else None


class _Levels:
    """Function from the values of tasks to the levels."""

    def __init__(self, facts: Mapping[str, TaskFacts]) -> None:
        self.facts = facts

    def __call__(self, values: Mapping[str, float]) -> Mapping[str, float]:
        scores = {self.facts[task]: value for task, value in values.items() if math.isfinite(value)}
        return {f"level{number}": level for number, level in final_levels(scores).items()}


def _facts(task: str) -> TaskFacts | None:
    return tasks_by_id().get(task.removeprefix(DEMO).removeprefix(PREFIX)) if task.startswith(PREFIX) else None


def _part(facts: TaskFacts, pair: TaskPair, taken: Kept) -> PairedStratum:
    measure = registry.measure_for(facts, taken.values[0][0]["form"])
    clusters = pair.clusters(taken.rows)
    if measure.is_mean:
        return MeanPart.of([(float(a["state"]), float(b["state"])) for a, b in taken.values], clusters)
    first, second = ([ItemOutcome.from_record(both[side]) for both in taken.values] for side in (0, 1))
    return FunctionPart(_Value(facts, measure), first, second, clusters)


class _Value:
    """Function from the items of a task to its value; NaN if the items have no joint value."""

    def __init__(self, facts: TaskFacts, measure: Measure) -> None:
        self.facts, self.measure = facts, measure

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> float:
        value = strict_value(self.facts, self.measure, outcomes)
        return math.nan if value is None else value


def _of_task(facts: TaskFacts, pair: TaskPair, part: PairedStratum, taken: Kept) -> Headlines:
    metric = metrics()[facts.metric]
    number = Number(
        pair.task, facts.metric, unit="", within=ScoreRange(metric.low, metric.high),
        higher_is_better=metric.higher_is_better,
    )  # fmt: skip
    tasks, pairings = {pair.task: pair.task}, {pair.task: taken.pairing}
    return Headlines({pair.task: number}, {pair.task: part}, dict, tasks, pairings)


BENCHMARK = Benchmark(_headlines_of, _owns)
