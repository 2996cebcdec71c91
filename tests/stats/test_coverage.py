"""How often the intervals hold the true score: 95 % is promised, 93 to 98 % is asked for (``docs/statistics.md``)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.stats import binom

from lmms_eval.stats import Interval, MeanSpread, NoInterval, score_interval
from lmms_eval.stats.cells import cell_means
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.records import to_dict
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


def clustered(p: float, sizes: NDArray[np.intp], correlation: float) -> list[tuple[float, MeanSpread]]:
    """Means of clusters of answers that share a beta-distributed chance; ``sizes`` is draws × clusters."""
    source = np.random.default_rng(7)
    if correlation in (0.0, 1.0):
        fixed = np.full(sizes.shape, p)
        chances = fixed if correlation == 0 else (source.random(sizes.shape) < p).astype(float)
    else:
        size = 1 / correlation - 1
        chances = source.beta(size * p, size * (1 - p), sizes.shape)
    members = sizes.ravel()
    scores = (source.random(members.sum()) < np.repeat(chances.ravel(), members)).astype(float)
    draws = np.repeat(np.arange(len(sizes)), sizes.sum(axis=1))
    clusters = np.repeat(np.arange(sizes.size), members)
    found = [(mean, spread) for _, mean, spread in cell_means(scores, draws, len(sizes), SHARE, clusters)]
    first = int(sizes[0].sum())
    assert equal(found[0][1], MeanSpread.clustered(scores[:first].tolist(), clusters[:first].tolist()))
    return found


def equal(first: MeanSpread, second: MeanSpread) -> bool:
    numbers = [[*to_dict(spread).values()][:-2] for spread in (first, second)]
    clusters = (first.graded, first.sizes) == (second.graded, second.sizes)
    return numbers[0] == pytest.approx(numbers[1], nan_ok=True) and clusters


def held(found: Sequence[tuple[float, MeanSpread]], p: float) -> float:
    """Share of the intervals that hold p; NaN if there are none."""
    intervals = [score_interval(mean, spread, SHARE) for mean, spread in found]
    kept = [interval.low <= p <= interval.high for interval in intervals if isinstance(interval, Interval)]
    return float(np.mean(kept)) if kept else math.nan


def check(covered: float, n: int) -> None:
    """Never too narrow; over 5 clusters, or tasks of 5 answers, wider than need be."""
    assert covered >= LEAST - NOISE
    assert n == 5 or covered <= MOST + NOISE


@for_each("correlation", [0.0, 0.3, 1.0])
@for_each(("n", "p"), CELLS)
def test_means_over_clusters(n: int, p: float, correlation: float) -> None:
    """n clusters of 4; with correlation 1 they are n right-or-wrong scores, each seen 4 times."""
    sizes = np.full((min(DRAWS, 200_000 // n), n), 4)
    check(held(clustered(p, sizes, correlation), p), n if n > 12 else 5)


def zipf(shape: tuple[int, int]) -> NDArray[np.intp]:
    """Most clusters have one or two documents, and a few up to 60."""
    return np.minimum(60, np.random.default_rng(3).zipf(1.5, shape))


def geometric(shape: tuple[int, int]) -> NDArray[np.intp]:
    return np.random.default_rng(3).geometric(0.25, shape)


@for_each("draw", [zipf, geometric])
@for_each("correlation", [0.0, 0.5, 0.9])
@for_each(("n", "p"), [(20, 0.1), (20, 0.5), (60, 0.2), (200, 0.1)])
def test_means_over_clusters_of_different_sizes(
    n: int, p: float, correlation: float, draw: Callable[[tuple[int, int]], NDArray[np.intp]]
) -> None:
    """The intervals of clusters of one size would hold as few as 57 % here."""
    covered = held(clustered(p, draw((600, n)), correlation), p)
    assert covered >= LEAST - math.sqrt(0.95 * 0.05 / 600)


def test_a_cluster_that_holds_most_documents_leaves_no_interval() -> None:
    scores, clusters = [1.0, 0.0] * 30 + [1.0, 1.0, 0.0, 0.0], [0] * 60 + [1, 1, 2, 2]
    found = score_interval(0.5, MeanSpread.clustered(scores, clusters), SHARE)
    assert found == NoInterval("one cluster holds 94% of the documents")
    other = MeanSpread.clustered([1.0, 0.0, 1.0], [1, 2, 3])
    both = score_interval(0.5, MeanSpread.stratified([MeanSpread.clustered(scores, clusters), other], [1, 1]), SHARE)
    assert both == found
    assert isinstance(score_interval(2 / 3, other, SHARE), Interval)  # three clusters of one size are fine


def test_few_clusters_need_the_t_quantile() -> None:
    found = clustered(0.5, np.full((DRAWS, 5), 4), 0.6)
    assert held([(mean, replace(spread, freedom=math.inf)) for mean, spread in found], 0.5) < LEAST < held(found, 0.5)


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
    degrees = np.array([MeanSpread.of_scores(row, SHARE).freedom for row in shares.tolist()])
    expected = MeanSpread.of_scores(shares[0].tolist(), SHARE)
    assert expected.is_binary or (errors[0], degrees[0]) == pytest.approx((expected.error, expected.freedom))
    silent = np.where(errors > 0, 0.0, 1 / n)
    covered = coverage(zip(shares.mean(axis=1).tolist(), errors.tolist(), degrees.tolist(), silent, strict=True), n, p)
    check(covered, n)
