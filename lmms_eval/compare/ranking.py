"""Ranks of three or more runs, over the documents that all of them have, with intervals that hold for all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval.compare.runs import RunRows, TaskRows
from lmms_eval.compare.verdicts import Rank

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

LEAST = 3
"""Runs from which on ranks say more than the comparison of the pairs."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks by row (``NAME METRIC,FILTER``), the best run first."""

    ranks: Mapping[str, Sequence[Rank]]
    notes: tuple[str, ...] = ()


def rank_runs(runs: Sequence[RunRows], alpha: float = 0.05, draws: int = 10_000, seed: int = 0) -> Ranking:
    """Rank the runs in every column that is a mean over documents and that at least three of them have.

    Runs that stopped a task early are left out of its ranks, with a note: their documents are a random part.

    Args:
        runs: with names that are unique.
        alpha: all intervals of a row hold at once with probability ``1 - alpha``.
        draws, seed: of the simulated largest deviation.
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
                ranks[f"{task} {key}"] = found
    return Ranking(ranks, tuple(notes))


def _ranked(tasks: Mapping[str, TaskRows], key: str, options: tuple[float, int, int]) -> list[Rank]:
    from lmms_eval.stats.differences import PairOptions
    from lmms_eval.stats.ranks import simultaneous_ranks

    scores, clusters = _common(list(tasks.values()), key)
    if not len(scores):
        return []
    alpha, draws, seed = options
    is_better = all(rows.columns[key].higher_is_better is not False for rows in tasks.values())
    sign = 1.0 if is_better else -1.0
    found = simultaneous_ranks(sign * scores, clusters, PairOptions(level=1 - alpha, draws=draws, seed=seed))
    ranks = [
        Rank(name, sign * one.score, one.rank, one.best, one.worst) for name, one in zip(tasks, found, strict=True)
    ]
    return sorted(ranks, key=lambda one: (one.rank, one.run))


def _common(tasks: Sequence[TaskRows], key: str) -> tuple[NDArray[float64], list[str | None] | None]:
    """Collect the scores (documents × runs) of the documents that all runs have scored, and their clusters."""
    import numpy as np

    places = [{name: row for row, name in enumerate(rows.ids)} for rows in tasks]
    shared = [name for name in tasks[0].ids if all(name in one for one in places)]
    matrix = np.stack(
        [
            rows.columns[key].scores[[one[name] for name in shared]] if shared else np.empty(0)
            for rows, one in zip(tasks, places, strict=True)
        ],
        axis=1,
    )
    has_all = np.asarray(np.isfinite(matrix).all(axis=1), dtype=bool)
    number = next((number for number, rows in enumerate(tasks) if rows.clusters is not None), None)
    clusters: list[str | None] | None = None
    if number is not None:
        names = tasks[number].clusters or ()
        clusters = [names[places[number][one]] for one, has in zip(shared, has_all, strict=True) if has]
    return matrix[has_all], clusters
