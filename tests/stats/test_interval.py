from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.stats import Interval, normal_interval, t_interval, wilson_interval


@given(st.floats(-1e3, 1e3), st.floats(0, 1e3), st.integers(2, 1000), st.floats(0.5, 0.999))
def test_intervals_contain_the_value(value: float, error: float, n: int, level: float) -> None:
    normal, student = normal_interval(value, error, level), t_interval(value, error, n, level)
    assert normal is not None and student is not None
    assert normal.low <= value <= normal.high
    assert student.low <= value <= student.high
    assert student.high >= value + (normal.high - value) * (1 - 1e-4)  # the t interval is the wider one


@given(st.integers(1, 10_000), st.data())
def test_wilson_contains_the_share_and_stays_in_range(n: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, n))
    interval = wilson_interval(right, n)
    assert interval is not None
    assert 0 <= interval.low <= right / n <= interval.high <= 1
    assert interval.low < interval.high


def test_ninety_five_percent_is_1_96_errors() -> None:
    assert normal_interval(0.5, 0.1) == Interval(0.5 - 0.196, 0.5 + 0.196, "normal")


def test_wilson_known_value() -> None:
    interval = wilson_interval(8, 10)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.4901626, 0.9433180), abs=1e-5)


@pytest.mark.parametrize(("value", "error"), [(None, 0.1), (0.5, None), (math.nan, 0.1), (0.5, math.nan)])
def test_undefined_gives_none(value: float | None, error: float | None) -> None:
    assert normal_interval(value, error) is None
    assert t_interval(value, error, 10) is None


def test_too_few_items() -> None:
    assert t_interval(0.5, 0.1, 1) is None
    assert wilson_interval(0, 0) is None


def test_bad_input_is_refused() -> None:
    with pytest.raises(UsageError, match="level"):
        normal_interval(0.5, 0.1, 95)
    with pytest.raises(UsageError, match="successes"):
        wilson_interval(11, 10)
