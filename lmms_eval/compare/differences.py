"""Differences of two runs in one column: value, interval and p, the correction over a family, and breakdowns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from statistics import NormalDist
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.anchored import Expected, expected_scores
from lmms_eval.compare.matching import MatchedPair, PairedColumn
from lmms_eval.compare.runs import RunRows, TaskRows
from lmms_eval.compare.verdicts import CompareOptions, Difference, Reruns, Sensitivity, Verdict
from lmms_eval.engine.headline import STRATA, place_in
from lmms_eval.errors import UsageError
from lmms_eval.results.breakdown import FEW, Division, divides
from lmms_eval.results.facts import EarlyStop, part_of
from lmms_eval.results.sample import finite
from lmms_eval.stats.interval import ANY_NUMBER, WITH_ANCHORS, Interval, NoInterval
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.typing import NDArray

    from lmms_eval.stats.differences import PairedFinding


TEST = "confidence sequence"
_SHARES_OF_ALPHA = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096, 16384)
_ABOVE_ALPHA = (0.5, 0.2, 0.1)


class SequentialFinding(Struct, frozen=True):
    """The difference over all documents of the task, estimated from the documents that were asked."""

    interval: Interval | NoInterval
    """Of the difference over the documents of this list."""
    anywhere: Interval | None = None
    """Of the difference over questions like these; ``None`` if documents come in clusters, or for a part of them."""
    p: float | None = None
    """For questions like these: the smallest of a list of levels such that their interval excludes 0 at it and at all
    greater levels; valid at every look. ``None`` if documents come in clusters, or for a part of the documents."""
    p_list: float | None = None
    """The same for the documents of this list."""
    equivalence_p: float | None = None
    """The same for an interval within the margin, for the documents of this list."""
    test: str = ""
    note: str = ""


def sequential(column: PairedColumn, options: CompareOptions, where: NDArray[bool_] | None = None) -> SequentialFinding:
    """Follow the differences of a column in the order of the runs' documents.

    Args:
        column: the paired scores.
        options: level and margin.
        where: marks the documents of a part, to estimate the difference over that part.
    """
    first, second = column.shared.first, column.shared.second
    stops = [task.early_stop for task in (first, second) if task.early_stop is not None]
    if len({(stop.order, stop.of) for stop in stops}) > 1:
        return SequentialFinding(NoInterval("stopped early in different random orders"))
    if any(stop.order.startswith(STRATA) for stop in stops):
        return SequentialFinding(NoInterval("stopped early over strata: only --until decided:RUN gives the difference"))
    if not math.isfinite(column.within.high - column.within.low):
        why = "no range known" if column.within == ANY_NUMBER else f"range {column.within}"
        return SequentialFinding(NoInterval(f"stopped early, {why}"))
    shorter = min((task for task in (first, second) if task.early_stop is not None), key=lambda task: len(task.ids))
    if shorter.early_stop is None or (places := _in_order(column, shorter, shorter.early_stop)) is None:
        return SequentialFinding(NoInterval("stopped early in an order that is not known here"))
    # A document that one run lacks may belong to the part, with any difference.
    inside = None if where is None else [place is None or bool(where[place]) for place in places]
    differences = [_ends(column, place) for place in places]
    width = column.within.high - column.within.low
    look = partial(_at_look, differences, inside, shorter.early_stop.of, width)
    anywhere = None if inside is not None or column.shared.clusters is not None else partial(look, is_of_list=False)
    of_list, says = look, ""
    if options.anchors and where is None:
        expected = expected_scores(column, options.anchors)
        if isinstance(expected, str):
            says = f"; no --anchors: {expected}"
        else:
            of_list = partial(
                _anchored_look, _rests(column, shorter, places, expected), expected, shorter is first, look
            )
            says = f"; with --anchors {', '.join(expected.runs)}"
    margin = options.margin
    stopped = "both" if len(stops) > 1 else "one of them"
    return SequentialFinding(
        interval=of_list(1 - options.alpha),
        anywhere=None if anywhere is None else anywhere(1 - options.alpha),
        p=None if anywhere is None else _smallest_level(_excludes_0, anywhere, options.alpha),
        p_list=_smallest_level(_excludes_0, of_list, options.alpha),
        equivalence_p=None
        if margin is None
        else _smallest_level(lambda one: -margin < one.low and one.high < margin, of_list, options.alpha),
        test=TEST,
        note=f"valid although {stopped} stopped early: over the first {len(differences):,} of "
        f"{shorter.early_stop.of:,} documents of the random order; the interval is about this list of documents{says}",
    )


def _rests(
    column: PairedColumn, shorter: TaskRows, places: Sequence[int | None], expected: Expected
) -> list[tuple[float, float]]:
    """Return the least and the greatest possible score minus the expected one, in the order of asking."""
    is_first = shorter is column.shared.first
    rows = column.shared.first_rows if is_first else column.shared.second_rows
    scores = column.first if is_first else column.second
    found = []
    for place in places:
        # The other run is whole, so every document is shared.
        assert place is not None
        score, share = float(scores[place]), expected.scores[shorter.ids[int(rows[place])].strip()]
        low, high = (score, score) if math.isfinite(score) else (column.within.low, column.within.high)
        found.append((low - share, high - share))
    return found


def _anchored_look(
    rests: list[tuple[float, float]], expected: Expected, is_first: bool, look: partial[Interval], level: float
) -> Interval:
    """Return the interval of the difference at the last look, from the scores minus the expected ones."""
    _, _, total, width = look.args
    found = _at_look(rests, None, total, width, level)
    ends = found.low + expected.offset, found.high + expected.offset
    low, high = ends if is_first else (-ends[1], -ends[0])
    return Interval(max(-width, low), min(width, high), f"{found.method}{WITH_ANCHORS}")


def _excludes_0(interval: Interval) -> bool:
    return interval.low > 0 or interval.high < 0


def _at_look(
    differences: list[tuple[float, float]],
    inside: list[bool] | None,
    total: int,
    most: float,
    level: float,
    is_of_list: bool = True,
) -> Interval:
    """Return the interval of the differences (−``most`` to ``most``) at the last look.

    Args:
        differences: least and greatest possible difference of each document, in random order.
        inside: marks the documents of a part, if the interval is for a part.
        total: documents of the list.
        most: the greatest difference.
        level: probability.
        is_of_list: as for ``Sampled``.
    """
    import numpy as np

    from lmms_eval.stats.cells import sampled_cells
    from lmms_eval.stats.sequence import Sampled

    if inside is None:
        sampled = Sampled(total, ScoreRange(-most, most), level, is_of_list)
        for low, high in differences:
            sampled.add(low, high)
        return sampled.interval()
    ends = (np.array(differences).reshape(-1, 2) + most) / (2 * most)
    ((least,), (greatest,)) = sampled_cells(ends[:, 0], ends[:, 1], np.where(inside, 0, -1), 1, total, level)
    return Interval(2 * most * float(least) - most, 2 * most * float(greatest) - most, "betting")


def _smallest_level(holds: Callable[[Interval], bool], look: Callable[[float], Interval], alpha: float) -> float:
    """Return the smallest level reached from above while the statement holds; 1 if it never holds."""
    levels = (*(one for one in _ABOVE_ALPHA if one > alpha), *(alpha / share for share in _SHARES_OF_ALPHA))
    held = list(itertools.takewhile(lambda level: holds(look(1 - level)), levels))
    return held[-1] if held else 1.0


def _in_order(column: PairedColumn, shorter: TaskRows, stop: EarlyStop) -> list[int | None] | None:
    """Return places among the shared documents in the order of asking (``None`` for missing ones), if it is known."""
    try:
        order = sorted(range(len(shorter.ids)), key=lambda row: place_in(stop.order, shorter.task, shorter.ids[row]))
    except ValueError:
        return None
    rows = column.shared.first_rows if shorter is column.shared.first else column.shared.second_rows
    places = {int(row): place for place, row in enumerate(rows)}
    return [places.get(row) for row in order]


def _ends(column: PairedColumn, place: int | None) -> tuple[float, float]:
    """Return the least and greatest possible difference of a document; a missing document has unknown scores."""
    within = column.within

    def side(score: float) -> tuple[float, float]:
        return (score, score) if math.isfinite(score) else (within.low, within.high)

    first = side(math.nan if place is None else float(column.first[place]))
    second = side(math.nan if place is None else float(column.second[place]))
    return first[0] - second[1], first[1] - second[0]


class UncorrectedDifference(Struct, frozen=True):
    """A difference, with what its verdict needs, before the correction over its family."""

    row: Difference
    spread: float
    """Standard deviation of a document's difference; NaN if unknown, so that other sample sizes cannot be assessed."""
    equivalence_p: float | None = None
    """p of the hypothesis that the difference is outside the margin; ``None`` without a margin or a test."""
    step: float = 0.0
    """The score of a right answer if McNemar's exact test is used, else 0 (``stats.power.detectable``)."""
    missing: int = 0
    """Documents without a score in one of the runs that count against the verdict."""
    p_missing: float | None = None
    """The row's p if these documents had the scores that speak most against its difference."""
    equivalence_p_missing: float | None = None
    """``equivalence_p`` for the scores of these documents that make it largest."""
    is_endless: bool = False
    """The range of the scores lacks an end, so that one document could outweigh all others."""

    @property
    def certain_ps(self) -> tuple[float | None, float | None]:
        """The p of the difference and of equivalence that hold whatever missing documents would score."""
        return (self.p_missing, self.equivalence_p_missing) if self.missing else (self.row.p, self.equivalence_p)


def find_difference(
    column: PairedColumn, options: CompareOptions, where: NDArray[bool_] | None = None
) -> UncorrectedDifference | None:
    """Compare the documents of a column, or a part of them; ``None`` if no document has numbers in both runs.

    Args:
        column: the paired scores.
        options: level, margin and draws.
        where: marks the documents of the part.
    """
    import numpy as np

    from lmms_eval.stats.differences import equivalence_p

    inside = np.ones(len(column.first), bool) if where is None else where
    paired = column.has_both & inside
    count = int(paired.sum())
    if not count:
        return None
    expected = paired if count == inside.sum() else column.expected & inside
    first, second = column.first[paired], column.second[paired]
    better = column.better()[paired]
    row = Difference(
        name=column.task,
        metric=column.metric,
        filter=column.filter,
        first=math.fsum(first) / count,
        second=math.fsum(second) / count,
        value=math.fsum(first - second) / count,
        interval=None,
        p=None,
        pairing=column.shared.counts(np.isfinite(column.first), np.isfinite(column.second), inside),
        unit="percent" if column.is_share else "",
        notes=column.notes,
        higher_is_better=column.higher_is_better,
        changed=(int((better > 0).sum()), int((better < 0).sum())),
        sensitivity=_sensitivity(column, expected, count),
    )
    if not column.is_mean:
        row = replace(row, notes=(*row.notes, "means over documents, not the task's own number"))
    if column.shared.stopped_early:
        # A confidence sequence holds whenever a run stopped.
        early = sequential(column, options, None if inside.all() else inside)
        row = replace(row, notes=(*row.notes, early.note) if early.note else row.notes)
        # How many documents a fixed number would need is another question than when a sequence decides.
        row = replace(_tested(row, early), p_list=early.p_list)
        return UncorrectedDifference(row, math.nan, early.equivalence_p)
    pairs = _paired_finding(column, (column.first, column.second), paired, options)
    p = None if options.margin is None else equivalence_p(pairs, options.margin)  # None without an interval
    step = pairs.scale if pairs.test == "mcnemar exact" else 0.0
    found = UncorrectedDifference(_tested(row, pairs), pairs.spread, p, step)
    return found if count == expected.sum() else _with_missing(found, column, expected, options)


def _paired_finding(
    column: PairedColumn,
    scores: tuple[NDArray[float64], NDArray[float64]],
    where: NDArray[bool_],
    options: CompareOptions,
) -> PairedFinding:
    """Compare the scores of the marked documents."""
    from lmms_eval.stats.differences import PairOptions, compare_pairs

    names = column.shared.clusters
    clusters = None if names is None else [name for name, has in zip(names, where, strict=True) if has]
    pair_options = PairOptions(level=1 - options.alpha, draws=options.draws, seed=options.seed, within=column.within)
    return compare_pairs(scores[0][where], scores[1][where], clusters, pair_options)


def _with_missing(
    found: UncorrectedDifference, column: PairedColumn, expected: NDArray[bool_], options: CompareOptions
) -> UncorrectedDifference:
    """Add the p-values that hold whatever the documents without a score would score.

    A difference is tested with the missing scores that speak most against it. It is equivalence if it is with the
    missing scores in favour of either run. Only p-values that reject are computed again, since the others cannot fall.
    """
    from lmms_eval.stats.differences import equivalence_p

    def tested(favours_first: bool) -> PairedFinding | None:
        scores = column.completed(favours_first)
        return None if scores is None else _paired_finding(column, scores, expected, options)

    row, p, equivalence = found.row, found.row.p, found.equivalence_p
    if p is not None and p <= options.alpha:
        against = tested((row.value > 0) != row.higher_is_better)
        p = 1.0 if against is None or against.value * row.value <= 0 else against.p
    if equivalence is not None and options.margin is not None and equivalence <= options.alpha:
        ends = [None if one is None else equivalence_p(one, options.margin) for one in (tested(True), tested(False))]
        equivalence = max(1.0 if one is None else one for one in ends)
    return replace(
        found,
        missing=int(expected.sum()) - row.pairing.paired,
        p_missing=p,
        equivalence_p_missing=equivalence,
        is_endless=not math.isfinite(column.within.high - column.within.low),
    )


def _tested(row: Difference, found: SequentialFinding | PairedFinding) -> Difference:
    """Add an interval, or why it is missing, and a test."""
    if isinstance(found.interval, NoInterval):
        return replace(row, interval=None, no_interval=found.interval.reason, p=found.p, test=found.test)
    return replace(row, interval=found.interval, no_interval="", p=found.p, test=found.test)


def _sensitivity(column: PairedColumn, expected: NDArray[bool_], paired: int) -> Sensitivity | None:
    """Count documents without a number as wrong; ``None`` if every document has one or the worst score is not known."""
    import numpy as np

    documents = int(expected.sum())
    worst = column.within.low if column.higher_is_better else column.within.high
    if documents == paired or not math.isfinite(worst):
        return None
    sides = (np.where(np.isfinite(side), side, worst)[expected] for side in (column.first, column.second))
    first, second = (math.fsum(side) / documents for side in sides)
    ends = [
        math.fsum(scores[0][expected] - scores[1][expected]) / documents
        for favours in (False, True)
        if (scores := column.completed(favours)) is not None
    ]
    return Sensitivity(first - second, documents, *sorted(ends))


_Z = NormalDist().inv_cdf(0.975)
_OF_REPEATS = "again"


def with_reruns(row: Difference, column: PairedColumn, pair: MatchedPair) -> Difference:
    """Add how the difference varies if the runs are made again, if one of them knows how its answers vary.

    A run knows that by its documents that were asked again (``--repeat_share``), or by ``--repeats``. Answers to
    different questions vary independently, so the variance of a mean over n questions is the mean variance of an answer
    divided by n.
    """
    keys = (str(column), f"{column.metric},{column.second_filter or column.filter}")
    sides = ((pair.first, column.shared.first, keys[0]), (pair.second, column.shared.second, keys[1]))
    of_runs = [_answer_variance(run, task, key) for run, task, key in sides]
    known = [one for one in of_runs if one is not None]
    if not known or column.shared.stopped_early:
        return row
    n = row.pairing.paired
    error = math.sqrt(2 * math.fsum(plain for plain, _ in known) / len(known) / n)
    highs = [high for _, high in known if high is not None]
    half_high = _Z * math.sqrt(2 * math.fsum(highs) / len(highs) / n) if len(highs) == len(known) else None
    found = Reruns(
        error=error,
        half_width=_Z * error,
        half_width_high=half_high,
        is_beyond=None if half_high is None else abs(row.value) > half_high,
    )
    if len(known) < len(sides):
        absent = next(run.name for (run, _, _), one in zip(sides, of_runs, strict=True) if one is None)
        reason = f"{absent} does not know how its answers vary (--repeat_share)"
        return replace(row, reruns=replace(found, no_interval=reason))
    if half_high is None:
        return replace(row, reruns=replace(found, no_interval="no range with two ends"))
    width = column.within.high - column.within.low
    low, high = max(-width, row.value - half_high), min(width, row.value + half_high)
    return replace(row, reruns=replace(found, interval=Interval(low, high, "normal")))


def _answer_variance(run: RunRows, task: TaskRows, key: str) -> tuple[float, float | None] | None:
    """Return the variance of a document's score if the question is asked again, and its upper end, if they are known.

    The upper end of a run with ``--repeats`` is that of its interval for another run on the list.
    """
    document, column = run.results or {}, task.columns.get(key)
    scores = part_of(part_of(part_of(document, "noise_floor"), task.task), "scores")
    noise = part_of(scores, key)
    if (answers := finite(noise.get("answers"))) is not None:
        return answers, finite(noise.get("answers_high"))
    entry = part_of(part_of(document, "variance", task.task), key)
    again, n = part_of(entry, _OF_REPEATS), finite(entry.get("n"))
    error, low, high = (finite(again.get(name)) for name in ("stderr", "low", "high"))
    if column is None or not column.scale or error is None or n is None:
        return None
    plain = error**2 * n / column.scale**2
    if low is None or high is None:
        return plain, None
    return plain, max(plain, ((high - low) / 2 / _Z) ** 2 * n / column.scale**2)


POWER = 0.8
_ROUNDING = 1e-12


def judge_family(found: Sequence[UncorrectedDifference], options: CompareOptions) -> list[Difference]:
    """Correct the p-values of a family and give a verdict on each of its differences.

    Verdicts follow the p-values adjusted by Holm, and hold whatever the documents without a score would score. A
    difference shown to lie within the margin is ``equivalent`` even if it is not 0. Detectable differences and needed
    documents are computed at ``alpha`` divided by the number of tests, which suffices whatever the other tests show.
    """
    from lmms_eval.stats.differences import benjamini_hochberg, holm

    ps = [one.row.p for one in found]
    lists = holm([one.row.p_list for one in found])
    certain = [one.certain_ps for one in found]
    of_scored = zip(holm(ps), holm([one.equivalence_p for one in found]), lists, strict=True)
    of_all = zip(holm([p for p, _ in certain]), holm([equivalence for _, equivalence in certain]), lists, strict=True)
    alpha = options.alpha / max(1, sum(p is not None for p in ps))
    judged = []
    for one, p_bh, scored, whole in zip(found, benjamini_hochberg(ps), of_scored, of_all, strict=True):
        row = replace(one.row, p_holm=scored[0], p_bh=p_bh)
        seen, verdict = (_verdict(row, *adjusted, options.alpha) for adjusted in (scored, whole))
        is_open = verdict == seen == "cannot tell"
        if verdict != seen:
            row = replace(row, notes=(*row.notes, _depends(one, seen)))
        if verdict.startswith("equivalent") and _verdict(row, whole[0], None, whole[2], options.alpha) != "cannot tell":
            row = replace(row, notes=(*row.notes, "there is a difference, but within the margin"))
        needed = _needed(one, alpha, options.margin) if is_open else (None, None)
        estimand = None if row.interval is None else row.interval.estimand
        row = replace(row, verdict=verdict, estimand=estimand, needed=needed[0], needed_least=needed[1])
        judged.append(replace(row, detectable=_detectable(one, alpha)))
    return judged


def _verdict(
    row: Difference, p: float | None, equivalence: float | None, p_list: float | None, alpha: float
) -> Verdict:
    """Return the verdict of adjusted p-values."""
    is_equivalent, is_real, is_real_here = (one is not None and one <= alpha for one in (equivalence, p, p_list))
    is_better = (row.value > 0) == row.higher_is_better
    if is_equivalent:
        return "equivalent" if row.p_list is None else "equivalent on this list"
    if is_real and row.value != 0:
        return "better" if is_better else "worse"
    if is_real_here and row.value != 0:
        return "ahead on this list" if is_better else "behind on this list"
    return "cannot tell"


def _depends(found: UncorrectedDifference, seen: Verdict) -> str:
    """Return a note about a verdict that documents without a score could change."""
    documents = "1 document" if found.missing == 1 else f"{found.missing:,} documents"
    endless = "; scores have no range with two ends" if found.is_endless else ""
    return f"depends on {documents} without a score: {seen} over the others{endless}"


def _detectable(found: UncorrectedDifference, alpha: float) -> float | None:
    """Return the smallest detectable difference; ``None`` if scores cannot differ by so much."""
    from lmms_eval.stats.power import detectable

    if not _is_positive(found.spread) or found.row.pairing.paired < 2 or found.row.test == "gaffke":
        return None  # the power of Gaffke's test is not known
    smallest = detectable(found.spread, found.row.pairing.paired, alpha, POWER, found.step)
    return smallest if found.row.unit != "percent" or smallest <= 1 else None


def _needed(found: UncorrectedDifference, alpha: float, margin: float | None) -> tuple[int | None, int | None]:
    """Return the documents needed for the observed difference, and for the greatest one that its interval contains.

    With a margin above the difference, they are those that settle the margin.
    """
    from lmms_eval.stats.power import documents_needed

    row = found.row
    if not _is_positive(found.spread):
        return None, None

    def needed(size: float) -> int | None:
        if margin is None and size <= _ROUNDING * found.spread:
            return None
        within = margin if margin is not None and size < margin else None
        return documents_needed(found.spread, size, alpha, POWER, within, found.step)

    if margin is not None or row.interval is None:
        return needed(abs(row.value)), None
    return needed(abs(row.value)), needed(max(abs(row.interval.low), abs(row.interval.high)))


def _is_positive(number: float) -> bool:
    return 0 < number < math.inf


MOST_CELLS = 1_000
"""Most values of a metadata column that divides documents rather than naming them."""
ABSENT = "(none)"
"""Name of the part of documents without a value."""


def compare_parts(pairs: Sequence[MatchedPair], name: str, options: CompareOptions) -> list[list[Difference]]:
    """Return, for each pair, the differences of the parts that a metadata column divides the documents into.

    All of them form one family: p is corrected over all parts and pairs.

    Raises:
        UsageError: no task has such a column, or the column has too many values in a task.
    """
    found = []
    for pair in pairs:
        by_task = groupby(pair.columns, key=lambda column: id(column.shared))
        found.append([one for _, columns in by_task for one in _parts_of(list(columns), name, options)])
    if not any(found):
        columns = sorted({column for task in _tasks(pairs) for column in task.metadata()})
        raise UsageError(f"--by {name}: no task has such a column; they have: {', '.join(columns) or 'none'}")
    judged = iter(judge_family([one for rows in found for one in rows], options))
    return [[next(judged) for _ in rows] for rows in found]


def dividing_columns(pairs: Sequence[MatchedPair]) -> dict[str, int]:
    """Find the metadata columns that have a few short values in every task with the column.

    Returns:
        For each column, the largest number of parts that it may give over all pairs.
    """
    values = {id(task): _few_values(task) for task in _tasks(pairs)}
    found: dict[str, int] = {}
    refused = set()
    for pair in pairs:
        for column in pair.columns:
            sides = values[id(column.shared.first)], values[id(column.shared.second)]
            for name in dict.fromkeys((*sides[0], *sides[1])):
                counts = [count for side in sides if (count := side.get(name, 0)) is not None]
                if len(counts) < len(sides):
                    refused.add(name)
                found[name] = found.get(name, 0) + max(counts, default=0)
    divided = {name for side in values.values() for name, count in side.items() if count is not None and count > 1}
    return {name: count for name, count in found.items() if name in divided - refused}


def _few_values(task: TaskRows) -> dict[str, int | None]:
    """Count the values of a task's metadata columns; ``None`` for columns that do not divide its documents."""
    found: dict[str, int | None] = {}
    for column, values in task.metadata().items():
        names = {ABSENT if value is None else value for value in values}
        found[column] = len(names) if len(names) == 1 or divides(names) else None
    return found


def _tasks(pairs: Sequence[MatchedPair]) -> list[TaskRows]:
    tasks = [task for pair in pairs for one in pair.columns for task in (one.shared.first, one.shared.second)]
    return list({id(task): task for task in tasks}.values())


def _parts_of(columns: Sequence[PairedColumn], name: str, options: CompareOptions) -> Iterator[UncorrectedDifference]:
    """Yield the parts of the columns of one task."""
    shared = columns[0].shared
    values: list[str | None] | None = None
    for task, rows in ((shared.second, shared.second_rows), (shared.first, shared.first_rows)):  # the first run counts
        if (of_task := task.metadata().get(name)) is not None:
            values = [of_task[row] for row in rows]
    if values is None:
        return
    division = Division.of(name, [ABSENT if value is None else value for value in values])
    if len(division.values) > MOST_CELLS:
        raise UsageError(
            f"--by {name}: {len(division.values)} different values in {columns[0].task}; choose a column that divides "
            f"documents into at most {MOST_CELLS} parts"
        )
    for column in columns:
        for code, part in enumerate(division.values):
            found = find_difference(column, options, division.codes == code)
            if found is not None:
                few = (f"few documents (below {FEW})",) if found.row.pairing.paired < FEW else ()
                yield replace(found, row=replace(found.row, cell=part, notes=(*found.row.notes, *few)))
