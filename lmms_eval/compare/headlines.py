"""Differences of numbers that are not plain means over documents (``docs/statistics.md``).

These are groups, tasks' own aggregations, and benchmarks' headline numbers. They are redrawn by their own rules.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Literal

from msgspec import Struct, structs

from lmms_eval import stats
from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.compare.benchmarks import BENCHMARKS
from lmms_eval.compare.benchmarks.contract import Headlines, Kept, Number, kept
from lmms_eval.compare.matching import Shared
from lmms_eval.compare.redrawing import USUAL, Redrawing, redraw
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.compare.strata import FunctionPart, MeanPart, PairedStratum
from lmms_eval.compare.verdicts import Difference, Pairing
from lmms_eval.errors import LmmsEvalError
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.results.facts import aggregation_of, part_of
from lmms_eval.results.sample import finite
from lmms_eval.stats.interval import ANY_NUMBER
from lmms_eval.utils.numbers import SHARES, ScoreRange

Aggregation = Callable[[Sequence[Any]], float]


def own_aggregations(
    pairs: Sequence[Shared], first: RunRows, is_owned: Callable[[str, str], bool]
) -> Iterator[Headlines]:
    """Yield the number of each column that both runs have and that is not a mean over documents.

    Columns are left out if a benchmark's module computes them (``is_owned``), if their aggregation takes the command
    line or the task (it writes files), or if it does not reproduce the run's own number.
    """
    for pair in pairs:
        for key, column in pair.first.columns.items():
            other = pair.second.columns.get(key)
            if other is None or (column.scale and other.scale) or is_owned(pair.task, key):
                continue
            made = function_part(pair, key, first)
            if made is None:
                continue
            number = Number(
                pair.task,
                column.metric,
                column.filter,
                unit="",
                within=column.score_range or ANY_NUMBER,
                higher_is_better=column.higher_is_better is not False,
            )
            tasks, pairings = {pair.task: pair.task}, {pair.task: made.taken.pairing}
            missing, ends = _ends_of({pair.task: made})
            parts: dict[str, PairedStratum] = {pair.task: made.part}
            yield Headlines({pair.task: number}, parts, dict, tasks, pairings, missing=missing, ends=ends)


class _Made(Struct, frozen=True):
    """The part of a column."""

    part: FunctionPart | MeanPart
    taken: Kept
    ends: tuple[MeanPart, MeanPart] | None = None
    """As in ``Headlines.ends``."""


def _ends_of(made: Mapping[str, _Made]) -> tuple[int, dict[str, tuple[MeanPart, MeanPart]] | None]:
    """Return the number of documents without a score, and the parts' ends if all that have such documents have them.

    Numbers that are a function of all documents have no ends: their missing documents are left out.
    """
    having = {name: one for name, one in made.items() if one.taken.missing}
    if any(isinstance(one.part, FunctionPart) for one in made.values()):
        return 0, None
    ends = {name: one.ends for name, one in having.items() if one.ends is not None}
    return sum(len(one.taken.missing) for one in having.values()), ends if len(ends) == len(having) else None


def function_part(pair: Shared, key: str, first: RunRows) -> _Made | None:
    """Make the part of a column from its aggregation; ``None`` if that is not available or gives other numbers.

    It is a mean if the aggregation states the documents' numbers whose mean it is (``Estimate.scores``).
    """
    aggregation = _aggregation(pair.task, pair.first.columns[key].metric, first.results or {})
    if aggregation is None:
        return None
    function = _plain(aggregation)
    for side in (pair.first, pair.second):
        if not _gives_aggregation(function, side, side.columns[key]):
            return None
    taken = kept(pair, lambda side, row: side.raw(key, row))
    if not taken.values:
        return None
    firsts, seconds = [one for one, _ in taken.values], [two for _, two in taken.values]
    means = [_mean_of(aggregation, values) for values in (firsts, seconds)]
    if means[0] is not None and means[1] is not None:
        clusters = means[0].clusters or taken.clusters
        scores = list(zip(means[0].scores, means[1].scores, strict=True))
        within = pair.first.columns[key].score_range or ANY_NUMBER
        unknown: list[tuple[float | None, float | None]] = [(None, None)] * len(taken.missing)
        ends = taken.ends(scores, unknown, within) if not means[0].clusters or not taken.missing else None
        return _Made(MeanPart.of(scores, clusters), taken, ends)
    return _Made(FunctionPart(function, firsts, seconds, taken.clusters), taken)


def _mean_of(aggregation: Callable[..., Any], values: Sequence[Any]) -> Estimate | None:
    """Return the aggregate if it states one number for each value and is their mean."""
    try:
        found = aggregation(list(values))
    except Exception:  # noqa: BLE001 - a task's own function
        return None
    return found if isinstance(found, Estimate) and len(found.scores) == len(values) else None


def column_part(pair: Shared, key: str, first: RunRows, scale: float = 1.0, shift: float = 0.0) -> _Made | None:
    """Make the part of a column whose value is ``scale`` times the task's own number, plus ``shift``."""
    column, other = pair.first.columns[key], pair.second.columns[key]
    if not (column.scale and other.scale):
        made = function_part(pair, key, first)
        if made is None:
            return None
        if isinstance(made.part, MeanPart):
            ends = None
            if made.ends is not None:
                ends = (made.ends[0].scaled(scale, shift), made.ends[1].scaled(scale, shift))
            return _Made(made.part.scaled(scale, shift), made.taken, ends)
        own = made.part.function
        return _Made(replace(made.part, function=lambda items: scale * own(items) + shift), made.taken)
    taken = kept(pair, lambda side, row: finite(side.columns[key].scores[row].item()))
    if not taken.values:
        return None

    def value(score: float, side: MetricColumn) -> float:
        return scale * side.scale * score + shift

    values = [(value(a, column), value(b, other)) for a, b in taken.values]
    missing = [(None if a is None else value(a, column), None if b is None else value(b, other))
        for a, b in taken.missing]  # fmt: skip
    known = column.score_range
    within = ANY_NUMBER
    if known is not None and known == other.score_range and column.scale == other.scale > 0 < scale:
        within = ScoreRange(value(known.low, column), value(known.high, column))
    return _Made(MeanPart.of(values, taken.clusters), taken, taken.ends(values, missing, within))


def _gives_aggregation(function: Aggregation, side: TaskRows, column: MetricColumn) -> bool:
    """Return whether the function reproduces the run's own number; false if the run has none."""
    values = [value for row in range(len(side.ids)) if (value := side.raw(str(column), row)) is not None]
    if column.reported is None or not values:
        return False
    try:
        found = function(values)
    except Exception:  # noqa: BLE001 - a task's own function
        return False
    return math.isclose(found, column.reported, rel_tol=1e-6, abs_tol=1e-9)


def _aggregation(task: str, metric: str, results: Mapping[str, Any]) -> Callable[..., Any] | None:
    name = aggregation_of(results, task, metric)
    if name in AGGREGATIONS:
        return AGGREGATIONS[name].function()
    function = _function_here(task, metric)
    return None if function is None or len(inspect.signature(function).parameters) != 1 else function


def _function_here(task: str, metric: str) -> Callable[..., Any] | None:
    """Return the aggregation of the locally installed task; ``None`` if there is no such task or metric."""
    from lmms_eval.api.task import TaskOptions
    from lmms_eval.tasks.catalogue import Catalogue
    from lmms_eval.tasks.selection import select_tasks

    try:
        chosen = select_tasks((task,), Catalogue(), TaskOptions()).tasks
    except LmmsEvalError:
        return None
    if len(chosen) != 1 or chosen[0].name != task:
        return None
    return next((one.aggregation for one in chosen[0].metrics if one.name == metric), None)


def _plain(function: Callable[..., Any]) -> Aggregation:
    """Wrap an aggregation so that it returns a plain number; NaN if the number is withheld."""

    def value(items: Sequence[Any]) -> float:
        found = function(list(items))
        if isinstance(found, Withheld):
            return math.nan
        if isinstance(found, Estimate):
            found = found.value
        return math.nan if found is None else float(found)

    return value


class _Leaf(Struct, frozen=True):
    """A leaf task in a group's number."""

    pair: Shared
    key: str
    weight: float
    scale: float = 1.0
    shift: float = 0.0
    """The mean is taken over ``scale`` times the leaf's number, plus ``shift``."""


def group_headlines(pairs: Sequence[Shared], first: RunRows, second: RunRows) -> Iterator[Headlines]:
    """Yield the number of each group that both runs have.

    A group's rule (the metric and weight of each leaf) is the first of these that reproduces the numbers of both runs:
    the plain mean, the mean weighted by size, and the rule of the locally installed group. Without a rule the group is
    left out.
    """
    by_task = {pair.task: pair for pair in pairs}
    for group, names in first.groups.items():
        if group not in second.groups:
            continue
        for key, value in part_of(first.results or {}, "groups", group).items():
            metric, comma, _ = key.partition(",")
            if not comma or metric.endswith("_stderr") or not isinstance(value, int | float):
                continue
            members = [by_task[name] for name in names if name in by_task]
            leaves = next(
                (
                    one
                    for one in _rules(group, key, members, first)
                    if one and all(_gives_group(one, group, key, run, side) for side, run in enumerate((first, second)))
                ),
                None,
            )
            if leaves is not None and (made := _headlines(group, key, leaves, first)) is not None:
                yield made


def _rules(group: str, key: str, members: Sequence[Shared], first: RunRows) -> Iterator[list[_Leaf]]:
    having = [pair for pair in members if key in pair.first.columns and key in pair.second.columns]
    sizes = part_of(first.results or {}, "n-samples")
    yield [_Leaf(pair, key, 1.0) for pair in having]
    counts = [sizes.get(pair.task, {}).get("effective") for pair in having]
    if all(isinstance(count, int) and count > 0 for count in counts):
        yield [_Leaf(pair, key, float(count)) for pair, count in zip(having, counts, strict=True) if count]
    yield _leaves_here(group, key, members)


def _leaves_here(group: str, key: str, members: Sequence[Shared]) -> list[_Leaf]:
    """Return leaves by the rule of the local group, scaled to 0..100; empty if it does not name a metric per leaf."""
    from lmms_eval.errors import LmmsEvalError
    from lmms_eval.tasks.catalogue import Catalogue
    from lmms_eval.tasks.selection import choose

    try:
        groups = choose((group,), Catalogue()).groups
    except LmmsEvalError:
        return []
    metric, _, pipeline = key.rpartition(",")
    wanted = [
        one
        for found in groups
        if found.name == group
        for one in found.metrics
        if one.metric == metric and pipeline in one.filters and one.aggregation == "mean" and one.of
    ]
    leaves = []
    for pair in members if wanted else ():
        own = wanted[0].of.get(pair.task)
        if own is None or own not in pair.first.columns or own not in pair.second.columns:
            continue
        within = pair.first.columns[own].score_range
        if within is None or not math.isfinite(within.high - within.low):
            return []
        scale = 100 / (within.high - within.low)
        leaves.append(_Leaf(pair, own, 1.0, scale, -scale * within.low))
    return leaves


def _gives_group(leaves: Sequence[_Leaf], group: str, key: str, run: RunRows, side: int) -> bool:
    """Return whether the leaves' own numbers reproduce the group's number."""
    value = part_of(run.results or {}, "groups", group).get(key)
    columns = [(leaf.pair.first, leaf.pair.second)[side].columns[leaf.key] for leaf in leaves]
    numbers = [column.reported for column in columns]
    if not isinstance(value, int | float) or any(number is None for number in numbers):
        return False
    total = math.fsum(
        leaf.weight * (leaf.scale * number + leaf.shift)
        for leaf, number in zip(leaves, numbers, strict=True)
        if number is not None
    )
    return math.isclose(total / math.fsum(leaf.weight for leaf in leaves), value, rel_tol=1e-6, abs_tol=1e-9)


def _headlines(group: str, key: str, leaves: Sequence[_Leaf], first: RunRows) -> Headlines | None:
    parts: dict[str, _Made] = {}
    for leaf in leaves:
        made = column_part(leaf.pair, leaf.key, first, leaf.scale, leaf.shift)
        if made is None:
            return None
        parts[leaf.pair.task] = made
    whole = math.fsum(leaf.weight for leaf in leaves)

    def numbers(values: Mapping[str, float]) -> Mapping[str, float]:
        return {key: math.fsum(leaf.weight * values[leaf.pair.task] for leaf in leaves) / whole}

    columns = [leaf.pair.first.columns[leaf.key] for leaf in leaves]
    metric, _, pipeline = key.rpartition(",")
    unit: Literal["percent", ""] = ""
    within = ANY_NUMBER
    if all(column.score_range == SHARES and column.scale == 1 for column in columns):
        is_plain = all(leaf.scale == 1 for leaf in leaves)
        unit, within = ("percent", SHARES) if is_plain else ("", ScoreRange(0.0, 100.0))
    number = Number(
        group,
        metric,
        pipeline,
        unit,
        within,
        all(column.higher_is_better is not False for column in columns),
        (f"mean over {len(leaves)} tasks" + ("" if len({one.weight for one in leaves}) == 1 else ", by size"),),
    )
    tasks = {leaf.pair.task: leaf.pair.task for leaf in leaves}
    missing, ends = _ends_of(parts)
    return Headlines(
        {key: number},
        {task: one.part for task, one in parts.items()},
        numbers,
        tasks,
        {task: one.taken.pairing for task, one in parts.items()},
        missing=missing,
        ends=ends,
    )


class HeadlineFinding(Struct, frozen=True):
    """A difference, with its error for tests against a margin."""

    row: Difference
    error: float
    """Standard error of the difference; NaN if it is not known."""
    freedom: float
    """Degrees of freedom of the error."""
    missing: int = 0
    """Documents without a score that could change a verdict."""
    ends: tuple[HeadlineFinding, HeadlineFinding] | None = None
    """The least and the greatest difference that these documents allow; ``None`` if their range lacks an end."""

    def tail(self, bound: float) -> float | None:
        """Return the one-sided p of a true difference of at most ``bound``; ``None`` without an error."""
        if not self.error > 0:
            return None
        statistic = (self.row.value - bound) / self.error
        if self.freedom >= stats.MANY - 1:
            return NormalDist().cdf(-statistic)
        return stats.t_cdf(-statistic, self.freedom)

    def equivalence_p(self, margin: float) -> float | None:
        """Return the greater p of the two one-sided tests of a difference within the margin."""
        above, below = self.tail(-margin), self.tail(margin)
        return None if above is None or below is None else max(above, 1 - below)


def find_headlines(
    first: RunRows,
    second: RunRows,
    pairs: Mapping[str, Shared],
    options: Redrawing = USUAL,
    makes: Callable[[str, str], bool] = lambda _name, _metric: True,
) -> list[HeadlineFinding]:
    """Compare all numbers of two runs that are not plain means over the documents of a task.

    Args:
        first: the first run.
        second: the second run.
        pairs: the documents that both have, by task.
        options: level, redraws and seed.
        makes: whether to compute the number of a name and metric.

    Raises:
        LmmsEvalError: a benchmark's rule is declared as a weighted mean and is not one.
    """
    tasks = list(pairs.values())

    def is_owned(task: str, column: str) -> bool:
        return any(benchmark.owns(task, column) for benchmark in BENCHMARKS)

    found = [*own_aggregations(tasks, first, is_owned), *group_headlines(tasks, first, second)]
    found += [headlines for benchmark in BENCHMARKS for headlines in benchmark.headlines(tasks)]
    wanted = [one for one in found if any(makes(number.name, number.metric) for number in one.rows.values())]
    return [
        difference
        for headlines in wanted
        for difference in _compare(headlines, tasks, options)
        if makes(difference.row.name, difference.row.metric)
    ]


def _compare(headlines: Headlines, tasks: Sequence[Shared], options: Redrawing) -> Iterator[HeadlineFinding]:
    wholes = {name: part.whole() for name, part in headlines.parts.items()}
    sides = [headlines.numbers({name: whole[side] for name, whole in wholes.items()}) for side in (0, 1)]
    stopped = {pair.task for pair in tasks if pair.first.early_stop is not None or pair.second.early_stop is not None}
    redrawn = redraw(headlines, sides, options)
    for key, number in headlines.rows.items():
        first, second = (side.get(key, math.nan) for side in sides)
        if not math.isfinite(first - second):
            continue
        found = redrawn[key]
        of_tasks = dict.fromkeys(headlines.tasks[name] for name in found.parts)
        is_stopped = not stopped.isdisjoint(of_tasks)
        bounds = found.bounds
        reason = "a run stopped early: redraws hold for whole runs only" if is_stopped else found.reason
        if bounds is not None and not is_stopped:
            most = number.within.high - number.within.low
            bounds = stats.Interval(max(bounds.low, -most), min(bounds.high, most), bounds.method)
        pairings = [headlines.pairings[task] for task in of_tasks]
        row = Difference(
            name=number.name,
            metric=number.metric,
            filter=number.filter,
            first=first,
            second=second,
            value=first - second,
            interval=None if is_stopped else bounds,
            p=None if is_stopped else found.p,
            pairing=Pairing(
                paired=sum(one.paired for one in pairings),
                only_first=sum(one.only_first for one in pairings),
                only_second=sum(one.only_second for one in pairings),
                unscored=(sum(one.unscored[0] for one in pairings), sum(one.unscored[1] for one in pairings)),
                failed=(sum(one.failed[0] for one in pairings), sum(one.failed[1] for one in pairings)),
            ),
            unit=number.unit,
            no_interval=reason,
            test="" if is_stopped else found.test,
            notes=(*number.notes, *filter(None, [found.note])),
            higher_is_better=number.higher_is_better,
        )
        if is_stopped:
            yield HeadlineFinding(row, math.nan, found.freedom)
        elif headlines.missing:
            yield HeadlineFinding(row, found.error, found.freedom, headlines.missing, _ends(headlines, tasks, options))
        else:
            lost = any(sum(one.failed) + sum(one.unscored) for one in pairings)
            notes = (*row.notes, LEFT_OUT) if lost else row.notes
            yield HeadlineFinding(structs.replace(row, notes=notes), found.error, found.freedom)


LEFT_OUT = "documents without a score are left out; the verdict may depend on them"


def _ends(
    headlines: Headlines, tasks: Sequence[Shared], options: Redrawing
) -> tuple[HeadlineFinding, HeadlineFinding] | None:
    """Return the findings with the least and the greatest difference, of a single number."""
    if headlines.ends is None:
        return None
    least, greatest = (
        next(
            _compare(
                structs.replace(
                    headlines,
                    parts={**headlines.parts, **{name: ends[side] for name, ends in headlines.ends.items()}},
                    missing=0,
                    ends=None,
                ),
                tasks,
                options,
            )
        )
        for side in (0, 1)
    )
    return least, greatest
