from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.stats import paired_ttest

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)


@given(PAIRS)
def test_swapping_the_sides_changes_signs_only(pairs: list[tuple[float, float]]) -> None:
    there = paired_ttest([a for a, _ in pairs], [b for _, b in pairs])
    back = paired_ttest([b for _, b in pairs], [a for a, _ in pairs])
    assert there.mean_diff == -back.mean_diff
    assert there.p_value == back.p_value
    assert (there.ci_lower, there.ci_upper) == (-back.ci_upper, -back.ci_lower)


@given(PAIRS)
def test_the_interval_leaves_out_zero_exactly_when_p_is_small(pairs: list[tuple[float, float]]) -> None:
    result = paired_ttest([a for a, _ in pairs], [b for _, b in pairs])
    assert result.ci_lower <= result.mean_diff <= result.ci_upper
    assume(abs(result.p_value - 0.05) > 1e-9)
    assert (result.ci_lower > 0 or result.ci_upper < 0) == (result.p_value < 0.05)


def test_no_spread() -> None:
    assert paired_ttest([1, 1], [1, 1]).p_value == 1.0
    assert paired_ttest([0, 0], [1, 1]).t_stat == -math.inf


def test_too_few_and_uneven() -> None:
    assert math.isnan(paired_ttest([1], [0]).p_value)
    assert paired_ttest([], []).n == 0
    with pytest.raises(UsageError, match="2 values against 1"):
        paired_ttest([1, 2], [1])
