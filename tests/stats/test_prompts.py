from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from lmms_eval.errors import UsageError
from lmms_eval.stats.interval import Interval, MeanSpread, NoInterval, score_interval
from lmms_eval.stats.prompts import PromptMean, prompt_mean, spread_over
from lmms_eval.utils.numbers import SHARES, ScoreRange
from tests.cases import for_each

Matrix = NDArray[np.float64]


def drawn(n: int, prompts: int, seed: int = 0, binary: bool = True) -> Matrix:
    rng = np.random.default_rng(seed)
    level = 0.6 + 0.2 * rng.standard_normal((n, 1)) + 0.1 * rng.standard_normal((1, prompts))
    scores: Matrix = (rng.random((n, prompts)) < level) * 1.0 if binary else np.clip(level, 0, 1)
    return scores


@for_each("binary", [True, False])
def test_the_components_are_those_of_the_analysis_of_variance(binary: bool) -> None:
    n, prompts = 40, 5
    scores = drawn(n, prompts, 3, binary)
    frame = pd.DataFrame(
        [(i, j, scores[i, j]) for i in range(n) for j in range(prompts)], columns=["question", "prompt", "score"]
    )
    squares = anova_lm(ols("score ~ C(question) + C(prompt)", frame).fit())["mean_sq"]
    split = prompt_mean(scores, spread_over(None)).split
    rest = squares["Residual"]
    assert split.rest == pytest.approx(rest)
    assert split.questions == pytest.approx((squares["C(question)"] - rest) / prompts)
    assert split.prompts == pytest.approx(max(0.0, (squares["C(prompt)"] - rest) / n))


def test_known_components_are_found() -> None:
    rng = np.random.default_rng(1)
    n, prompts = 4_000, 60
    scores = (
        0.3 * rng.standard_normal((n, 1)) + 0.1 * rng.standard_normal(prompts) + 0.2 * rng.standard_normal((n, prompts))
    )
    split = prompt_mean(scores, spread_over(None)).split
    assert (split.questions, split.prompts, split.rest) == pytest.approx((0.09, 0.01, 0.04), rel=0.3)
    assert split.rest == pytest.approx(0.04, rel=0.02)


def test_these_prompts_have_the_interval_of_the_documents_means() -> None:
    scores = drawn(80, 4)
    found = prompt_mean(scores, spread_over(None, within=SHARES))
    assert found.these == MeanSpread.of_scores(scores.mean(axis=1).tolist(), SHARES)
    assert found.value == pytest.approx(scores.mean())
    assert found.means == pytest.approx(scores.mean(axis=0))
    assert found.spread == pytest.approx(scores.mean(axis=0).std(ddof=1))
    these = score_interval(found.value, found.these, SHARES)
    like_these = found.like_these(these, SHARES)
    assert isinstance(these, Interval) and isinstance(like_these, Interval)
    assert 0 <= like_these.low < these.low < found.value < these.high < like_these.high <= 1


def test_few_prompts_have_no_interval_for_prompts_like_these() -> None:
    for count in (1, 2):
        found = prompt_mean(drawn(50, count), spread_over(None, within=SHARES))
        these = score_interval(found.value, found.these, SHARES)
        assert isinstance(these, Interval)
        assert found.like_these(these, SHARES) == NoInterval("fewer than 3 prompts")
        assert found.p(0.01) is None
    assert math.isnan(prompt_mean(drawn(50, 1), spread_over(None)).spread)
    with pytest.raises(UsageError, match="give at least two documents"):
        prompt_mean(drawn(1, 3), spread_over(None))


def test_prompts_that_make_no_difference_add_nothing() -> None:
    scores = np.repeat(drawn(60, 1), 4, axis=1)
    found = prompt_mean(scores, spread_over(None, within=SHARES))
    these = score_interval(found.value, found.these, SHARES)
    assert found.like_these(these, SHARES) == these
    assert (found.split.prompts, found.split.rest, found.p(0.3)) == (0.0, 0.0, 0.3)
    right = prompt_mean(np.ones((30, 4)), spread_over(None, within=SHARES))
    interval = score_interval(right.value, right.these, SHARES)
    assert right.like_these(interval, SHARES) == interval
    assert isinstance(interval, Interval) and 0.85 < interval.low < interval.high == 1.0


def test_the_p_value_belongs_to_the_interval() -> None:
    scores = drawn(100, 4, 5) - drawn(100, 4, 6) + 0.1
    found = prompt_mean(scores, spread_over(None))
    p = found.p(1e-9)
    assert p is not None
    around = found.like_these(Interval(found.value, found.value, "t"), level=1 - p)
    assert isinstance(around, Interval)
    assert min(abs(around.low), abs(around.high)) == pytest.approx(0, abs=1e-6)
    assert found.p(0.9) == 0.9


def test_a_mean_of_strata_weighs_strata_equally() -> None:
    scores, strata = drawn(60, 3), ["a"] * 50 + ["b"] * 10
    weights = [60 / (2 * 50)] * 50 + [60 / (2 * 10)] * 10
    found = prompt_mean(scores, spread_over(None, strata), weights)
    assert found.value == pytest.approx((scores[:50].mean() + scores[50:].mean()) / 2)
    errors = [scores[own].mean(axis=1).std(ddof=1) / math.sqrt(n) for own, n in ((slice(50), 50), (slice(50, 60), 10))]
    assert found.these.error == pytest.approx(math.hypot(*errors) / 2)


def test_clusters_widen_both_intervals() -> None:
    rng = np.random.default_rng(2)
    shared = np.repeat(0.5 * rng.random((20, 3)), 5, axis=0)
    scores = shared + 0.1 * rng.random((100, 3))
    names = [f"c{number // 5}" for number in range(100)]
    alone, clustered = (prompt_mean(scores, spread_over(each)) for each in (None, names))
    assert clustered.these.error > 1.5 * alone.these.error
    assert clustered.split.prompts <= alone.split.prompts


@for_each("prompts, deviation", [(3, 0.0), (3, 0.1), (5, 0.05), (20, 0.1)])
def test_intervals_hold_the_mean_of_a_synthetic_model(prompts: int, deviation: float) -> None:
    rng = np.random.default_rng(prompts)
    draws, n = 300, 100
    held = np.zeros(2)
    for _ in range(draws):
        effects = deviation * rng.standard_normal(prompts)
        scores = 0.3 * rng.standard_normal((n, 1)) + effects + 0.3 * rng.standard_normal((n, prompts))
        found: PromptMean = prompt_mean(scores, spread_over(None))
        these = score_interval(found.value, found.these)
        for place, (interval, truth) in enumerate(((these, effects.mean()), (found.like_these(these), 0.0))):
            assert isinstance(interval, Interval)
            held[place] += interval.low <= truth <= interval.high
    assert (held / draws >= 0.915).all(), held / draws  # 0.93 less three standard errors of 300 draws


def test_intervals_stay_within_the_range() -> None:
    scores = np.clip(drawn(40, 3) + 0.5, 0, 1)
    found = prompt_mean(scores, spread_over(None, within=SHARES))
    interval = found.like_these(score_interval(found.value, found.these, SHARES), ScoreRange(0.0, 1.0))
    assert isinstance(interval, Interval) and 0 <= interval.low <= interval.high <= 1
