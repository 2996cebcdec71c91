"""Documents whose score differs between two runs, the largest changes first (``docs/compare.md``)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from lmms_eval.compare.matching import MatchedPair, PairedColumn, runs_of
from lmms_eval.compare.runs import RunRows

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

    Values = NDArray[float64]

_LONGEST_ID = 40


class FlipSide(Struct, frozen=True):
    """Score and answer of one run in a flip."""

    run: str
    score: float
    answer: str | None
    """``None`` if the run's files do not contain it."""


class Flip(Struct, frozen=True):
    """A document that one run answers better than the other."""

    task: str
    metric: str
    filter: str
    id: str
    hash: str | None
    target: str | None
    better: Literal["first", "second"]
    surprise: float
    """Surprise in bits (``surprises``)."""
    first: FlipSide
    second: FlipSide
    others: Mapping[str, float]
    """Scores of the other runs of the comparison that have the document."""


def flips_of(pairs: Sequence[MatchedPair]) -> Iterator[Flip]:
    """Yield the flips of all pairs and columns, the largest changes first within each column."""
    runs = runs_of(pairs)
    for pair in pairs:
        for column in pair.columns:
            scores = _other_scores(pair, column, runs)
            surprise = surprises(column, list(scores.values()))
            for place in _order(column, surprise).tolist():
                yield _flip(pair, column, place, round(float(surprise[place]), 4), scores)


def flip_lines(pairs: Sequence[MatchedPair], most: int = 3) -> Iterator[str]:
    """Yield a line for each column, naming the documents with the largest changes."""
    runs = runs_of(pairs)
    for pair in pairs:
        for column in pair.columns:
            surprise = surprises_among(pair, column, runs)
            places = _order(column, surprise)
            if len(places):
                better = column.better()
                ids = (column.shared.first.ids[column.shared.first_rows[place]] for place in places)
                named = ", ".join(
                    f"{one[:_LONGEST_ID]} ({'first' if better[place] > 0 else 'second'} better)"
                    for one, place in zip(ids, places[:most], strict=False)
                )
                changes = f"largest changes ({pair.first.name} vs {pair.second.name}): {named}"
                yield f"{column.task} {column.metric}: {len(places):,} documents changed; {changes}"


def surprises_among(pair: MatchedPair, column: PairedColumn, runs: Sequence[RunRows]) -> Values:
    """Compute ``surprises`` of a column, given all other runs of the comparison."""
    return surprises(column, list(_other_scores(pair, column, runs).values()))


def surprises(column: PairedColumn, others: Sequence[Values]) -> Values:
    """Compute the surprise of each document's change, in bits; NaN for documents without a change.

    The first term is −log2 of the share of documents that changed in the same direction by at least as much. With other
    runs there is a second term, −log2((agree + 1) / (runs + 2)), by Laplace's rule of succession: the odd run is the
    one of the two with which fewer of the other runs agree, and ``agree`` is the number of other runs whose score is
    nearer to the odd run's score than to the other's (one half if both are equally near).
    """
    import numpy as np

    better = column.better()
    changed = column.has_both & (better != 0)
    found: Values = np.full(len(better), np.nan)
    total = int(column.has_both.sum())
    for sign in (1, -1):
        here = changed & (sign * better > 0)
        sizes = np.abs(better[here])
        at_least = len(sizes) - np.searchsorted(np.sort(sizes), sizes * (1 - 1e-12), side="left")
        found[here] = -np.log2(at_least / total)
    if others:
        known = np.stack(others)
        nearer = np.sign(np.abs(known - column.second) - np.abs(known - column.first))  # 1: nearer to the first
        with_first = np.nansum((nearer + 1) / 2, axis=0)
        count = np.isfinite(nearer).sum(axis=0)
        agree = np.minimum(with_first, count - with_first)
        found[changed] -= np.log2((agree[changed] + 1) / (count[changed] + 2))
    return found


def _order(column: PairedColumn, surprise: Values) -> NDArray[intp]:
    """Return the places of changed documents, by surprise, then size of the change, then order of the file."""
    import numpy as np

    places = np.flatnonzero(np.isfinite(surprise))
    size = np.abs(column.first - column.second)
    order: NDArray[intp] = places[np.lexsort((places, -size[places], -surprise[places]))]
    return order


def _other_scores(pair: MatchedPair, column: PairedColumn, runs: Sequence[RunRows]) -> dict[str, Values]:
    """Return the scores of the pair's documents in the other runs that have the column; NaN for missing documents."""
    import numpy as np

    ids = [column.shared.first.ids[row].strip() for row in column.shared.first_rows]
    found = {}
    for run in runs:
        task = None if run.name in (pair.first.name, pair.second.name) else run.tasks.get(column.task)
        scores = task.columns.get(f"{column.metric},{column.filter}") if task is not None else None
        if task is None or scores is None:
            continue
        rows = {one.strip(): number for number, one in enumerate(task.ids)}
        of_run = (float(scores.scores[rows[one]]) if one in rows else math.nan for one in ids)
        found[run.name] = np.fromiter(of_run, np.float64, len(ids))
    return found


def _flip(pair: MatchedPair, column: PairedColumn, place: int, surprise: float, others: Mapping[str, Values]) -> Flip:
    shared = column.shared
    rows = int(shared.first_rows[place]), int(shared.second_rows[place])
    answers = shared.first.answer(rows[0]), shared.second.answer(rows[1])
    hashes = [
        None if task.hashes is None else task.hashes[row]
        for task, row in zip((shared.first, shared.second), rows, strict=True)
    ]
    return Flip(
        task=column.task,
        metric=column.metric,
        filter=column.filter,
        id=shared.first.ids[rows[0]],
        hash=hashes[0] or hashes[1],
        target=next((answer.target for answer in answers if answer is not None), None),
        better="first" if (column.first[place] > column.second[place]) == column.higher_is_better else "second",
        surprise=surprise,
        first=FlipSide(pair.first.name, float(column.first[place]), None if answers[0] is None else answers[0].text),
        second=FlipSide(pair.second.name, float(column.second[place]), None if answers[1] is None else answers[1].text),
        others={run: float(scores[place]) for run, scores in others.items() if math.isfinite(scores[place])},
    )
