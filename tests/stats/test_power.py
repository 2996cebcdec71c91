from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from lmms_eval.errors import UsageError
from lmms_eval.stats import PowerQuestion, power_analysis
from lmms_eval.stats.differences import mcnemar_exact
from lmms_eval.stats.power import detectable, documents_needed, power_of_test, repeat_plans
from tests.cases import for_each


@given(st.floats(0.005, 0.5), st.floats(0.05, 1), st.floats(-0.9, 0.9))
def test_the_number_needed_gives_the_power_wanted(effect: float, std: float, correlation: float) -> None:
    question = PowerQuestion(effect, std_a=std, correlation=correlation)
    needed = power_analysis(question).min_n
    reached = power_analysis(question, current_n=needed)
    assert reached.current_power is not None and reached.current_power >= 0.8 - 1e-4
    assert reached.min_detectable_effect is not None and reached.min_detectable_effect <= effect + 1e-4
    if needed > 1:
        fewer = power_analysis(question, current_n=needed - 1).current_power
        assert fewer is not None and fewer <= 0.8 + 1e-4


def test_no_spread_of_the_differences() -> None:
    result = power_analysis(PowerQuestion(correlation=1.0), current_n=10)
    assert (result.min_n, result.current_power, result.min_detectable_effect) == (2, 1.0, 0.0)


@for_each(
    ("question", "current_n", "what"),
    [
        (PowerQuestion(0), None, "effect size"),
        (PowerQuestion(float("nan")), None, "effect size"),
        (PowerQuestion(alpha=0), None, "alpha"),
        (PowerQuestion(power=1), None, "power"),
        (PowerQuestion(correlation=1.1), None, "correlation"),
        (PowerQuestion(std_a=-1), None, "standard deviations"),
        (PowerQuestion(), 0, "number of documents"),
        (PowerQuestion(tests=0), None, "number of tests"),
        (PowerQuestion(cluster_size=0.5), None, "size of clusters"),
        (PowerQuestion(icc=1.5), None, "correlation within clusters"),
    ],
)
def test_bad_parameters_are_refused(question: PowerQuestion, current_n: int | None, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        power_analysis(question, current_n)


@for_each("alpha", [0.05, 0.05 / 3, 0.001, 1e-4])
@for_each("n", [3, 10, 40, 1000, 100_000])
def test_a_detectable_difference_is_found_where_the_library_has_no_number_for_a_tail(n: int, alpha: float) -> None:
    found = detectable(0.5, n, alpha)
    assert power_of_test(found / 0.5 * math.sqrt(n), n - 1, alpha) == pytest.approx(0.8)


def power_of_mcnemar(n: int, discordant: float, difference: float) -> float:
    """Power of the exact test at 5 %, by enumeration of all numbers of discordant documents."""
    found = 0.0
    for count in range(1, n + 1):
        if (weight := float(binom.pmf(count, n, discordant))) > 1e-9:
            least = int(binom.ppf(0.025, count, 0.5))  # the fewest of one kind that are not rejected
            while least and mcnemar_exact(least - 1, count - least + 1) > 0.05:
                least -= 1
            while mcnemar_exact(least, count - least) <= 0.05:
                least += 1
            chance = (1 + difference / discordant) / 2
            kept = binom.cdf(count - least, count, chance) - binom.cdf(least - 1, count, chance)
            found += weight * (1 - float(kept))
    return found


@for_each(("discordant", "difference"), [(0.3, 0.15), (0.2, 0.1), (0.6, 0.2)])
def test_the_exact_test_has_the_power_that_is_promised(discordant: float, difference: float) -> None:
    spread = math.sqrt(discordant - difference**2)
    n = documents_needed(spread, difference, step=1.0)
    assert 0.785 <= power_of_mcnemar(n, discordant, difference) <= 0.825
    assert power_of_mcnemar(documents_needed(spread, difference), discordant, difference) < 0.785
    assert detectable(spread, n, step=1.0) == pytest.approx(difference, abs=0.002)


def test_several_tests_and_clusters_need_more_documents() -> None:
    plain = power_analysis(PowerQuestion())
    assert power_analysis(PowerQuestion(tests=10)).min_n == power_analysis(PowerQuestion(alpha=0.005)).min_n
    clustered = power_analysis(PowerQuestion(cluster_size=5, icc=0.25), plain.min_n)
    assert clustered.min_n == pytest.approx(2 * plain.min_n, abs=1)
    assert clustered.current_power == pytest.approx(
        power_analysis(PowerQuestion(), plain.min_n // 2).current_power, abs=1e-3
    )
    assert power_analysis(PowerQuestion(cluster_size=5, icc=0)).min_n == plain.min_n


@for_each(("k", "size", "icc"), [(1, 1, 1.0), (4, 1, 1.0), (4, 5, 0.3)])
def test_plans_with_repeats_have_the_power_wanted(k: int, size: int, icc: float) -> None:
    """Scores of two models by the random-effects model of ``variance_split``; the test knows the standard error."""
    questions, answers, effect, rho = 0.04, 0.16, 0.06, 0.6
    plan = repeat_plans(PowerQuestion(effect, correlation=rho, cluster_size=size, icc=icc), questions, answers)[k - 1]
    clusters = math.ceil(plan.documents / size)
    generator, draws = np.random.default_rng(k * size), 3000
    shape = (draws, clusters, size)
    spread = math.sqrt(2 * questions * (1 - rho))
    shared = math.sqrt(icc) * generator.standard_normal((draws, clusters, 1)) if size > 1 else 0.0
    own = math.sqrt(1 - icc if size > 1 else 1.0) * generator.standard_normal(shape)
    noise = math.sqrt(2 * answers / k) * generator.standard_normal(shape)
    means = (effect + spread * (shared + own) + noise).mean(axis=2)
    z = means.mean(axis=1) / means.std(axis=1, ddof=1) * math.sqrt(clusters)
    assert float((np.abs(z) > 1.96).mean()) == pytest.approx(0.8, abs=0.03)


def test_the_cheapest_number_of_repeats_is_that_of_two_stage_samples() -> None:
    plans = repeat_plans(PowerQuestion(0.01, correlation=0.0), 0.02, 0.18, (4.0, 1.0))
    assert min(plans, key=lambda plan: plan.price).repeats == pytest.approx(math.sqrt(0.18 / 0.02 * 4.0), abs=1)
    assert min(repeat_plans(PowerQuestion(), 0.02, 0.18), key=lambda plan: plan.price).repeats == 1
    for prices in ((0.0, 0.0), (-1.0, 1.0), (math.nan, 1.0)):
        with pytest.raises(UsageError, match="prices"):
            repeat_plans(PowerQuestion(), 0.02, 0.18, prices)
