from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.stats import t_cdf, t_ppf, two_sided_p
from tests.cases import for_each

DEGREES = st.sampled_from([1, 2, 3, 4, 7, 30, 99, 100, 101, 1000, 100_000])


@for_each("t", [0.001, 0.3, 1.0, 2.5, 40.0, 1e8])
def test_closed_forms(t: float) -> None:
    assert two_sided_p(t, 1) == pytest.approx(2 * math.atan(1 / t) / math.pi, rel=1e-12)  # Cauchy
    assert two_sided_p(t, 2) == pytest.approx(2 / (t * t + 2 + t * math.sqrt(t * t + 2)), rel=1e-12)


@for_each(
    ("q", "df", "expected"),
    [
        (0.975, 1, 12.706204736174694),
        (0.975, 10, 2.2281388519649385),
        (0.995, 5, 4.032142983557536),
        (0.9, 120, 1.288646233656378),
    ],
)
def test_tabulated_quantiles(q: float, df: int, expected: float) -> None:
    assert t_ppf(q, df) == pytest.approx(expected, rel=1e-11)
    assert t_ppf(1 - q, df) == pytest.approx(-expected, rel=1e-11)


@given(st.floats(0.001, 0.999), DEGREES)
def test_quantile_inverts_the_distribution(q: float, df: int) -> None:
    assert t_cdf(t_ppf(q, df), df) == pytest.approx(q, abs=1e-12)


@given(st.floats(-50, 50), st.floats(0, 20), DEGREES)
def test_the_distribution_rises(t: float, more: float, df: int) -> None:
    assert 0 <= t_cdf(t, df) <= t_cdf(t + more, df) + 1e-13 <= 1 + 1e-12


def test_many_degrees_are_normal() -> None:
    assert t_cdf(1.3, 1e7) == pytest.approx(NormalDist().cdf(1.3), abs=1e-7)


def test_edges() -> None:
    assert two_sided_p(0.0, 3) == 1.0
    assert two_sided_p(math.inf, 3) == 0.0
    assert two_sided_p(1e200, 3) == 0.0
    assert math.isnan(two_sided_p(math.nan, 3))
    assert t_ppf(0.5, 3) == 0.0
    with pytest.raises(UsageError, match="degrees"):
        two_sided_p(1.0, 0)
    with pytest.raises(UsageError, match="quantile"):
        t_ppf(1.0, 3)
