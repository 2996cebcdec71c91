"""Intervals for the mean over a list of which some documents were drawn."""

from __future__ import annotations

import random

import pytest
from scipy.stats import hypergeom

from lmms_eval.stats.finite import DrawnScores, list_interval, share_limits
from lmms_eval.stats.interval import Interval, NoInterval
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
