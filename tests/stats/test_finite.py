"""Intervals for the mean over a list of which some documents were drawn."""

from __future__ import annotations

import itertools
import random

import pytest
from scipy.stats import hypergeom

from lmms_eval.stats.finite import DrawnScores, list_interval, share_limits, strata_by_spread, weighted_interval
from lmms_eval.stats.interval import Interval, NoInterval
from lmms_eval.stats.labelled import allocate
from lmms_eval.utils.numbers import SHARES, ScoreRange
from tests.cases import for_each


def known(scores: list[float], total: int) -> DrawnScores:
    return DrawnScores(scores, scores, total)


@for_each(("total", "asked"), [(20, 5), (40, 12), (100, 30), (100, 90), (400, 59), (1000, 100)])
def test_exact_limits_hold_for_every_share_by_enumeration(total: int, asked: int) -> None:
    limits = [share_limits(right, asked, total) for right in range(asked + 1)]
    for count in range(0, total + 1, max(1, total // 50)):
        probabilities = hypergeom.pmf(range(asked + 1), total, count, asked)
        inside = [low - 1e-9 <= count / total <= high + 1e-9 for low, high in limits]
        assert sum(p for p, is_inside in zip(probabilities, inside, strict=True) if is_inside) >= 0.95


def test_limits_end_in_a_point_when_all_are_asked() -> None:
    assert share_limits(30, 100, 100) == (0.3, 0.3)
    assert list_interval([known([0.0, 0.25, 1.0], 3)], SHARES) == Interval(5 / 12, 5 / 12, "all documents")


def test_right_or_wrong_answers_of_another_range_are_shares_of_it() -> None:
    found = list_interval([known([0.0] * 30 + [100.0] * 70, 400)], ScoreRange(0, 100))
    low, high = share_limits(70, 100, 400)
    assert isinstance(found, Interval)
    assert (found.low, found.high, found.method) == (100 * low, 100 * high, "hypergeometric")


@for_each(
    ("name", "draw"),
    [
        ("uniform", lambda source: source.random()),
        ("beta(2, 2)", lambda source: source.betavariate(2, 2)),
        ("skewed", lambda source: source.betavariate(0.1, 4.9)),
    ],
)
def test_graded_scores_hold_over_a_finite_list(name: str, draw: object) -> None:
    assert callable(draw)
    source = random.Random(name)
    population = [draw(source) for _ in range(300)]
    mean, held, rounds = sum(population) / 300, 0, 150
    for _ in range(rounds):
        found = list_interval([known(source.sample(population, 100), 300)], SHARES)
        assert isinstance(found, Interval)
        held += found.low <= mean <= found.high
    assert held / rounds >= 0.91  # 95 % less two standard errors of 150 rounds


def test_strata_of_a_macro_mean_hold_and_are_narrower_than_a_sample_without_end() -> None:
    source = random.Random(1)
    shares = {size: [float(source.random() < p) for _ in range(size)] for size, p in ((40, 0.9), (200, 0.5), (61, 0.1))}
    mean = sum(sum(one) / len(one) for one in shares.values()) / 3
    held, rounds = 0, 300
    for _ in range(rounds):
        found = list_interval([known(source.sample(one, len(one) // 2), len(one)) for one in shares.values()], SHARES)
        assert isinstance(found, Interval)
        held += found.low <= mean <= found.high
        assert found.high - found.low < 0.18
    assert held / rounds >= 0.92


def test_strata_that_were_nearly_all_asked_and_right_may_still_hold_a_wrong_answer() -> None:
    strata = [known([1.0, 1.0], 3 if stratum < 3 else 2) for stratum in range(26)]
    found = list_interval(strata, SHARES)
    assert isinstance(found, Interval)
    assert found.low <= 1 - 1 / 78 and found.high == 1.0


def test_a_document_without_a_score_counts_from_end_to_end() -> None:
    scores = [1.0] * 60 + [0.0] * 39
    found = list_interval([DrawnScores([*scores, 0.0], [*scores, 1.0], 400)], SHARES)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == (share_limits(60, 100, 400)[0], share_limits(61, 100, 400)[1])


def test_one_document_of_many_has_no_interval() -> None:
    assert list_interval([known([1.0], 5)], SHARES) == NoInterval("n = 1")
    found = list_interval([known([1.0], 5), known([1.0, 0.0], 5)], SHARES)
    assert found == NoInterval("a stratum has one drawn document")
    assert isinstance(list_interval([known([1.0], 1), known([1.0, 0.0], 5)], SHARES), Interval)


@pytest.mark.parametrize("total", [11, 100_000])
def test_the_list_makes_an_interval_narrower_the_more_of_it_was_asked(total: int) -> None:
    low, high = share_limits(5, 10, total)
    assert (high - low < 0.1) == (total == 11)


def strata_of(chances: list[float], drawn: int, source: random.Random) -> tuple[list[list[float]], tuple[int, ...]]:
    """Return the scores of the strata that one earlier run's expected scores make, and how many are drawn of each."""
    numbers = strata_by_spread(chances, drawn)
    expected: list[list[float]] = [[] for _ in range(max(numbers) + 1)]
    scores: list[list[float]] = [[] for _ in expected]
    for number, chance in zip(numbers, chances, strict=True):
        expected[number].append(chance)
        scores[number].append(float(source.random() < chance))
    sizes = [len(each) for each in expected]
    means = [sum(each) / len(each) for each in expected]
    return scores, allocate(drawn, sizes, means, SHARES, worth=1.0).labels


@for_each(
    ("total", "drawn", "parameters", "narrower"),
    [
        (400, 60, (0.7, 0.3), 0.95),
        (400, 120, (0.7, 0.3), 0.87),
        (400, 120, (0.19, 0.01), 1.0),  # a mean of 0.95, R² of 0.83
        (400, 120, (7, 3), 1.05),  # hardly predictable
        (60, 20, (0.7, 0.3), 1.2),
    ],
)
def test_strata_with_unequal_chances_hold_and_are_narrower_than_a_simple_sample(
    total: int, drawn: int, parameters: tuple[float, float], narrower: float
) -> None:
    source, held, widths, simple, rounds = random.Random(total + drawn), 0, 0.0, 0.0, 200
    for number in range(rounds):
        if number % 20 == 0:
            chances = [round(source.betavariate(*parameters), 2) for _ in range(total)]
            scores, labels = strata_of(chances, drawn, source)
            mean = sum(map(sum, scores)) / total
            low, high = share_limits(round(mean * drawn), drawn, total)
        strata = [known(source.sample(one, count), len(one)) for one, count in zip(scores, labels, strict=True)]
        found = weighted_interval(strata, SHARES)
        assert isinstance(found, tuple)
        held += found[1].low - 1e-9 <= mean <= found[1].high + 1e-9
        widths, simple = widths + found[1].high - found[1].low, simple + high - low
    assert held / rounds >= 0.93
    assert widths < narrower * simple


def test_two_small_strata_hold_by_enumeration() -> None:
    sizes, drawn = (12, 20), (5, 6)
    found = {
        pair: weighted_interval(
            [
                known([1.0] * right + [0.0] * (n - right), size)
                for right, n, size in zip(pair, drawn, sizes, strict=True)
            ],
            SHARES,
        )
        for pair in itertools.product(range(6), range(7))
    }
    for count in itertools.product(range(13), range(21)):
        mean, inside = sum(count) / 32, 0.0
        ways = [hypergeom.pmf(range(n + 1), size, k, n) for n, size, k in zip(drawn, sizes, count, strict=True)]
        for pair, (_, interval) in found.items():
            inside += (interval.low - 1e-9 <= mean <= interval.high + 1e-9) * ways[0][pair[0]] * ways[1][pair[1]]
        assert inside >= 0.95


def test_strata_have_equal_sums_of_spreads_and_eight_documents_at_least() -> None:
    expected = [0.02] * 300 + [0.5] * 60 + [0.7] * 60 + [0.9] * 3
    assert [strata_by_spread(expected, 400).count(number) for number in range(4)] == [300, 60, 63, 0]
    assert set(strata_by_spread(expected, 15)) == {0}
    assert set(strata_by_spread([0.4] * 50, 30)) == {0}
    assert set(strata_by_spread([0.0, 1.0] * 50, 30)) == {0}  # nothing is open


def test_no_score_in_a_stratum_is_no_estimate() -> None:
    blank = DrawnScores([0.0, 0.0], [1.0, 1.0], 5)
    assert weighted_interval([blank, known([1.0, 0.0], 5)], SHARES) == NoInterval("a stratum has no scored document")
    assert weighted_interval([known([1.0], 5), known([1.0, 0.0], 5)], SHARES) == NoInterval("n = 1")
