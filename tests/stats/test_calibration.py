from __future__ import annotations

import math

import pytest

from benchmarks.mmie_calibration import simulate
from lmms_eval.errors import UsageError
from lmms_eval.stats import corrected_mean, human_agreement


def test_agreement_with_people_by_hand() -> None:
    found = human_agreement([4, 5, 3], [3, 5, 1])
    assert found.n == 3
    assert found.mse == pytest.approx((1 + 0 + 4) / 3)
    assert found.mae == found.bias == pytest.approx(1)
    # deviations 0, 1, -1 and 0, 2, -2
    assert found.pearson == pytest.approx(1)
    assert found.cosine == pytest.approx((12 + 25 + 3) / math.sqrt(50 * 35))
    assert human_agreement([], []).mse is None


def test_corrected_mean_by_hand() -> None:
    judged, judge, human = [4.0, 2.0, 3.0, 5.0], [3.0, 5.0], [2.0, 4.0]
    found = corrected_mean(judged, judge, human)
    assert found is not None
    # Cov with denominator n: 1; variance of all six scores of the judge: 22/3 squares over 5; n/N = 1/2
    weight = 1 / (1.5 * (22 / 3) / 5)
    rest = [2 - weight * 3, 4 - weight * 5]
    assert found.weight == pytest.approx(weight)
    assert found.value == pytest.approx(weight * 3.5 + sum(rest) / 2)
    variance = weight**2 * (5 / 3) / 4 + ((rest[0] - rest[1]) ** 2 / 2) / 2
    assert found.stderr == pytest.approx(math.sqrt(variance))
    assert found.interval.low < found.value < found.interval.high
    assert (found.n_judged, found.n_human) == (4, 2)


def test_a_constant_bias_is_taken_off_exactly() -> None:
    human = [float(number % 7) for number in range(400)]
    judge = [score + 0.8 for score in human]
    found = corrected_mean(judge[100:], judge[:100], human[:100])
    assert found is not None
    assert abs(found.value - sum(human) / 400) < abs(sum(judge) / 400 - sum(human) / 400) / 10


def test_a_judge_that_knows_nothing_is_not_relied_on() -> None:
    found = corrected_mean([1.0, 5.0] * 50, [1.0, 5.0, 5.0, 1.0], [2.0, 2.0, 4.0, 4.0])
    assert found is not None and found.weight == 0 and found.value == 3


def test_too_few_scores() -> None:
    assert corrected_mean([1.0, 2.0], [1.0], [1.0]) is None
    assert corrected_mean([], [1.0, 2.0], [1.0, 2.0]) is None
    with pytest.raises(UsageError, match="2 scores of the judge against 1"):
        corrected_mean([1.0], [1.0, 2.0], [1.0])


def test_intervals_around_a_biased_judge() -> None:
    found = simulate(300)["coverage"]
    assert found["plain"] == 0
    assert 0.92 <= found["corrected"] <= 0.98
