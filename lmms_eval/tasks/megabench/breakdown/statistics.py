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


class JudgeSide(Struct, frozen=True):
    """The tasks without a judge (core) or with one (open)."""

    tasks: int
    samples: int
    """Queries; demonstrations are not counted."""
    macro_mean: float
    interval: Interval | NoInterval
    fixed: float
    """``macro_mean`` with the official evaluator's faults repaired."""

    def as_dict(self) -> dict[str, Any]:
        """Return the values under the keys of the leaderboard's files."""
        return {
            "num_eval_tasks": self.tasks,
            "num_eval_samples": self.samples,
            "macro_mean_score": self.macro_mean,
        }


class Keyword(Struct, frozen=True):
    """The tasks with one label."""

    count: int
    samples: int
    """Queries and demonstrations."""
    average: float
    interval: Interval | NoInterval
    """95 %, over the tasks; none for a single task."""
    fixed: float
    """``average`` with the official evaluator's faults repaired."""


class ModelBreakdown(Struct, frozen=True):
    """The leaderboard's numbers of one model."""

    core: JudgeSide | None
    open: JudgeSide | None
    overall: float
    overall_interval: Interval | NoInterval
    overall_fixed: float
    keywords: Mapping[str, Mapping[str, Keyword]]
    """Dimension -> keyword, in order of first use."""
    unknown: tuple[str, ...]
    """Tasks outside the benchmark, which do not count."""

    def as_dict(self) -> dict[str, Any]:
        """``summary_and_keyword_stats.json``."""
        return {
            "model_summary": {
                "core": self.core and self.core.as_dict(),
                "open": self.open and self.open.as_dict(),
                "overall_score": self.overall,
            },
            "keyword_stats": {
                dimension: {
                    name: {"count": of.count, "num_samples": of.samples, "tasks": [], "average_score": of.average}
                    for name, of in self.keywords[dimension].items()
                }
                for dimension in DIMENSIONS
            },
        }

    def intervals(self) -> dict[str, Any]:
        """Return our own file next to the official two: 95 % intervals and the marks of small counts."""
        summary = {"core": _side_interval(self.core), "open": _side_interval(self.open)}
        return {
            "level": 0.95,
            "method": "Wilson's over tasks with their effective number",
            "small_n": SMALL_N,
            "model_summary": {
                **summary,
                "overall": _with_interval(self.overall, self.overall_interval, self.overall_fixed),
            },
            "keyword_stats": {
                dimension: {
                    name: {
                        "count": keyword.count,
                        **_with_interval(keyword.average, keyword.interval, keyword.fixed),
                        "small_n": keyword.count < SMALL_N,
                    }
                    for name, keyword in keywords.items()
                }
                for dimension, keywords in self.keywords.items()
            },
            "unknown_tasks": list(self.unknown),
        }

    def warnings(self) -> list[str]:
        """Return remarks on missing parts that matter for comparisons."""
        found = []
        for name, side in (("core", self.core), ("open", self.open)):
            count = 0 if side is None else side.tasks
            if count not in EXPECTED[name]:
                full, single = EXPECTED[name]
                found.append(f"{name}: {count} tasks; the full set has {full}, the single-image set {single}")
        if self.unknown:
            found.append(f"{len(self.unknown)} tasks that the benchmark does not have: {', '.join(self.unknown[:5])}")
        return found


def breakdown(results: Iterable[TaskMean], labels: Mapping[str, Labels]) -> ModelBreakdown:
    """Statistics over the tasks that ``labels`` knows.

    Means of core and open are exactly rounded; averages of keywords are added from left to right, as the published
    files were made. The overall score is the mean of both sides weighted by their number of tasks.
    """
    known: list[TaskMean] = []
    unknown: list[TaskMean] = []
    for result in results:
        (known if result.name in labels else unknown).append(result)
    core = [result for result in known if result.eval_type != "llm"]
    judged = [result for result in known if result.eval_type == "llm"]
    sides = _side(core), _side(judged)
    overall = _overall(*((side.macro_mean, side.tasks) if side else None for side in sides))
    return ModelBreakdown(
        core=sides[0],
        open=sides[1],
        overall=overall,
        overall_fixed=math.fsum(result.fixed_score for result in known) / len(known) if known else 0.0,
        overall_interval=_overall_interval(core, judged, overall),
        keywords={dimension: _keywords(known, labels, dimension) for dimension in DIMENSIONS},
        unknown=tuple(result.name for result in unknown),
    )


def overall_score(results: Iterable[TaskMean], labels: Mapping[str, Labels]) -> float:
    """The overall score of ``breakdown`` alone: without keywords and intervals, for numbers that are redrawn."""
    scores = [(result.eval_type == "llm", result.score) for result in results if result.name in labels]
    sides = [[score for is_judged, score in scores if is_judged == side] for side in (False, True)]
    return _overall(*((math.fsum(side) / len(side), len(side)) if side else None for side in sides))


def _side(results: Sequence[TaskMean]) -> JudgeSide | None:
    if not results:
        return None
    scores = [result.score for result in results]
    mean = math.fsum(scores) / len(scores)
    fixed = math.fsum(result.fixed_score for result in results) / len(results)
    return JudgeSide(len(results), sum(result.num_query for result in results), mean, _interval(mean, scores), fixed)


def _overall(*sides: tuple[float, int] | None) -> float:
    """Combine macro means, each with its number of tasks."""
    known = [side for side in sides if side is not None]
    if len(known) < 2:
        return known[0][0] if known else 0.0
    return sum(mean * tasks for mean, tasks in known) / sum(tasks for _, tasks in known)


def _overall_interval(core: Sequence[TaskMean], judged: Sequence[TaskMean], overall: float) -> Interval | NoInterval:
    """Tasks are drawn within core and within open."""
    sides = [[result.score for result in side] for side in (core, judged) if side]
    if not sides:
        return NoInterval("no task")
    spread = MeanSpread.stratified(
        [MeanSpread.of_scores(side, SHARES) for side in sides], [len(side) for side in sides]
    )
    return score_interval(overall, spread, SHARES)


def _keywords(results: Sequence[TaskMean], labels: Mapping[str, Labels], dimension: str) -> dict[str, Keyword]:
    groups: dict[str, list[TaskMean]] = {}
    for result in results:
        found = getattr(labels[result.name], _LABELS[dimension])
        for name in found if dimension == "skills" else (found,) if found else ():
            groups.setdefault(name, []).append(result)
    return {name: _keyword(group) for name, group in groups.items()}


def _keyword(results: Sequence[TaskMean]) -> Keyword:
    total = 0.0
    for result in results:  # not sum(), which compensates from Python 3.12 on
        total += result.score
    average = total / len(results)
    samples = sum(result.num_query + result.num_demo for result in results)
    fixed = math.fsum(result.fixed_score for result in results) / len(results)
    return Keyword(len(results), samples, average, _interval(average, [result.score for result in results]), fixed)


def _interval(mean: float, scores: Sequence[float]) -> Interval | NoInterval:
    return score_interval(mean, MeanSpread.of_scores(scores, SHARES), SHARES)


def _with_interval(value: float, interval: Interval | NoInterval, fixed: float) -> dict[str, Any]:
    if isinstance(interval, NoInterval):
        return {"score": value, "ci95": None, "no_interval": interval.reason, "fixed": fixed}
    return {"score": value, "ci95": [interval.low, interval.high], "fixed": fixed}


def _side_interval(side: JudgeSide | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {"num_eval_tasks": side.tasks, **_with_interval(side.macro_mean, side.interval, side.fixed)}
