"""Task results -> core, open, overall and keyword statistics (pipeline specification §6.2, scoring rules §3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.stats.interval import Interval, MeanSpread, NoInterval, score_interval
from lmms_eval.tasks.megabench.breakdown.merge import TaskMean
from lmms_eval.tasks.megabench.facts import Labels
from lmms_eval.utils.numbers import SHARES

_LABELS = {
    "skills": "skills", "input_format": "input_format", "output_format": "output_format",
    "input_num": "visual_inputs", "app": "application",
}  # fmt: skip
"""Fields of ``Labels`` by dimension."""
DIMENSIONS = tuple(_LABELS)
SMALL_N = 10
"""Number of tasks below which a keyword is marked, since its interval is unreliable."""
EXPECTED = {"core": (440, 273), "open": (65, 42)}
"""Tasks of the full set and of the single-image set."""


class TaskGroup(Struct, frozen=True):
    """The number of some tasks: those without a judge (core), with one (open), of one label, or all."""

    tasks: int
    samples: int
    """Queries; of a label also the demonstrations."""
    score: float
    """Mean of the tasks' scores."""
    interval: Interval | NoInterval
    """95 %, over the tasks; none for a single task."""
    fixed: float
    """``score`` with the official evaluator's faults repaired."""

    @property
    def is_small(self) -> bool:
        return self.tasks < SMALL_N

    def with_interval(self) -> dict[str, Any]:
        """Return the score with its interval and the repaired score."""
        found = {"score": self.score, "ci95": None}
        if isinstance(self.interval, NoInterval):
            return {**found, "no_interval": self.interval.reason, "fixed": self.fixed}
        return {**found, "ci95": [self.interval.low, self.interval.high], "fixed": self.fixed}


class ModelBreakdown(Struct, frozen=True):
    """The leaderboard's numbers of one model."""

    core: TaskGroup | None
    open: TaskGroup | None
    overall: TaskGroup
    keywords: Mapping[str, Mapping[str, TaskGroup]]
    """Dimension -> keyword, in order of first use."""
    unknown: tuple[str, ...]
    """Tasks outside the benchmark, which do not count."""

    @property
    def sides(self) -> dict[str, TaskGroup | None]:
        return {"core": self.core, "open": self.open}

    def as_dict(self) -> dict[str, Any]:
        """``summary_and_keyword_stats.json``."""
        sides = {
            name: side
            and {"num_eval_tasks": side.tasks, "num_eval_samples": side.samples, "macro_mean_score": side.score}
            for name, side in self.sides.items()
        }
        keywords = {
            dimension: {
                name: {"count": one.tasks, "num_samples": one.samples, "tasks": [], "average_score": one.score}
                for name, one in self.keywords[dimension].items()
            }
            for dimension in DIMENSIONS
        }
        return {"model_summary": {**sides, "overall_score": self.overall.score}, "keyword_stats": keywords}

    def intervals(self) -> dict[str, Any]:
        """Return our own file next to the official two: 95 % intervals and the marks of small counts."""
        return {
            "level": 0.95,
            "method": "Wilson's over tasks with their effective number",
            "small_n": SMALL_N,
            "model_summary": {
                **{
                    name: side and {"num_eval_tasks": side.tasks, **side.with_interval()}
                    for name, side in self.sides.items()
                },
                "overall": self.overall.with_interval(),
            },
            "keyword_stats": {
                dimension: {
                    name: {"count": keyword.tasks, **keyword.with_interval(), "small_n": keyword.is_small}
                    for name, keyword in keywords.items()
                }
                for dimension, keywords in self.keywords.items()
            },
            "unknown_tasks": list(self.unknown),
        }

    def warnings(self) -> list[str]:
        """Return remarks on missing parts that matter for comparisons."""
        found = []
        for name, side in self.sides.items():
            count = 0 if side is None else side.tasks
            if count not in EXPECTED[name]:
                full, single = EXPECTED[name]
                found.append(f"{name}: {count} tasks; the full set has {full}, the single-image set {single}")
        if self.unknown:
            found.append(f"{len(self.unknown)} tasks that the benchmark does not have: {', '.join(self.unknown[:5])}")
        return found


def breakdown(results: Iterable[TaskMean], labels: Mapping[str, Labels]) -> ModelBreakdown:
    """Compute statistics over the tasks that ``labels`` knows.

    Means of core and open are exactly rounded; averages of keywords are added from left to right, as the published
    files were made. The overall score is the mean of both sides weighted by their number of tasks.
    """
    known: list[TaskMean] = []
    unknown: list[TaskMean] = []
    for result in results:
        (known if result.name in labels else unknown).append(result)
    core, judged = ([result for result in known if (result.eval_type == "llm") == side] for side in (False, True))
    core_side, open_side = _side(core), _side(judged)
    overall = _overall([(side.score, side.tasks) for side in (core_side, open_side) if side is not None])
    # tasks are drawn within core and within open
    sides = [[result.score for result in side] for side in (core, judged) if side]
    interval: Interval | NoInterval = NoInterval("no task")
    if sides:
        spreads = [MeanSpread.of_scores(side, SHARES) for side in sides]
        interval = score_interval(overall, MeanSpread.stratified(spreads, [len(side) for side in sides]), SHARES)
    queries = sum(result.num_query for result in known)
    return ModelBreakdown(
        core=core_side,
        open=open_side,
        overall=TaskGroup(len(known), queries, overall, interval, _fixed(known) if known else 0.0),
        keywords={dimension: _keywords(known, labels, dimension) for dimension in DIMENSIONS},
        unknown=tuple(result.name for result in unknown),
    )


def overall_score(results: Iterable[TaskMean], labels: Mapping[str, Labels]) -> float:
    """Return the overall score of ``breakdown`` without keywords and intervals, for numbers that are redrawn."""
    scores = [(result.eval_type == "llm", result.score) for result in results if result.name in labels]
    sides = [[score for is_judged, score in scores if is_judged == side] for side in (False, True)]
    return _overall([(math.fsum(side) / len(side), len(side)) for side in sides if side])


def _side(results: Sequence[TaskMean]) -> TaskGroup | None:
    if not results:
        return None
    mean = math.fsum(result.score for result in results) / len(results)
    return _group(results, mean, sum(result.num_query for result in results))


def _group(results: Sequence[TaskMean], mean: float, samples: int) -> TaskGroup:
    spread = MeanSpread.of_scores([result.score for result in results], SHARES)
    return TaskGroup(len(results), samples, mean, score_interval(mean, spread, SHARES), _fixed(results))


def _fixed(results: Sequence[TaskMean]) -> float:
    return math.fsum(one.score if one.fixed is None else one.fixed for one in results) / len(results)


def _overall(sides: Sequence[tuple[float, int]]) -> float:
    """Combine macro means, each with its number of tasks."""
    if len(sides) < 2:
        return sides[0][0] if sides else 0.0
    return sum(mean * tasks for mean, tasks in sides) / sum(tasks for _, tasks in sides)


def _keywords(results: Sequence[TaskMean], labels: Mapping[str, Labels], dimension: str) -> dict[str, TaskGroup]:
    members: dict[str, list[TaskMean]] = {}
    for result in results:
        found = getattr(labels[result.name], _LABELS[dimension])
        for name in found if dimension == "skills" else (found,) if found else ():
            members.setdefault(name, []).append(result)
    groups = {}
    for name, group in members.items():
        total = 0.0
        for result in group:  # not sum(), which compensates from Python 3.12 on
            total += result.score
        groups[name] = _group(group, total / len(group), sum(result.num_query + result.num_demo for result in group))
    return groups
