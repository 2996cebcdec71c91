from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lmms_eval.errors import UsageError
from lmms_eval.stats import Interval, NoInterval
from lmms_eval.stats.differences import PairOptions, compare_pairs, non_inferiority_p
from lmms_eval.stats.interval import mean_stderr
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each

SHARE = ScoreRange(0.0, 1.0)
GENERATOR = np.random.default_rng(20_260)


def held(found: object) -> Interval:
    assert isinstance(found, Interval)
    return found


@for_each("n", [5, 20, 29])
def test_few_documents_have_the_interval_of_the_paired_t_test(n: int) -> None:
    first, second = np.random.default_rng(n).normal(size=(2, n))
    found = compare_pairs(first, second)
    theirs = scipy_stats.ttest_rel(first, second)
    limits = theirs.confidence_interval(0.95)
    interval = held(found.interval)
    assert interval.method == "t"
    assert (interval.low, interval.high) == pytest.approx((limits.low, limits.high), rel=1e-9)
    assert found.value / found.stderr == pytest.approx(theirs.statistic, rel=1e-9)


def test_a_few_far_differences_widen_the_interval() -> None:
    first = np.full(200, 0.5)
    second = first.copy()
    second[:3] = 0.0, 0.1, 0.2
    found = compare_pairs(first, second, options=PairOptions(within=SHARE))
    assert found.freedom < 10
    assert held(found.interval).method == "t" and held(found.interval).low < 0 < held(found.interval).high


def test_many_documents_have_the_studentised_bootstrap() -> None:
    """Close to scipy's own studentised mean: the quantiles of the same statistic over its own resamples."""
    first, second = GENERATOR.random(80) ** 3, GENERATOR.random(80)
    differences = first - second
    found = compare_pairs(first, second, options=PairOptions(draws=40_000, within=SHARE))
    rows = GENERATOR.integers(0, 80, size=(40_000, 80))
    drawn = differences[rows]
    statistics = (drawn.mean(axis=1) - differences.mean()) / (drawn.std(axis=1, ddof=1) / math.sqrt(80))
    error = mean_stderr(differences.tolist())
    low, high = differences.mean() - np.quantile(statistics, (0.975, 0.025)) * error
    interval = held(found.interval)
    assert interval.method == "bootstrap-t"
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.05 * error)
    assert found.stderr == pytest.approx(error, rel=1e-12)
    assert found == compare_pairs(first, second, options=PairOptions(draws=40_000, within=SHARE))


@for_each("kind", ["skewed", "heavy", "clustered"])
def test_groups_of_many_units_give_the_interval_of_single_ones(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the noise of the redraws, 0.027 errors for a quantile of 10,000 (three times that, for two ends)."""
    generator = np.random.default_rng(7)
    n = 6_000
    first = generator.exponential(size=n) if kind == "skewed" else generator.standard_t(5, size=n)
    clusters = [str(each) for each in generator.integers(0, 3_000, n)] if kind == "clustered" else None
    second, options = np.zeros(n), PairOptions(draws=10_000)
    grouped = compare_pairs(first, second, clusters, options)
    monkeypatch.setattr("lmms_eval.stats.differences.MOST_UNITS", 10_000)
    single = compare_pairs(first, second, clusters, options)
    assert (grouped.value, grouped.stderr) == (single.value, single.stderr)
    slack = 3 * 0.027 * math.sqrt(2) * single.stderr
    assert held(grouped.interval).low == pytest.approx(held(single.interval).low, abs=slack)
    assert held(grouped.interval).high == pytest.approx(held(single.interval).high, abs=slack)


def test_the_interval_ends_at_the_largest_difference_of_the_range() -> None:
    sides, clusters = ([1.0, 0.9, 1.0], [0.0, 0.0, 0.3]), ["a", "b", "c"]
    for names in (clusters, None):
        assert held(compare_pairs(*sides, names, PairOptions(within=SHARE)).interval).high <= 1.0
    assert held(compare_pairs(*sides).interval).high > 1.0
    sides, clusters = (np.ones(240), np.array([0.0] * 239 + [0.9])), [str(place) for place in range(240)]
    assert held(compare_pairs(*sides, clusters, PairOptions(within=SHARE)).interval).high == 1.0
    assert held(compare_pairs(*sides, clusters).interval).high > 1.0


def test_constant_differences_say_nothing_of_their_spread() -> None:
    sides, clusters = (np.full(6, 0.75), np.full(6, 0.5)), ["a", "a", "b", "b", "c", "c"]
    found = compare_pairs(*sides, clusters)
    assert found.interval == NoInterval("no spread")
    assert (found.value, found.spread, found.p) == (0.25, 0.0, 2 / 2**3)
    same = compare_pairs(sides[0], sides[0], clusters)
    assert (same.value, same.p) == (0.0, 1.0) and isinstance(same.interval, NoInterval)
    for names, method in ((None, "gaffke"), (clusters, "gaffke, clusters")):
        bounded = compare_pairs(*sides, names, PairOptions(within=SHARE))
        assert (held(bounded.interval).method, bounded.test) == (method, "gaffke")
        assert held(bounded.interval).low < 0 and bounded.p is not None and bounded.p > 0.05


def test_twelve_equal_small_falls_are_no_evidence() -> None:
    """Flips of signs would give p = 2 / 2 ** 12: they assume that a rise by 5 points was as likely."""
    found = compare_pairs([0.45] * 12, [0.5] * 12, options=PairOptions(within=SHARE))
    assert found.p is not None and found.p > 0.5
    assert held(found.interval).low < -0.05 < 0 < held(found.interval).high


@for_each("n", [10, 40])
def test_skewed_differences_with_mean_0_are_rarely_called_different(n: int) -> None:
    """Most documents gain a little and a few lose much."""
    generator, rejected = np.random.default_rng(n), 0
    for _ in range(150):
        lost = generator.random(n) < 0.05
        found = compare_pairs(np.where(lost, 0.05, 0.55), np.where(lost, 1.0, 0.5), options=PairOptions(within=SHARE))
        rejected += found.p is not None and found.p <= 0.05
    assert rejected / 150 <= 0.05
    margins = [
        non_inferiority_p(
            compare_pairs(np.where(lost, 0.0, 0.5), np.full(n, 0.5), options=PairOptions(within=SHARE)), 0.025
        )
        for lost in generator.random((150, n)) < 0.05
    ]
    assert np.mean([p is not None and p <= 0.05 for p in margins]) <= 0.05


@for_each("scale", [1.0, 100.0])
def test_right_or_wrong_scores_that_never_differ_have_an_interval(scale: float) -> None:
    """b = c = 0: Tango's limits are ± z² / (n + z²)."""
    scores = np.array([scale, 0.0] * 250)
    found = compare_pairs(scores, scores)
    assert held(found.interval).method == "tango"
    limit = 1.96**2 / (500 + 1.96**2)
    assert held(found.interval).high / scale == pytest.approx(limit, rel=1e-9)
    assert held(found.interval).low / scale == pytest.approx(-limit, rel=1e-9)
    assert found.spread > 0 and found.p == 1.0
    pairs = compare_pairs(scores, scores, [str(i // 2) for i in range(500)])
    assert held(pairs.interval).method == "tango, effective n"
    assert held(pairs.interval).high > held(found.interval).high


def test_scores_are_right_or_wrong_by_their_range_or_by_themselves() -> None:
    ends, inner = np.array([-1.0, 1.0, 1.0, 1.0]), np.array([1.0, 1.0, -1.0, 1.0])
    assert compare_pairs(ends, inner, options=PairOptions(within=ScoreRange(-1.0, 1.0))).scale == 2.0
    assert compare_pairs(ends, inner).test == "permutation exact"
    graded = PairOptions(within=ScoreRange(0.0, 5.0))
    assert compare_pairs([1.0, 0.0], [0.0, 0.0], options=graded).test == "gaffke"
    assert compare_pairs([1.0, 0.0], [0.0, 0.0]).test == "mcnemar exact"


def test_clusters_widen_and_shuffled_documents_change_nothing() -> None:
    generator = np.random.default_rng(3)
    topic = np.repeat(generator.normal(size=60), 5)
    first, second = topic + generator.normal(size=300), generator.normal(size=300)
    clusters = [str(i // 5) for i in range(300)]
    plain, clustered = compare_pairs(first, second), compare_pairs(first, second, clusters)
    assert clustered.stderr > 1.5 * plain.stderr and clustered.units == 60
    order = generator.permutation(300)
    shuffled = compare_pairs(first[order], second[order], [clusters[i] for i in order])
    assert shuffled.stderr == pytest.approx(clustered.stderr)
    alone = compare_pairs(first, second, [str(i) for i in range(300)])
    assert (alone.stderr, alone.interval) == (pytest.approx(plain.stderr), plain.interval)
    reverse = compare_pairs(second, first, clusters)
    assert (reverse.value, reverse.p) == (pytest.approx(-clustered.value), clustered.p)


def test_too_few_documents_have_no_interval() -> None:
    nothing = compare_pairs([], [])
    assert (nothing.n, nothing.p, nothing.interval) == (0, None, NoInterval("n = 0")) and math.isnan(nothing.value)
    one = compare_pairs([1.0], [0.0])
    assert (one.value, one.p, one.interval) == (1.0, 1.0, NoInterval("n = 1"))
    cluster = compare_pairs([1.0, 0.5], [0.0, 0.0], ["a", "a"])
    assert (cluster.p, cluster.interval) == (1.0, NoInterval("n = 1"))


@for_each(
    ("first", "second", "clusters", "complaint"),
    [
        ([1.0], [1.0, 0.0], None, "1 values against 2"),
        ([1.0, 0.0], [1.0, 0.0], ["a"], "2 values but 1 clusters"),
        ([1.0, math.nan], [1.0, 0.0], None, "no finite number"),
        ([1.0, math.inf], [1.0, 0.0], None, "no finite number"),
    ],
)
def test_bad_input(first: list[float], second: list[float], clusters: list[str] | None, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        compare_pairs(first, second, clusters)


def test_a_hundred_thousand_documents_take_little_memory() -> None:
    first, second = GENERATOR.random((2, 100_000))
    compare_pairs(first[:100], second[:100])  # imports
    tracemalloc.start()
    found = compare_pairs(first, second, [str(i // 3) for i in range(100_000)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.units == 33_334
    assert peak < 100e6


def test_few_graded_differences_of_clusters_are_not_flipped() -> None:
    """Differences that mostly rise a little and rarely fall far have a mean of 0; flips of signs reject it often."""
    generator, rejected = np.random.default_rng(5), 0
    for seed in range(40):
        falls = np.repeat(generator.random(12) < 0.1, 4) * 0.9
        first = np.full(48, 0.95) - falls + generator.uniform(-0.02, 0.02, 48)
        clusters = [str(place // 4) for place in range(48)]
        found = compare_pairs(first, np.full(48, 0.86), clusters, PairOptions(draws=200, seed=seed, within=SHARE))
        rejected += found.p is not None and found.p <= 0.05
        assert found.test == "gaffke" and len(found.few) == len(found.sizes) == 12
    assert rejected <= 2
