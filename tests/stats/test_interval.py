from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.stats import binomtest

from lmms_eval.errors import UsageError
from lmms_eval.stats import ANY_NUMBER, Interval, MeanSpread, NoInterval, mean_stderr, score_interval
from lmms_eval.stats.bounded import gaffke_limits
from lmms_eval.stats.interval import _poisson_limit
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each

SHARE, PERCENT = ScoreRange(0.0, 1.0), ScoreRange(0.0, 100.0)
SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=60)


def found(value: float, spread: MeanSpread, within: ScoreRange = ANY_NUMBER, level: float = 0.95) -> Interval:
    made = score_interval(value, spread, within, level)
    assert isinstance(made, Interval)
    return made


def of_rights(right: int, n: int, within: ScoreRange = SHARE) -> Interval:
    scores = [within.high] * right + [within.low] * (n - right)
    return found(math.fsum(scores) / n, MeanSpread.of_scores(scores, within), within)


@given(st.integers(2, 2000), st.data(), st.sampled_from([SHARE, PERCENT, ScoreRange(-1.0, 1.0)]))
def test_right_or_wrong_scores_have_wilsons_interval(n: int, data: st.DataObject, within: ScoreRange) -> None:
    right = data.draw(st.integers(0, n))
    made = of_rights(right, n, within)
    wilson = binomtest(right, n).proportion_ci(method="wilson")
    low, high = ((end - within.low) / (within.high - within.low) for end in (made.low, made.high))
    assert 0 <= low <= right / n <= high <= 1
    if made.method == "wilson":
        assert (low, high) == (pytest.approx(wilson.low, abs=1e-4), pytest.approx(wilson.high, abs=1e-4))
    else:  # the limit of one to three successes, or failures, is moved outwards
        assert min(right, n - right) in (1, 2, 3)
        assert low <= wilson.low + 1e-4 and high >= wilson.high - 1e-4


def test_known_values() -> None:
    assert of_rights(59, 59) == Interval(pytest.approx(0.93887, abs=1e-5), 1.0, "wilson")
    assert of_rights(5, 10) == Interval(pytest.approx(0.23659, abs=1e-5), pytest.approx(0.76341, abs=1e-5), "wilson")
    half = of_rights(1, 2)  # half the chi-square quantile of 0.05 with 2 degrees of freedom is -ln 0.95
    assert (half.low, half.high) == (pytest.approx(-math.log(0.95) / 2), pytest.approx(1 + math.log(0.95) / 2))
    assert half.method == "modified wilson"
    assert found(10.0, MeanSpread(2.0, 99, 100)) == Interval(10 - 3.92, 10 + 3.92, "normal")
    few = found(10.0, MeanSpread(2.0, 4, 5))
    assert few == Interval(pytest.approx(10 - 2 * 2.7764451), pytest.approx(10 + 2 * 2.7764451), "t")


@given(st.floats(1e-3, 3.4))
def test_the_limit_of_rare_successes_is_a_gamma_quantile(count: float) -> None:
    assert _poisson_limit(count, 0.05) == pytest.approx(special.gammaincinv(count, 0.05), rel=1e-9, abs=1e-15)


@given(SCORES, st.floats(0.5, 0.999))
def test_an_interval_within_a_range_stays_there_and_holds_the_mean(scores: list[float], level: float) -> None:
    for factor, within in ((1.0, SHARE), (100.0, PERCENT), (6.0, ScoreRange(0.0, 6.0))):
        values = [factor * score for score in scores]
        mean = math.fsum(values) / len(values)
        made = found(mean, MeanSpread.of_scores(values, within), within, level)
        assert within.low <= made.low <= mean + 1e-9 and mean - 1e-9 <= made.high <= within.high


@given(SCORES)
def test_moments_tell_as_much_as_the_scores(scores: list[float]) -> None:
    squares = math.fsum(score * score for score in scores)
    made = MeanSpread.of_moments(len(scores), math.fsum(scores), squares, SHARE)
    assert (made.size, made.freedom) == (len(scores), len(scores) - 1)
    assert made.error == pytest.approx(mean_stderr(scores), abs=1e-7)
    assert MeanSpread.of_moments(4, 12, 72, ScoreRange(0, 6)) == MeanSpread(math.sqrt(3), 3, 4, is_binary=True)
    assert MeanSpread.of_moments(4, 12, 36, ScoreRange(0, 6)) == MeanSpread(0.0, 3, 4, silent=0.25)
    assert MeanSpread.of_moments(4, 12, 54, ScoreRange(0, 6)).is_binary is False


@given(st.floats(0.5, 50), st.floats(0.01, 1))
def test_one_end_is_the_limit_of_an_end_that_moves_away(value: float, ratio: float) -> None:
    spread = MeanSpread(value * ratio, 99, 100)
    one, two = found(value, spread, ScoreRange(0.0)), found(value, spread, ScoreRange(0.0, 1e5))
    mirrored = found(-value, spread, ScoreRange(high=0.0))
    assert 0 < one.low < value < one.high
    assert (one.low, one.high) == (pytest.approx(two.low, rel=5e-3), pytest.approx(two.high, rel=5e-3))
    assert (mirrored.low, mirrored.high) == (-one.high, -one.low)


@for_each(
    ("value", "spread", "within", "reason"),
    [
        (1.0, MeanSpread.of_scores([1.0], SHARE), SHARE, "n = 1"),
        (0.5, MeanSpread(math.nan, 3, 4), ANY_NUMBER, "no standard error"),
        (0.5, MeanSpread(math.nan, 3, 4, is_mean=False), SHARE, "no standard error"),
        (0.5, MeanSpread(0.0, 3, 4), ANY_NUMBER, "no spread"),
        (0.0, MeanSpread(0.0, 3, 4), ScoreRange(0.0), "no spread"),
        (100.0, MeanSpread(0.0, 3, 4, is_mean=False), PERCENT, "no spread"),
        (3.0, MeanSpread(0.1, 3, 4), SHARE, "the score lies outside of its range, 0 to 1"),
    ],
)
def test_a_degenerate_estimate_has_none_and_says_why(
    value: float, spread: MeanSpread, within: ScoreRange, reason: str
) -> None:
    assert score_interval(value, spread, within) == NoInterval(reason)


@for_each("score", [0.0, 0.3, 1.0])
def test_equal_scores_within_a_range_are_not_certain(score: float) -> None:
    made = found(score, MeanSpread.of_scores([score] * 20, SHARE), SHARE)
    assert made.high - made.low > 0.15


def test_clusters_are_what_counts() -> None:
    scores, clusters = [1.0, 1.0, 0.0, 0.0, 1.0, 0.0], ["a", "a", "b", "b", "c", "c"]
    made = MeanSpread.clustered(scores, clusters)
    assert (made.error, made.freedom, made.size) == (pytest.approx(math.sqrt(1 / 12)), 2, 3)
    assert score_interval(0.5, MeanSpread.clustered([0.0, 1.0], ["a", "a"]), SHARE) == NoInterval("n = 1")
    # all right: no more is known than that the clusters are
    assert found(1.0, MeanSpread.clustered([1.0] * 6, clusters), SHARE) == of_rights(3, 3)


def test_strata() -> None:
    parts = [MeanSpread(0.3, 4, 5), MeanSpread(0.4, 8, 9)]
    made = MeanSpread.stratified(parts, [1, 1])
    assert made.error == pytest.approx(0.25)
    assert made.freedom == pytest.approx(0.25**2 / (0.09**2 / 4 + 0.16**2 / 8))  # Satterthwaite over squared errors
    assert made.size == pytest.approx(4 / (1 / 5 + 1 / 9))
    nested = MeanSpread.stratified([made, MeanSpread(0.1, 2, 3)], [2, 1])
    flat = MeanSpread.stratified([*parts, MeanSpread(0.1, 2, 3)], [5, 5, 5])
    assert (nested.error, nested.freedom, nested.size) == pytest.approx((flat.error, flat.freedom, flat.size))
    assert MeanSpread.stratified(parts[:1], [7]) == parts[0]


def test_a_stratum_of_one_document_gets_the_mean_variance_of_the_others() -> None:
    alone = MeanSpread.of_scores([1.0], SHARE)
    made = MeanSpread.stratified([MeanSpread(0.3, 3, 4), MeanSpread(0.1, 8, 9), alone], [1, 1, 1])
    assert made.error == pytest.approx(math.sqrt(0.09 + 0.01 + (0.36 + 0.09) / 2) / 3)
    of_ones = MeanSpread.stratified([alone] * 13, [1] * 13)
    assert math.isnan(of_ones.error) and of_ones.size == pytest.approx(13)
    assert found(1.0, of_ones, SHARE).low == pytest.approx(of_rights(13, 13).low)


def test_a_stratum_whose_scores_are_all_alike_is_not_certain() -> None:
    """None of 3 together with scores that hardly differ: the mean is not known to within a point or two."""
    none, close = MeanSpread.of_scores([0.0] * 3, SHARE), MeanSpread.of_scores([0.24, 0.26, 0.28], SHARE)
    made = MeanSpread.stratified([none, close], [1, 1])
    assert made.silent == pytest.approx(1 / 12)
    found_ends = found(0.13, made, SHARE)
    assert found_ends.low < 0.03 and found_ends.high > 0.4
    quiet = MeanSpread.stratified([none, MeanSpread.of_scores([0.0, 1.0, 1.0], SHARE)], [1, 1])
    assert quiet.error**2 > 0.13 * 0.87 * quiet.silent  # what is seen to vary is more: nothing is added


def test_a_bad_level_is_refused() -> None:
    with pytest.raises(UsageError, match="level"):
        score_interval(0.5, MeanSpread(0.1, 3, 4), level=95)


def test_few_clusters_of_graded_scores_have_a_bound() -> None:
    clusters = [name for name in "abcdef" for _ in range(3)]
    graded = [0.1 * (place % 4) for place in range(18)]
    made = MeanSpread.clustered(graded, clusters, SHARE)
    assert made.graded == pytest.approx([math.fsum(graded[3 * k : 3 * k + 3]) / 3 for k in range(6)])
    assert made.sizes == (3,) * 6
    interval = score_interval(math.fsum(graded) / 18, made, SHARE)
    assert isinstance(interval, Interval) and interval.method == "gaffke, clusters"
    assert (interval.low, interval.high) == pytest.approx(gaffke_limits(made.graded, SHARE))
    right = [float(place % 2) for place in range(18)]
    assert MeanSpread.clustered(right, clusters, SHARE).graded == ()
    assert MeanSpread.clustered(graded, clusters).graded == ()
    many = [0.1 * (place % 4) for place in range(600)]
    assert MeanSpread.clustered(many, [place // 3 for place in range(600)], SHARE).graded == ()
