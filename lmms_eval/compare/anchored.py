"""Comparisons with anchors: scores of earlier runs narrow the difference between a part of a list and all of it.

One run stopped early and the other answered the whole list. The difference over the list is then the mean of
g − y over the list, which is known, plus the mean of x − g over what the first run answered; x are its scores, y those
of the other run, and g is fixed before: the score that the other run and earlier ones predict. Without anchors g is y.
Where both runs answered the same documents, g would be subtracted from both and cancel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmms_eval.compare.matching import MatchedPair, PairedColumn, share
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.errors import DataError, UsageError
from lmms_eval.stats.earlier import best_prediction
from lmms_eval.utils.names import some_of


class Expected(Struct, frozen=True):
    """Scores of the run that stopped early, as earlier runs predict them."""

    scores: Mapping[str, float]
    """By document, in units of the score."""
    offset: float
    """Mean of the predictions minus that of the scores of the run that answered the whole list."""
    runs: tuple[str, ...]
    """The runs that the predictions come from."""


def refuse_useless(anchors: Sequence[RunRows], pairs: Sequence[MatchedPair]) -> None:
    """Check the runs of ``--anchors``.

    Raises:
        UsageError: one has no task that is compared.
        DataError: it has other documents of a task, or no shared one, or scores outside the range; or it stopped early
            in the same order as a run that is compared.
    """
    columns = [column for pair in pairs for column in pair.columns]
    tasks = list(dict.fromkeys(column.task for column in columns))
    for run in anchors:
        if not any(task in run.tasks for task in tasks):
            has = ", ".join(run.tasks) or "none"
            raise UsageError(f"--anchors {run.source}: no samples of {', '.join(tasks)}; it has tasks: {has}")
        for column in columns:
            if column.task in run.tasks:
                _check(run, column)


def _check(run: RunRows, column: PairedColumn) -> None:
    rows, where = run.tasks[column.task], f"--anchors {run.source}: {column.task}"
    for side in (column.shared.first, column.shared.second):
        if not len(share(side, rows, ("a run that is compared", run.name)).first_rows):
            raise DataError(f"{where}: no document of the runs that are compared")
        stop, other = side.early_stop, rows.early_stop
        if stop is not None and other is not None and stop.order == other.order:
            raise DataError(
                f"{where}: that run stopped early in the same random order, so that its scores would be known for the "
                "first documents only; give a whole run"
            )
    found = _column(rows, column)
    if found is not None:
        outside = [score for score in found.scores.tolist() if math.isfinite(score) and score not in column.within]
        if outside:
            raise DataError(f"{where}: {column.metric} is {outside[0]:g} there, and lies from {column.within}")


def _column(rows: TaskRows, column: PairedColumn) -> MetricColumn | None:
    """Return a run's column of the metric, whatever its only filter pipeline is called."""
    of_metric = [one for one in rows.columns.values() if one.metric == column.metric]
    exact = rows.columns.get(str(column))
    return exact if exact is not None else of_metric[0] if len(of_metric) == 1 else None


def expected_scores(column: PairedColumn, anchors: Sequence[RunRows]) -> Expected | str:
    """Predict the scores of the run that stopped early; a text states why anchors do not narrow the difference."""
    first, second = column.shared.first, column.shared.second
    if first.early_stop is not None and second.early_stop is not None:
        return "both runs stopped early, so anchors would be subtracted from both and cancel"
    whole, stop = (second, first.early_stop) if second.early_stop is None else (first, second.early_stop)
    own = _numbers(whole, column)
    if stop is None or len(own) < stop.of or len(whole.ids) != stop.of:
        return "anchors need a run with a score for every document of the list"
    numbered = {one: number for number, one in enumerate(own)}
    low, width = column.within.low, column.within.high - column.within.low
    sources = [
        ("", own),
        *((run.name, _numbers(run.tasks[column.task], column)) for run in anchors if column.task in run.tasks),
    ]
    runs = [
        {numbered[one]: (score - low) / width for one, score in scores.items() if one in numbered}
        for _, scores in sources
    ]
    known = [number for number, one in enumerate(runs) if one]
    if len(known) < 2:
        return f"no run of --anchors has {column.metric}"
    shares = best_prediction([runs[number] for number in known], range(len(own))).shares
    scores = {one: low + width * shares[number] for one, number in numbered.items()}
    offset = (math.fsum(scores.values()) - math.fsum(own.values())) / len(own)
    return Expected(scores, offset, tuple(sources[number][0] for number in known[1:]))


def anchor_notes(pairs: Sequence[MatchedPair]) -> list[str]:
    """Return a line for the columns that anchors cannot narrow because both runs answered the same documents."""
    names = [f"{one.task} {one.metric}" for pair in pairs for one in pair.columns if not one.shared.stopped_early]
    if not names:
        return []
    return [
        f"--anchors narrow nothing for {some_of(list(dict.fromkeys(names)), 3)}: both runs answered the same "
        "documents, so that anchors would be subtracted from both and cancel"
    ]


def _numbers(rows: TaskRows, column: PairedColumn) -> dict[str, float]:
    """Return the scores of a run by document."""
    found = _column(rows, column)
    if found is None:
        return {}
    numbers = zip(rows.ids, found.scores.tolist(), strict=True)
    return {one.strip(): score for one, score in numbers if math.isfinite(score)}
