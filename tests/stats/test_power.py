from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from lmms_eval.errors import UsageError
from lmms_eval.stats import PowerQuestion, power_analysis
from lmms_eval.stats.differences import mcnemar_exact
from lmms_eval.stats.power import detectable, documents_needed, power_of_test
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
    for count in range(n + 1):
        if (weight := float(binom.pmf(count, n, discordant))) > 1e-9:
            rejected = [one for one in range(count + 1) if mcnemar_exact(one, count - one) <= 0.05]
            found += weight * math.fsum(binom.pmf(rejected, count, (1 + difference / discordant) / 2))
    return found


@for_each(("discordant", "difference"), [(0.3, 0.15), (0.2, 0.1), (0.6, 0.2)])
def test_the_exact_test_has_the_power_that_is_promised(discordant: float, difference: float) -> None:
    spread = math.sqrt(discordant - difference**2)
    n = documents_needed(spread, difference, step=1.0)
    assert 0.785 <= power_of_mcnemar(n, discordant, difference) <= 0.825
    assert power_of_mcnemar(documents_needed(spread, difference), discordant, difference) < 0.785
    assert detectable(spread, n, step=1.0) == pytest.approx(difference, abs=0.002)
