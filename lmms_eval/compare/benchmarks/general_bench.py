"""General-Bench: tasks whose metric is not a mean over items, and General-Level (levels 2 to 5).

A part is a task. A level counts tasks that reach the specialist, so it is not a mean and is recomputed from redrawn
tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lmms_eval.compare.benchmarks.contract import Benchmark, Headlines, Kept, Number, kept
from lmms_eval.compare.matching import Shared
from lmms_eval.compare.runs import TaskRows
from lmms_eval.compare.strata import FunctionPart, MeanPart, PairedStratum
from lmms_eval.tasks.general_bench.facts import TaskFacts, metrics, tasks_by_id
from lmms_eval.tasks.general_bench.levels.paper import final_levels
from lmms_eval.tasks.general_bench.measures import registry
from lmms_eval.tasks.general_bench.report import DEMO, PREFIX
from lmms_eval.tasks.general_bench.scoring import ItemOutcome
from lmms_eval.tasks.general_bench.summary import strict_value
from lmms_eval.utils.numbers import ScoreRange

_LEVELS = ScoreRange(0.0, 100.0)
_NOTES = ("of the tasks that both runs were asked: without those that files answer",)


def _owns(task: str, column: str) -> bool:
    facts = _facts(task)
    return facts is not None and column == f"{facts.metric},none"


def _headlines_of(pairs: Sequence[Shared]) -> Iterator[Headlines]:
    """Yield tasks whose value is not a mean, and the levels, separately for the data set and the demonstration."""
    for title, is_demo in (("general_bench", False), ("general_bench_demo", True)):
        found = {
            pair.task: (facts, taken)
            for pair in pairs
            if pair.task.startswith(DEMO) == is_demo
            and (facts := _facts(pair.task)) is not None
            and (taken := kept(pair, partial(_item, f"{facts.metric},none"))).values
        }
        parts = {task: _part(facts, taken) for task, (facts, taken) in found.items()}
        for task, (facts, taken) in found.items():
            if isinstance(parts[task], FunctionPart):
                metric = metrics()[facts.metric]
                number = Number(
                    task, facts.metric, unit="", within=ScoreRange(metric.low, metric.high),
                    higher_is_better=metric.higher_is_better,
                )  # fmt: skip
                yield Headlines({task: number}, {task: parts[task]}, dict, {task: task}, {task: taken.pairing})
        if parts:
            facts_of = {task: facts for task, (facts, _) in found.items()}
            pairings = {task: taken.pairing for task, (_, taken) in found.items()}
            yield Headlines(
                {
                    f"level{number}": Number(f"{title} level {number}", "score", unit="", within=_LEVELS, notes=_NOTES)
                    for number in (2, 3, 4, 5)
                },
                parts,
                partial(_levels, facts_of),
                {task: task for task in parts},
                pairings,
                is_linear=False,
            )


def _item(column: str, side: TaskRows, row: int) -> Mapping[str, Any] | None:
    """Read the outcome of a row's item."""
    value = side.raw(column, row)
    return value if isinstance(value, Mapping) and "state" in value else None


def _levels(facts: Mapping[str, TaskFacts], values: Mapping[str, float]) -> Mapping[str, float]:
    """Compute the levels from the values of tasks."""
    scores = {facts[task]: value for task, value in values.items() if math.isfinite(value)}
    return {f"level{number}": level for number, level in final_levels(scores).items()}


def _facts(task: str) -> TaskFacts | None:
    return tasks_by_id().get(task.removeprefix(DEMO).removeprefix(PREFIX)) if task.startswith(PREFIX) else None


def _part(facts: TaskFacts, taken: Kept) -> PairedStratum:
    measure = registry.measure_for(facts, taken.values[0][0]["form"])
    if measure.is_mean:
        return MeanPart.of([(float(a["state"]), float(b["state"])) for a, b in taken.values], taken.clusters)

    def value(outcomes: Sequence[ItemOutcome]) -> float:
        found = strict_value(facts, measure, outcomes)
        return math.nan if found is None else found

    first, second = ([ItemOutcome.from_record(both[side]) for both in taken.values] for side in (0, 1))
    return FunctionPart(value, first, second, taken.clusters)


BENCHMARK = Benchmark(_headlines_of, _owns)
