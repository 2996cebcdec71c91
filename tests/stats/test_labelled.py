from __future__ import annotations

import math
import random
from itertools import combinations, product

import pytest

from benchmarks.human_scores import Document, simulate
from lmms_eval.stats import ANY_NUMBER, Interval, NoInterval, corrected_mean
from lmms_eval.stats.labelled import Stratum, allocate, labelled_mean, strata_of_scores
from lmms_eval.utils.numbers import SHARES, ScoreRange
from tests.cases import for_each


def drawn(documents: list[Document], size: int) -> Stratum:
    return Stratum(size, tuple(f for f, _ in documents), tuple(y for _, y in documents))


def test_over_all_draws_value_and_variance_are_right() -> None:
    """Every set of documents that may be drawn: 3 of 6 whose judge says 1, 2 of 4 whose judge says 0."""
    ones = [(1.0, y) for y in (0.0, 0.2, 0.3, 0.6, 0.9, 1.0)]
    zeros = [(0.0, y) for y in (0.1, 0.2, 0.5, 1.0)]
    people = [y for _, y in ones + zeros]
    values, variances = [], []
    for first, second in product(combinations(ones, 3), combinations(zeros, 2)):
        strata = [drawn(list(first), 6), drawn(list(second), 4)]
        found = labelled_mean(0.6, strata, SHARES)
        of_people = sum(len(s.human) for s in strata)
        assert of_people == 5
        values.append(found.value)
        centre = sum(s.size / 10 * sum(s.human) / len(s.human) for s in strata)
        spread = sum(s.size / 10 * sum((y - centre) ** 2 for y in s.human) / len(s.human) for s in strata) * 5 / 4
        variances.append(found.stderr**2 - spread / 10)
    mean = math.fsum(values) / len(values)
    assert mean == pytest.approx(math.fsum(people) / 10)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    assert math.fsum(variances) / len(variances) == pytest.approx(variance)


def test_a_plain_sample_is_prediction_powered_inference() -> None:
    generator = random.Random(3)
    documents = [(quality + generator.gauss(0.1, 0.1), quality) for quality in (generator.random() for _ in range(500))]
    labelled, rest = documents[:80], documents[80:]
    found = labelled_mean(math.fsum(f for f, _ in documents) / 500, [drawn(labelled, 500)])
    classical = corrected_mean([f for f, _ in rest], [f for f, _ in labelled], [y for _, y in labelled])
    assert classical is not None
    assert found.value == pytest.approx(classical.value, abs=0.1 * classical.stderr)
    assert found.stderr == pytest.approx(classical.stderr, rel=0.05)


def test_without_any_choice_the_list_is_known() -> None:
    found = labelled_mean(0.5, [drawn([(0.0, 1.0), (1.0, 1.0), (1.0, 0.0)], 3)], SHARES)
    assert found.value == pytest.approx(2 / 3)
    assert isinstance(found.on_list, Interval) and found.on_list.low == found.on_list.high == found.value
    assert isinstance(found.interval, Interval) and found.interval.low < 0.3 < 0.9 < found.interval.high


def test_a_judge_that_agrees_everywhere_is_not_taken_as_perfect() -> None:
    strata = [drawn([(1.0, 1.0)] * 25 + [(0.0, 0.0)] * 25, 1000)]
    found = labelled_mean(0.5, strata, SHARES)
    assert found.weight == 1 and found.value == 0.5
    assert isinstance(found.on_list, Interval) and found.on_list.low < 0.44  # at 6 % misses, 50 agree in 4.5 %
    unbounded = labelled_mean(0.5, strata, ANY_NUMBER)
    assert unbounded.interval == unbounded.on_list == NoInterval("no spread")


def test_a_judge_that_is_off_by_the_same_amount_is_not_taken_as_perfect() -> None:
    numbers = [number % 7 / 10 for number in range(50)]
    found = labelled_mean(0.494, [drawn([(number + 0.2, number) for number in numbers], 1000)], SHARES)
    assert found.value == pytest.approx(0.294)
    assert isinstance(found.on_list, Interval) and found.on_list.high > 0.33


def test_people_who_give_all_the_same_score() -> None:
    found = labelled_mean(0.5, [drawn([(number % 2, 1.0) for number in range(30)], 300)], SHARES)
    assert found.value == 1 and isinstance(found.on_list, Interval) and found.on_list.low < 0.9


@for_each(
    ("judge", "labels", "in_strata"),
    [
        ("misses 10 % of the right and 20 % of the wrong", 50, True),
        ("misses 3 % of the right and 30 % of the few wrong", 50, False),
        ("graded, 0.08 too high", 30, True),
        ("knows nothing", 50, True),
    ],
)
def test_coverage(judge: str, labels: int, in_strata: bool) -> None:
    """100 draws a cell: an interval that holds in 95 % does so in fewer than 88 % of them once in 250 times."""
    found = simulate(judge, 300, labels, in_strata, 100)
    assert found.like_these >= 0.88 and found.on_list >= 0.88


def test_strata() -> None:
    assert strata_of_scores([0.5] * 40, 20) == [0] * 40
    assert strata_of_scores([1.0, 0.0] * 50, 20) == [1, 0] * 50
    assert set(strata_of_scores([1.0, 0.0] * 50, 15)) == {0}  # too few labels for two
    numbers = strata_of_scores([number / 100 for number in range(100)], 60)
    assert numbers == sorted(numbers) and [numbers.count(k) for k in range(5)] == [20] * 5
    assert set(strata_of_scores([1.0] * 97 + [0.0] * 3, 50)) == {0}


def test_allocation() -> None:
    even = allocate(30, (100, 200), (0.0, 1.0), SHARES)
    assert even.labels == (10, 20) and not even.is_neyman
    neyman = allocate(60, (100, 100, 100), (0.02, 0.5, 0.98), SHARES)
    assert neyman.is_neyman and sum(neyman.labels) == 60
    assert neyman.labels[1] > 25 and min(neyman.labels) >= 10  # each keeps half of its proportional part
    assert allocate(60, (100, 100, 100), (0.02, 0.5, 0.98), ScoreRange()).labels == (20, 20, 20)
    assert allocate(8, (2, 3, 3), (0.0, 0.5, 1.0), SHARES).labels == (2, 3, 3)
