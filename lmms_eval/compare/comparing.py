"""Comparison of runs: the differences of all pairs, with one correction over all tests, and ranks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.anchored import anchor_notes
from lmms_eval.compare.differences import (
    UncorrectedDifference,
    compare_parts,
    find_difference,
    judge_family,
    with_reruns,
)
from lmms_eval.compare.headlines import HeadlineFinding, find_headlines
from lmms_eval.compare.matching import MatchedPair, PairedColumn, common_rows, match_runs, runs_of
from lmms_eval.compare.prompts import compare_prompts
from lmms_eval.compare.redrawing import Redrawing
from lmms_eval.compare.requests import pack_notes, recipe_note, request_notes
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.compare.verdicts import CompareOptions, Comparison, PairComparison, Rank
from lmms_eval.errors import UsageError
from lmms_eval.stats.interval import Interval, needs_bound, range_of_scores
from lmms_eval.utils.names import some_of
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from lmms_eval.stats.differences import PairOptions
    from lmms_eval.stats.ranks import RankFinding

LEAST = 3
"""With fewer runs, ranks add nothing to the comparison of pairs."""


def rank_runs(
    runs: Sequence[RunRows], alpha: float = 0.05, draws: int = 10_000, seed: int = 0
) -> tuple[dict[str, list[Rank]], list[str]]:
    """Rank the runs in every column that is a mean over documents and that at least three runs have.

    Runs that stopped a task early have no rank in it, since their documents are a random part. Scores and ranks are
    those over the documents that all runs scored. The best and the worst rank hold whatever documents without a score
    would score.

    Args:
        runs: runs with unique names.
        alpha: all intervals of a row hold simultaneously with probability ``1 - alpha``.
        draws: number of simulated largest deviations.
        seed: seed of the simulation.

    Returns:
        The ranks by row (``NAME METRIC,FILTER``), the best run first; and notes about runs without a rank.
    """
    ranks: dict[str, list[Rank]] = {}
    notes: list[str] = []
    for task in dict.fromkeys(name for run in runs for name in run.tasks):
        having = {run.name: run.tasks[task] for run in runs if task in run.tasks}
        stopped = [name for name, rows in having.items() if rows.early_stop is not None]
        if stopped and len(having) >= LEAST:
            notes.append(f"{task}: {', '.join(stopped)} stopped early and has no rank")
        whole = {name: rows for name, rows in having.items() if name not in stopped}
        for key in dict.fromkeys(key for rows in whole.values() for key in rows.columns):
            own = {name: rows for name, rows in whole.items() if key in rows.columns and rows.columns[key].scale}
            if len(own) >= LEAST and (found := _ranked(own, key, (alpha, draws, seed))):
                ranks[f"{task} {key}"], missing = found
                if missing:
                    held = "hold whatever they would score" if missing.within else "are not bounded, without a range"
                    notes.append(f"{task} {key}: {missing.count} documents lack a score in a run: ranks {held}")
    return ranks, notes


class _Missing(Struct, frozen=True):
    """Documents that lack a score in one of the ranked runs."""

    count: int
    within: ScoreRange | None
    """The range of the scores; ``None`` if it is not known or lacks an end."""

    def __bool__(self) -> bool:
        return self.count > 0


def _ranked(
    tasks: Mapping[str, TaskRows], key: str, options: tuple[float, int, int]
) -> tuple[list[Rank], _Missing] | None:
    """Return the ranks in a column, and what is missing; ``None`` if no document has a score in all runs."""
    import numpy as np

    from lmms_eval.stats.differences import PairOptions

    scores, clusters = _common(list(tasks.values()), key)
    has_all = np.asarray(np.isfinite(scores).all(axis=1), dtype=bool)
    if not has_all.any():
        return None
    within = _common_range([rows.columns[key] for rows in tasks.values()])
    is_better = all(rows.columns[key].higher_is_better is not False for rows in tasks.values())
    sign = 1.0 if is_better else -1.0
    kept = clusters if clusters is None else [name for name, has in zip(clusters, has_all, strict=True) if has]
    alpha, draws, seed = options
    pair_options = PairOptions(level=1 - alpha, draws=draws, seed=seed)
    if within is not None:
        pair_options = replace(pair_options, within=ScoreRange(*sorted((sign * within.low, sign * within.high))))
    found = _ranks_of(sign * scores[has_all], kept, pair_options)
    missing = _Missing(int((~has_all).sum()), within)
    ends = [(one.best, one.worst) for one in found]
    if missing and missing.within is None:
        ends = [(1, len(found))] * len(found)
    elif missing.within is not None and missing:
        low, high = sorted((sign * missing.within.low, sign * missing.within.high))
        ends = []
        for place, one in enumerate(found):
            own, others = (_filled(sign * scores, place, *each) for each in ((high, low), (low, high)))
            best, worst = (_ranks_of(each, clusters, pair_options)[place] for each in (own, others))
            ends.append((min(one.best, best.best), max(one.worst, worst.worst)))
    ranks = [Rank(name, sign * one.score, one.rank, *each) for name, one, each in zip(tasks, found, ends, strict=True)]
    return sorted(ranks, key=lambda one: (one.rank, one.run)), missing


def _ranks_of(
    scores: NDArray[float64], clusters: Sequence[str | None] | None, options: PairOptions
) -> list[RankFinding]:
    """Rank runs by their mean score. Ranks over few graded scores rest on the intervals of the pairs.

    Student's t does not hold for such scores, so the pairs have Gaffke's bound, at a level over all pairs (Bonferroni).
    """
    from lmms_eval.stats.differences import compare_pairs
    from lmms_eval.stats.ranks import simultaneous_ranks

    found = simultaneous_ranks(scores, clusters, options)
    count = len(found)
    if not needs_bound(len(scores) if clusters is None else len(set(clusters)), 0.0):
        return found
    strict = replace(options, level=1 - (1 - options.level) / math.comb(count, 2))
    pairs = {
        (i, j): compare_pairs(scores[:, i], scores[:, j], clusters, strict)
        for i, j in itertools.combinations(range(count), 2)
    }
    if all(one.test != "gaffke" for one in pairs.values()):
        return found
    ends = [[1, count] for _ in found]
    for (i, j), one in pairs.items():
        if isinstance(one.interval, Interval) and not one.interval.low <= 0 <= one.interval.high:
            better, worse = (i, j) if one.interval.low > 0 else (j, i)
            ends[worse][0] += 1
            ends[better][1] -= 1
    return [replace(one, best=best, worst=worst) for one, (best, worst) in zip(found, ends, strict=True)]


def _filled(scores: NDArray[float64], place: int, own: float, others: float) -> NDArray[float64]:
    """Return the scores with ``own`` for missing ones of the run at a place, and ``others`` for those of the others."""
    import numpy as np

    ends = np.full(scores.shape[1], others)
    ends[place] = own
    return np.where(np.isfinite(scores), scores, ends)


def _common_range(columns: Sequence[MetricColumn]) -> ScoreRange | None:
    """Return the range with two ends that holds all scores, if one is stated or all scores are 0 and 1."""
    import numpy as np

    known = np.concatenate([column.scores[np.isfinite(column.scores)] for column in columns])
    stated = next((column.score_range for column in columns if column.score_range is not None), None)
    within = range_of_scores(known.tolist(), stated)
    return within if math.isfinite(within.high - within.low) else None


def _common(tasks: Sequence[TaskRows], key: str) -> tuple[NDArray[float64], list[str | None] | None]:
    """Return the scores (documents × runs) of the documents that all runs have, and their clusters.

    Scores are NaN if they are missing. Documents that all runs scored without giving this metric are left out.
    """
    import numpy as np

    rows = common_rows(tasks)
    matrix = np.stack([one.columns[key].scores[rows[:, place]] for place, one in enumerate(tasks)], axis=1)
    is_expected = np.isfinite(matrix).any(axis=1)
    for place, one in enumerate(tasks):
        is_expected |= np.array([one.statuses[row] != "scored" for row in rows[:, place].tolist()], dtype=bool)
    number = next((number for number, one in enumerate(tasks) if one.clusters is not None), None)
    clusters: list[str | None] | None = None
    if number is not None:
        names = tasks[number].clusters or ()
        clusters = [names[row] for row in rows[is_expected, number].tolist()]
    return matrix[is_expected], clusters


_MOST_SHOWN = 3
_USUAL = CompareOptions()


def compare_runs(runs: Sequence[RunRows], options: CompareOptions = _USUAL) -> Comparison:
    """Compare each pair of runs, or all other runs with the reference.

    Raises:
        UsageError: there is nothing to compare; the message lists what the runs have.
        DataError: the same id means different documents.
    """
    return compare_pairs_of(match_runs(runs, options), [run.name for run in runs], options)


def compare_pairs_of(pairs: Sequence[MatchedPair], runs: Sequence[str], options: CompareOptions) -> Comparison:
    """Compare matched pairs.

    Args:
        pairs: the pairs.
        runs: the names of all runs.
        options: the options of the comparison.

    Raises:
        UsageError: no document has a number in both runs of any pair, or a metadata column does not exist.
    """
    import numpy as np

    notes = [note for pair in pairs for note in pack_notes(pair.first, pair.second)]
    notes += [f"{run.source}: {note}" for run in runs_of(pairs) for note in run.notes]
    notes += [note for pair in pairs for note in (*pair.notes, *request_notes(pair.first, pair.second))]
    notes += anchor_notes(pairs) if options.anchors else []
    found: list[list[UncorrectedDifference]] = []
    for pair in pairs:
        rows = [
            (column, _difference(column, pair, options))
            for column in pair.columns
            if options.makes(column.task, column.metric)
        ]
        found.append(_with_headlines([row for _, row in rows if row is not None], pair, options))
        notes += [
            f"{column.task}: no document has {column.metric} both in {pair.first.name} and in {pair.second.name}"
            for column, row in rows
            if row is None and (np.isfinite(column.first).any() or np.isfinite(column.second).any())
        ]
    if not any(found):
        raise UsageError(f"nothing can be compared: {'; '.join(dict.fromkeys(notes))}")
    remaining = iter(judge_family([one for rows in found for one in rows], options))
    judged = [[next(remaining) for _ in rows] for rows in found]
    cells = {column: compare_parts(pairs, column, options) for column in options.by}
    ranks: dict[str, list[Rank]] = {}
    if not options.numbers:  # ranks are of all rows
        ranks, rank_notes = rank_runs(runs_of(pairs), options.alpha, options.draws, options.seed)
        notes += rank_notes
    over_prompts = [compare_prompts(pair, options) for pair in pairs]
    notes += [note for each in over_prompts for note in each.notes]
    wanted = {f"{row.name} {row.metric},{row.filter}" for rows in judged for row in rows}
    recipes = [recipe_note(pair.first, pair.second) for pair in pairs]
    judged = [
        [replace(row, own_settings=bool(note)) for row in rows] for note, rows in zip(recipes, judged, strict=True)
    ]
    return Comparison(
        runs=tuple(runs),
        pairs=tuple(
            PairComparison(
                pair.first.name,
                pair.second.name,
                tuple(rows),
                {column: tuple(of_pairs[number]) for column, of_pairs in cells.items()},
                over_prompts[number].rows,
                recipes[number],
            )
            for number, (pair, rows) in enumerate(zip(pairs, judged, strict=True))
        ),
        margin=options.margin,
        ranks={name: found for name, found in ranks.items() if name in wanted},
        notes=tuple(dict.fromkeys(notes)),
        alpha=options.alpha,
    )


def _difference(column: PairedColumn, pair: MatchedPair, options: CompareOptions) -> UncorrectedDifference | None:
    found = find_difference(column, options)
    return None if found is None else replace(found, row=with_reruns(found.row, column, pair))


def refuse_without_intervals(comparison: Comparison, pairs: Sequence[MatchedPair]) -> None:
    """Refuse a comparison of complete runs if no row has an interval.

    Raises:
        UsageError: no row has an interval, for example because of a single document or constant scores.
    """
    rows = [row for pair in comparison.pairs for row in pair.rows]
    has_interval = any(row.interval is not None for row in rows)
    if has_interval or any(column.shared.stopped_early for pair in pairs for column in pair.columns):
        return
    reasons = [f"{row.name} {row.metric}: {row.no_interval} ({row.pairing.paired:,} documents)" for row in rows]
    listed = some_of(reasons, _MOST_SHOWN, "; ")
    raise UsageError(f"no difference has an interval, so these runs cannot be compared: {listed}")


def _with_headlines(
    rows: Sequence[UncorrectedDifference], pair: MatchedPair, options: CompareOptions
) -> list[UncorrectedDifference]:
    """Add the numbers that are not means. Each replaces the mean over the documents of its column."""
    shared = {column.task: column.shared for column in pair.columns}
    redrawing = Redrawing(level=1 - options.alpha, draws=options.draws, seed=options.seed)
    added = [
        _uncorrected(one, options.margin)
        for one in find_headlines(pair.first, pair.second, shared, redrawing, options.makes)
        if one.row.metric in options.metrics or not options.metrics
    ]
    made = {(one.row.name, one.row.metric, one.row.filter) for one in added}
    return [one for one in rows if (one.row.name, one.row.metric, one.row.filter) not in made] + added


def _uncorrected(found: HeadlineFinding, margin: float | None) -> UncorrectedDifference:
    """Convert a finding, with the p-values that hold whatever documents without a score would score."""
    row = found.row
    spread = found.error * math.sqrt(row.pairing.paired)
    equivalence = None if margin is None else found.equivalence_p(margin)
    if found.ends is None:
        unknown = 1.0 if found.missing else None
        return UncorrectedDifference(row, spread, equivalence, 0.0, found.missing, unknown, unknown, is_endless=True)
    against = found.ends[0 if row.value > 0 else 1]
    p = against.row.p if against.row.value * row.value > 0 else 1.0
    ends = [None if margin is None else one.equivalence_p(margin) for one in found.ends]
    largest = max(1.0 if one is None else one for one in ends)
    return UncorrectedDifference(row, spread, equivalence, 0.0, found.missing, p, largest)
