"""Slopes of scores over a property of the answers: against statsmodels, brute force and simulations."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats as reference

from lmms_eval.stats import Interval, NoInterval
from lmms_eval.stats.association import Slope, SlopeData, slope
from tests.cases import for_each


def drawn(n: int, seed: int, effect: float = 0.0) -> SlopeData:
    """Right-or-wrong human scores; a judge that misses 15 %; better answers are longer."""
    generator = random.Random(seed)
    human, lengths, scores = [], [], []
    for _ in range(n):
        quality = float(generator.random() < 0.6)
        length = generator.gauss(6 + quality, 1.2)
        judge = quality if generator.random() > 0.15 else 1 - quality
        human.append(quality)
        lengths.append(length)
        scores.append(judge + effect * length)
    weights = [generator.choice((1.0, 2.0, 4.0)) for _ in range(n)]
    return SlopeData(scores, lengths, human, weights, [number // 2 for number in range(n)])


def found(documents: SlopeData) -> Slope:
    made = slope(documents)
    assert isinstance(made, Slope)
    return made


def test_the_slope_is_that_of_weighted_least_squares() -> None:
    one = drawn(80, 1)
    design = np.column_stack([np.ones(80), one.property, one.control])
    fit = sm.WLS(np.array(one.scores), design, weights=np.array(one.weights)).fit()
    assert found(one).value == pytest.approx(fit.params[1], rel=1e-9)
    alone = found(SlopeData(one.scores, one.property))
    line = reference.linregress(one.property, one.scores)
    assert (alone.value, alone.correlation) == pytest.approx((line.slope, line.rvalue), rel=1e-9)
    assert alone.correlation == pytest.approx(reference.pearsonr(one.property, one.scores).statistic)


def test_the_interval_is_that_of_refits_without_each_cluster() -> None:
    one = drawn(80, 2)
    columns = [np.array(part) for part in (one.property, one.control, one.scores, one.weights)]
    names = np.array(one.clusters)

    def fitted(rows: np.ndarray) -> float:
        x, h, y, w = (column[rows] for column in columns)
        return float(sm.WLS(y, np.column_stack([np.ones(len(x)), x, h]), weights=w).fit().params[1])

    left = np.array([fitted(names != name) for name in range(40)])
    error = math.sqrt(39 / 40 * ((left - left.mean()) ** 2).sum())
    design = np.column_stack([np.ones(80), columns[1]])
    rest = columns[0] - sm.WLS(columns[0], design, weights=columns[3]).fit().fittedvalues
    parts = np.bincount(names, columns[3] * rest**2)
    reach = reference.t.ppf(0.975, parts.sum() ** 2 / (parts**2).sum() - 1) * error
    made = found(one)
    assert made.interval == Interval(
        pytest.approx(made.value - reach, rel=1e-6), pytest.approx(made.value + reach, rel=1e-6), "jackknife"
    )


def test_an_unbiased_judge_is_rarely_flagged_and_a_biased_one_found() -> None:
    """Of 400 unbiased judges of 100 documents, at most 7 % are flagged at equal human scores (5 % and noise)."""

    def flagged(effect: float) -> float:
        made = (drawn(100, seed, effect) for seed in range(400))
        return sum(found(SlopeData(one.scores, one.property, one.control)).is_clear for one in made) / 400

    assert flagged(0.0) <= 0.07
    assert flagged(0.12) > 0.8
    plain = sum(found(SlopeData(one.scores, one.property)).is_clear for one in (drawn(100, s) for s in range(100)))
    assert plain > 50, "better answers are longer: without human scores this is no bias"


@for_each(
    ("documents", "reason"),
    [
        (SlopeData([1.0] * 40, list(range(40))), "do not vary"),
        (SlopeData([float(n % 2) for n in range(40)], [3.0] * 40), "do not vary"),
        (SlopeData([float(n % 2) for n in range(20)], list(range(20))), "20 documents"),
        (SlopeData([float(n % 2) for n in range(60)], list(range(60)), clusters=[n // 3 for n in range(60)]), "20 cl"),
        (SlopeData([float(n < 5) for n in range(100)], list(range(100))), "only 5 scores or 99 lengths"),
        (SlopeData([float(n % 2) for n in range(60)], [float(n) ** 12 for n in range(60)]), "unusual length"),
        (SlopeData([float(n % 2) for n in range(60)], [float(n % 2) for n in range(60)]), "no spread"),
    ],
)
def test_no_interval(documents: SlopeData, reason: str) -> None:
    made = slope(documents)
    missing = made if isinstance(made, NoInterval) else made.interval
    assert isinstance(missing, NoInterval) and reason in missing.reason


def test_the_same_control_as_score_leaves_nothing() -> None:
    scores = [float(n % 3) for n in range(60)]
    assert isinstance(slope(SlopeData(scores, list(range(60)), control=scores)), NoInterval)
