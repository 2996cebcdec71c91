"""Ranks of several runs over the same documents, with intervals that hold for all of them at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.stats.bootstrap import unit_codes, unit_sums
from lmms_eval.stats.differences import USUAL, PairOptions
from lmms_eval.stats.interval import dominant_share, two_sided_p, variance_freedom

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import ArrayLike, NDArray

_ROUNDING = 1e-12
_FARTHEST = 37.0
"""Normal quantile of the smallest probability that is distinguished from 0."""


class RankFinding(Struct, frozen=True):
    """The rank of one run; 1 has the highest score."""

    score: float
    rank: int
    """One more than the number of runs that score higher; runs of equal score share it."""
    best: int
    worst: int


def simultaneous_ranks(
    scores: ArrayLike, clusters: Sequence[str | None] | None = None, options: PairOptions = USUAL
) -> list[RankFinding]:
    """Rank runs by their mean score, with intervals that hold all true ranks at once at the level of the options.

    Every ordered pair of runs is tested for the one scoring higher than the other, at a level over all pairs: max-t
    with a Gaussian multiplier bootstrap (Chernozhukov, Chetverikov and Kato 2013, "Gaussian approximations and
    multiplier bootstrap for maxima of sums", Annals of Statistics 41), stepped down (Romano and Wolf 2005, "Exact and
    approximate stepdown methods for multiple hypothesis testing", JASA 100). The best rank of a run is 1 and the runs
    that are shown to be better, the worst one that of all runs less those shown to be worse (Mogstad, Romano, Shaikh
    and Wilhelm 2024, "Inference for ranks with applications to mobility across neighbourhoods and academic achievement
    across countries", Review of Economic Studies 91). With few units every t is converted by its probability under
    Student's distribution. If a pair differs by the same number in all units, its statistic is √units.

    Args:
        scores: documents × runs, without NaN.
        clusters: name of each document's cluster.
        options: level, draws and seed.

    Raises:
        UsageError: not a matrix of finite numbers, or not one cluster for each document.
    """
    import numpy as np

    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise UsageError("ranks: give a matrix of documents by runs that holds finite numbers only")
    if clusters is not None and len(clusters) != len(matrix):
        raise UsageError(f"ranks: {len(clusters)} clusters for {len(matrix)} documents; give one for each")
    means = matrix.mean(axis=0)
    residuals = (matrix - means) / len(matrix)
    if clusters is None:
        return ranks_of_means(means, residuals, options)
    codes = unit_codes(clusters)
    sizes = np.bincount(codes)
    effective = len(matrix) ** 2 / float(np.sum(sizes.astype(float) ** 2))
    if len(sizes) < 2 or dominant_share(int(sizes.max()), len(matrix), len(sizes), effective):
        return ranks_of_means(means, residuals[:1], options)  # nothing is shown
    # What leaving out a unit would change, so that large clusters count as in the error of a mean.
    left_out = unit_sums(residuals, codes) * ((len(sizes) - 1) / len(sizes) / (1 - sizes / len(matrix)))[:, None]
    return ranks_of_means(means, left_out, options, effective)


def ranks_of_means(
    means: NDArray[float64], residuals: NDArray[float64], options: PairOptions, effective: float | None = None
) -> list[RankFinding]:
    """Rank any statistic as ``simultaneous_ranks`` ranks means, from the contributions of the units to its error.

    Args:
        means: one number for each run.
        residuals: units × runs, the contribution of each unit to the error of each number; columns sum to about 0.
        options: level, draws and seed.
        effective: number of units of one size with the same information; by default, all units are of one size.
    """
    import numpy as np

    better = np.zeros((len(means), len(means)), dtype=bool)
    if len(residuals) > 1 and len(means) > 1:
        count = len(residuals)
        size = count if effective is None else effective
        products = residuals.T @ residuals * (count / (count - 1))
        pairs = []
        for i, j in itertools.combinations(range(len(means)), 2):
            gap = float(means[i] - means[j])
            error = math.sqrt(max(0.0, float(products[i, i] + products[j, j] - 2 * products[i, j])))
            if error > _ROUNDING * max(1.0, abs(gap)):
                statistic = gap / error
            else:  # without a spread, use the size of the differences: McNemar's statistic if they were 0 and 1
                error, statistic = 0.0, math.copysign(math.sqrt(size), gap) if abs(gap) > _ROUNDING else 0.0
            freedom = size - 1
            if error and effective is not None:  # a few large clusters may make most of the variance
                freedom = min(freedom, variance_freedom((residuals[:, i] - residuals[:, j]).tolist()))
            pairs.append(_Pair(i, j, error, _normal_quantile(statistic, freedom)))
        _step_down(pairs, residuals, options)
        for pair in pairs:
            better[pair.first, pair.second], better[pair.second, pair.first] = pair.shown > 0, pair.shown < 0
    return [
        RankFinding(
            score=float(means[run]),
            rank=1 + int(np.count_nonzero(means > means[run])),
            best=1 + int(better[:, run].sum()),
            worst=len(means) - int(better[run].sum()),
        )
        for run in range(len(means))
    ]


class _Pair(Struct):
    """Two runs. Either may be shown to be better."""

    first: int
    second: int
    error: float
    """Error of the difference of their numbers; 0 if all units differ equally."""
    statistic: float
    """The difference over its error, as a normal quantile."""
    shown: int = 0
    """1: the first is shown to be better; −1: the second."""


def _normal_quantile(t: float, freedom: float) -> float:
    """Return the normal quantile with the same probability as Student's t."""
    tail = two_sided_p(t, freedom) / 2
    return math.copysign(-NormalDist().inv_cdf(tail), t) if tail > 1e-300 else math.copysign(_FARTHEST, t)


def _step_down(pairs: Sequence[_Pair], residuals: NDArray[float64], options: PairOptions) -> None:
    """Mark the pairs that are shown to differ, until a round shows no more.

    Only the direction that was shown leaves the family of hypotheses: the other one may still be true.
    """
    import numpy as np

    count = len(residuals)
    values, vectors = np.linalg.eigh(residuals.T @ residuals * (count / (count - 1)))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    while True:
        generator = np.random.default_rng(options.seed)
        drawn = generator.standard_normal((options.draws, len(values))) @ root.T
        largest = np.full(options.draws, -math.inf)
        for pair in pairs:
            noise = (
                (drawn[:, pair.first] - drawn[:, pair.second]) / pair.error
                if pair.error
                else generator.standard_normal(options.draws)
            )
            np.maximum(largest, -pair.shown * noise if pair.shown else np.abs(noise), out=largest)
        critical = float(np.quantile(largest, options.level))
        fresh = [pair for pair in pairs if not pair.shown and abs(pair.statistic) > critical]
        if not fresh:
            return
        for pair in fresh:
            pair.shown = 1 if pair.statistic > 0 else -1
