"""How often the intervals hold the true score: 95 % is promised, 93 to 98 % is asked for (``docs/statistics.md``)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from lmms_eval.stats import Interval, MeanSpread, score_interval
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each

SHARE = ScoreRange(0.0, 1.0)
SHARES, SIZES = (0.02, 0.2, 0.5, 0.98), (5, 12, 59, 500)
LEAST, MOST = 0.93, 0.98
CELLS = [(n, p) for n in SIZES for p in SHARES]
UNREACHABLE = {(5, 0.02), (5, 0.98)}
"""Of right-or-wrong scores: no set of outcomes has a probability from 93 to 98 %."""
TWELVE = (12, 0.2)
DRAWS = 2000
NOISE = math.sqrt(0.95 * 0.05 / DRAWS)
"""Standard error of a simulated coverage: half a percent."""
Array = NDArray[np.float64]


@functools.cache
def holds(mean: float, error: float, freedom: float, silent: float, size: float, p: float) -> bool:
    found = score_interval(mean, MeanSpread(error, freedom, size, silent=silent), SHARE)
    assert isinstance(found, Interval)
    return found.low <= p <= found.high


def coverage(spreads: Iterable[tuple[float, float, float, float]], size: float, p: float) -> float:
    """Of (mean, error, degrees of freedom, silent part), rounded so that equal ones are computed once."""
    return float(
        np.mean([holds(round(m, 10), round(e, 10), round(f, 1), round(s, 10), size, p) for m, e, f, s in spreads])
    )


def binary_outcomes(n: int, p: float) -> list[tuple[bool, float]]:
    """Of every number of right answers, whether its interval holds p, and its probability."""
    outcomes = []
    for right in range(n + 1):
        scores = [1.0] * right + [0.0] * (n - right)
        found = score_interval(right / n, MeanSpread.of_scores(scores, SHARE), SHARE)
        assert isinstance(found, Interval)
        outcomes.append((found.low <= p <= found.high, float(binom.pmf(right, n, p))))
    return outcomes


@for_each(("n", "p"), CELLS)
def test_means_of_right_or_wrong_scores(n: int, p: float) -> None:
    """Exactly, over all outcomes."""
    covered = math.fsum(probability for holds_p, probability in binary_outcomes(n, p) if holds_p)
    if (n, p) in UNREACHABLE:
        assert covered == pytest.approx(0.9962, abs=1e-4)  # on the safe side; Wilson's own limits give 0.9039
    elif (n, p) == TWELVE:
        assert covered == pytest.approx(0.9806, abs=1e-4)
    else:
        assert LEAST <= covered <= MOST


@for_each(("n", "p"), sorted(UNREACHABLE))
def test_no_interval_at_all_can_be_nearer_there(n: int, p: float) -> None:
    """Whatever the method, its coverage is the probability of the outcomes whose intervals hold p: none fits."""
    probabilities = [float(binom.pmf(right, n, p)) for right in range(n + 1)]
    sets = itertools.chain.from_iterable(itertools.combinations(probabilities, size) for size in range(n + 2))
    assert not [chosen for chosen in sets if LEAST <= math.fsum(chosen) <= MOST]


def test_no_interval_that_misses_rarely_on_both_sides_is_nearer_at_twelve() -> None:
    """Of limits that grow with the successes, those that miss 0.2 by 5 % at most on either side cover 98.06 % or more.

    Ours are the nearest of them.
    """
    n, p = TWELVE
    runs = [(first, last) for first in range(n + 1) for last in range(first, n + 1)]
    fair = [run for run in runs if binom.cdf(run[0] - 1, n, p) <= 0.05 and binom.sf(run[1], n, p) <= 0.05]
    covered = [float(binom.cdf(last, n, p) - binom.cdf(first - 1, n, p)) for first, last in fair]
    assert min(covered) == pytest.approx(0.9806, abs=1e-4)


def freedoms(values: Array, is_plain: NDArray[np.bool_]) -> Array:
    """Row by row as ``MeanSpread`` has them; ``is_plain``: n - 1."""
    n = values.shape[1]
    squares = (values - values.mean(axis=1)[:, None]) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        kurtosis = n * (squares**2).sum(axis=1) / squares.sum(axis=1) ** 2
        found = np.clip(2 * n / (kurtosis - 1), 2, n - 1)
    return np.where(is_plain | ~(kurtosis > 1), n - 1, found)


def clustered(p: float, clusters: int, members: int, correlation: float) -> Iterable[tuple[float, float, float, float]]:
    """Clusters of right-or-wrong answers that share a beta-distributed chance."""
    source = np.random.default_rng(7)
    if correlation in (0.0, 1.0):
        fixed = np.full((DRAWS, clusters), p)
        chances = fixed if correlation == 0 else (source.random((DRAWS, clusters)) < p).astype(float)
    else:
        size = 1 / correlation - 1
        chances = source.beta(size * p, size * (1 - p), (DRAWS, clusters))
    rights = source.binomial(members, chances)
    n = clusters * members
    mean = rights.sum(axis=1) / n
    squares = n * mean * (1 - mean)
    sums = ((rights - members * mean[:, None]) ** 2).sum(axis=1)
    error = np.sqrt(np.maximum(0.0, squares / (n - 1) / n + (sums - squares) / n**2))
    degrees = freedoms(rights - members * mean[:, None], np.isin(rights, (0, members)).all(axis=1))
    first = [float(place < right) for right in rights[0] for place in range(members)]
    expected = MeanSpread.clustered(first, [cluster for cluster in range(clusters) for _ in range(members)])
    assert (mean[0], error[0]) == (pytest.approx(np.mean(first)), pytest.approx(expected.error))
    assert degrees[0] == pytest.approx(expected.freedom)
    return zip(mean.tolist(), error.tolist(), degrees.tolist(), np.where(error > 0, 0.0, 1 / clusters), strict=True)


def check(covered: float, n: int) -> None:
    """Never too narrow; over 5 clusters, or tasks of 5 answers, wider than need be."""
    assert covered >= LEAST - NOISE
    assert n == 5 or covered <= MOST + NOISE


@for_each("correlation", [0.0, 0.3, 1.0])
@for_each(("n", "p"), CELLS)
def test_means_over_clusters(n: int, p: float, correlation: float) -> None:
    """n clusters of 4; with correlation 1 they are n right-or-wrong scores, each seen 4 times."""
    check(coverage(clustered(p, n, 4, correlation), n, p), n)


def test_few_clusters_need_the_t_quantile() -> None:
    with_normal = [(mean, error, math.inf, silent) for mean, error, _, silent in clustered(0.5, 5, 4, 0.3)]
    assert coverage(with_normal, 5, 0.5) < 0.9


def strata(p: float, n: int, tasks: int, contrast: float) -> Iterable[tuple[float, float, float, float]]:
    """Tasks of n answers each, whose chances lie evenly around p: as far as they can with contrast 1."""
    source = np.random.default_rng(11)
    chances = p + min(p, 1 - p) * contrast * np.linspace(-1, 1, tasks)
    shares = source.binomial(n, chances, (DRAWS, tasks)) / n
    squares = shares * (1 - shares) / (n - 1) / tasks**2
    total = squares.sum(axis=1)
    with np.errstate(invalid="ignore"):
        freedom = np.where(total > 0, total**2 / (squares**2 / (n - 1)).sum(axis=1), math.inf)
    parts = [MeanSpread.of_scores([1.0] * round(x * n) + [0.0] * round(n - x * n), SHARE) for x in shares[0]]
    expected = MeanSpread.stratified(parts, [1.0] * tasks)
    assert (math.sqrt(total[0]), freedom[0]) == (pytest.approx(expected.error), pytest.approx(expected.freedom))
    silent = (squares == 0).sum(axis=1) / n / tasks**2
    assert (expected.size, expected.silent) == (pytest.approx(n * tasks), pytest.approx(silent[0]))
    return zip(shares.mean(axis=1).tolist(), np.sqrt(total).tolist(), freedom.tolist(), silent.tolist(), strict=True)


@for_each("contrast", [0.0, 1.0])
@for_each("tasks", [3, 10])
@for_each(("n", "p"), CELLS)
def test_macro_means(n: int, p: float, tasks: int, contrast: float) -> None:
    """With contrast 1 some tasks are always wrong or, at one half, always right: nothing is seen of their spread.

    Where they are most (2 of 3) the interval is wider than need be.
    """
    covered = coverage(strata(p, n, tasks, contrast), n * tasks, p)
    check(covered, 5 if (p, tasks, contrast) == (0.5, 3, 1.0) else n)


def test_a_task_of_few_answers_beside_one_that_hardly_varies() -> None:
    """A fifth of 3 answers, and scores close to 0.26: if all 3 are wrong, their spread is not seen."""
    close = MeanSpread.of_scores([0.24, 0.26, 0.28], SHARE)
    covered = 0.0
    for right in range(4):
        few = MeanSpread.of_scores([1.0] * right + [0.0] * (3 - right), SHARE)
        found = score_interval((right / 3 + 0.26) / 2, MeanSpread.stratified([few, close], [1, 1]), SHARE)
        assert isinstance(found, Interval)
        covered += float(binom.pmf(right, 3, 0.2)) * (found.low <= 0.23 <= found.high)
    assert covered >= LEAST


@for_each("answers", [8, 50])
@for_each(("n", "p"), CELLS)
def test_means_of_tasks_that_are_drawn_themselves(n: int, p: float, answers: int) -> None:
    """n task scores, each a share of right ones with a chance of its own, as in MEGA-Bench's breakdown."""
    source = np.random.default_rng(13)
    shares = source.binomial(answers, source.beta(3 * p, 3 * (1 - p), (DRAWS, n))) / answers
    errors = shares.std(axis=1, ddof=1) / math.sqrt(n)
    degrees = freedoms(shares, np.isin(shares, (0.0, 1.0)).all(axis=1))
    expected = MeanSpread.of_scores(shares[0].tolist(), SHARE)
    assert expected.is_binary or (errors[0], degrees[0]) == pytest.approx((expected.error, expected.freedom))
    silent = np.where(errors > 0, 0.0, 1 / n)
    covered = coverage(zip(shares.mean(axis=1).tolist(), errors.tolist(), degrees.tolist(), silent, strict=True), n, p)
    check(covered, n)
