"""MEGA-Bench: macro means over tasks of the means over their queries; core, open, overall.

A part is a task of the benchmark; a task of the harness holds many of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.compare.benchmarks.contract import Benchmark, Headlines, Kept, Number, kept, scored
from lmms_eval.compare.matching import Shared
from lmms_eval.tasks.megabench.breakdown.merge import TaskMean, merge
from lmms_eval.tasks.megabench.breakdown.statistics import overall_score
from lmms_eval.tasks.megabench.facts import labels
from lmms_eval.tasks.megabench.report import SETS
from lmms_eval.tasks.megabench.summary import TaskTotals, summarise

_METRIC = "macro_mean"
_COLUMN = f"{_METRIC},none"
_COUNT = "scored,none"
"""Column that counts queries; the pairing has the same counts."""


def _owns(task: str, column: str) -> bool:
    return task.startswith("megabench") and column in (_COLUMN, _COUNT)


def _headlines_of(pairs: Sequence[Shared]) -> Iterator[Headlines]:
    """Yield the macro mean of each task of the harness, and of core and open together if the runs have both."""
    taken = {pair.task: kept(pair, scored(_COLUMN)) for pair in pairs if _owns(pair.task, _COLUMN)}
    found = {task: _Parts(own) for task, own in taken.items() if own.values}
    for task, parts in found.items():
        yield _of_task(task, parts)
    for title, members in SETS.items():
        if all(name in found for name in members):
            yield _overall(title, {name: found[name] for name in members})


class _Parts:
    """The benchmark's tasks in one task of the harness."""

    def __init__(self, taken: Kept) -> None:
        self.pairing, self.means = taken.pairing, taken.means(lambda value: str(value["task_name"]))
        self.kinds: dict[str, Any] = {str(value["task_name"]): value["eval_type"] for value, _ in taken.values}

    def score(self, name: str, mean: float) -> TaskTotals:
        n = self.means[name].documents
        return TaskTotals(name, self.kinds[name], n, mean * n, mean)

    def result(self, name: str, mean: float) -> TaskMean:
        return TaskMean(name, mean, self.kinds[name], 0, self.means[name].documents)


def _of_task(task: str, parts: _Parts) -> Headlines:
    def numbers(means: Mapping[str, float]) -> Mapping[str, float]:
        return {task: summarise(parts.score(name, mean) for name, mean in means.items()).macro}

    notes = (f"macro mean over {len(parts.means)} tasks",)
    return Headlines(
        {task: Number(task, _METRIC, notes=notes)},
        parts.means,
        numbers,
        dict.fromkeys(parts.means, task),
        {task: parts.pairing},
    )


def _overall(title: str, sides: Mapping[str, _Parts]) -> Headlines:
    known = labels()
    owner = {name: task for task, parts in sides.items() for name in parts.means if name in known}
    name = f"megabench overall, {title.replace('_', ' ')} set"

    def numbers(means: Mapping[str, float]) -> Mapping[str, float]:
        files = [
            [parts.result(one, mean) for one, mean in means.items() if owner[one] == task]
            for task, parts in sides.items()
        ]
        return {name: overall_score(merge(files), known)}

    notes = (f"core and open over {len(owner)} tasks",)
    return Headlines(
        {name: Number(name, _METRIC, notes=notes)},
        {one: sides[task].means[one] for one, task in owner.items()},
        numbers,
        owner,
        {task: parts.pairing for task, parts in sides.items()},
    )


BENCHMARK = Benchmark(_headlines_of, _owns)
