"""Documents that better runs miss and weaker ones hit: item-rest correlations, their tests, and votes of answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.stats.differences import benjamini_hochberg

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import ArrayLike, NDArray

    Values = NDArray[float64]

LEAST_RUNS = 4
"""With fewer runs, no order of them is rare enough to mean anything."""
_MOST_ORDERS = 200_000
"""Largest number of arrangements of a document's scores that are enumerated."""
_DRAWN = 20_000
"""Number of arrangements that are drawn if there are more."""


class Suspicion(Struct, frozen=True):
    """Relation of each document's scores to the ability of the runs; one number for each document."""

    correlation: Values
    """Correlation over the runs; NaN if all runs have the same score."""
    p: Sequence[float | None]
    q: Sequence[float | None]
    """``p``, corrected for the number of documents."""


def suspicion(scores: ArrayLike, seed: int = 0) -> Suspicion:
    """Correlate each document's scores with the runs' means over the other documents.

    For right-or-wrong scores this is the point-biserial item-rest correlation (Lord and Novick 1968, "Statistical
    Theories of Mental Test Scores", 15.5). The hypothesis of a document's test is that better runs are at least as
    likely to be right about it, which holds for hard documents and for guesses. Its one-sided p is the share of all
    arrangements of the scores over the runs whose covariance with the runs' means is as low. The hypothesis makes low
    covariances rarer than equal chances do, so p is valid for each of its members. The means include the document
    itself, which can only raise p. Corrected by Benjamini and Hochberg.

    Args:
        scores: documents × runs, without NaN, more is better.
        seed: seed of the arrangements, if there are too many to enumerate.

    Raises:
        UsageError: not a matrix of finite numbers, or fewer than four runs.
    """
    import numpy as np

    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise UsageError("suspects: give documents × runs of finite numbers")
    if matrix.shape[1] < LEAST_RUNS:
        raise UsageError(f"suspects: {matrix.shape[1]} runs; give at least {LEAST_RUNS}")
    p = _tests(matrix, seed)
    return Suspicion(_correlations(matrix), p, benjamini_hochberg(p))


def _correlations(matrix: Values) -> Values:
    import numpy as np

    rest = matrix.sum(axis=0) - matrix
    own, others = (part - part.mean(axis=1, keepdims=True) for part in (matrix, rest))
    size = np.sqrt((own**2).sum(axis=1) * (others**2).sum(axis=1))
    varies = (np.ptp(matrix, axis=1) > 0) & (np.ptp(rest, axis=1) > 0)
    found: Values = np.full(len(matrix), np.nan)
    found[varies] = np.clip((own * others).sum(axis=1)[varies] / size[varies], -1.0, 1.0)
    return found


def _tests(matrix: Values, seed: int) -> list[float | None]:
    """Return the one-sided p of each document; ``None`` if its scores, or the runs' means, are all equal."""
    import numpy as np

    if not len(matrix) or not np.ptp(matrix.sum(axis=0)) > 0:
        return [None] * len(matrix)
    ability = matrix.mean(axis=0) - matrix.mean()
    generator = np.random.default_rng(seed)
    kinds, of_kind = np.unique(np.sort(matrix, axis=1), axis=0, return_inverse=True)
    observed = matrix @ ability
    found: Values = np.full(len(matrix), np.nan)
    for number, kind in enumerate(kinds):
        if kind[0] < kind[-1]:
            here = np.flatnonzero(of_kind.reshape(-1) == number)
            sums, drawn = _arranged(kind, ability, generator)
            slack = 1e-9 * float(np.abs(kind).max()) * float(np.abs(ability).sum())
            lower = np.searchsorted(sums, observed[here] + slack, side="right")
            found[here] = (lower + drawn) / (len(sums) + drawn)
    return [None if math.isnan(one) else one for one in found.tolist()]


def _arranged(kind: Values, ability: Values, generator: Generator) -> tuple[Values, int]:
    """Return the ascending sums Σ score × ability over arrangements of the scores, and 1 if they are drawn, else 0."""
    import numpy as np

    values, counts = np.unique(kind, return_counts=True)
    total = math.factorial(len(kind)) // math.prod(map(math.factorial, counts.tolist()))
    if total > _MOST_ORDERS or (len(values) > 2 and total > _DRAWN):
        drawn = generator.permuted(np.tile(kind, (_DRAWN, 1)), axis=1)
        return np.sort(drawn @ ability), 1
    if len(values) > 2:
        orders = np.array(sorted(set(_orders(kind.tolist()))))
        return np.sort(orders @ ability), 0
    high = int(counts[1])
    chosen = np.fromiter(
        itertools.chain.from_iterable(itertools.combinations(ability.tolist(), high)), np.float64, total * high
    ).reshape(total, high)
    base = float(values[0]) * float(ability.sum())
    sums: Values = base + float(values[1] - values[0]) * chosen.sum(axis=1)
    return np.sort(sums), 0


def _orders(scores: Sequence[float]) -> Iterator[tuple[float, ...]]:
    """Yield the distinct orders of scores."""
    if not scores:
        yield ()
    for score in sorted(set(scores)):
        rest = list(scores)
        rest.remove(score)
        yield from ((score, *others) for others in _orders(rest))


def vote_weights(shares: Sequence[float], documents: int) -> list[float]:
    """Return the weight of each run's vote: the log odds of its share of right answers.

    For runs that err independently of each other these weights make the best majority (Nitzan and Paroush 1982,
    "Optimal decision rules in uncertain dichotomous choice situations", International Economic Review 23). Half an
    answer on either side keeps them finite.
    """
    counts = [(share * documents + 0.5, (1 - share) * documents + 0.5) for share in shares]
    return [math.log(right / wrong) for right, wrong in counts]


def vote_against(answers: Sequence[str], right: Sequence[bool], weights: Sequence[float]) -> tuple[str, float]:
    """Return the answer that has most weight among those that count as wrong, and its lead over the right ones.

    ``("", -inf)`` if no run is wrong.
    """
    votes: dict[str, float] = {}
    kept = 0.0
    for answer, is_right, weight in zip(answers, right, weights, strict=True):
        if is_right:
            kept += weight
        else:
            votes[answer] = votes.get(answer, 0.0) + weight
    if not votes:
        return "", -math.inf
    best = max(votes, key=lambda answer: (votes[answer], answer))
    return best, votes[best] - kept
