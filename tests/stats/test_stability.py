from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.stats import stability


@given(st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=6), min_size=1, max_size=10))
def test_shares_are_shares(scores: list[list[int]]) -> None:
    found = stability(scores)
    assert 0 <= found.expected_accuracy <= 1
    assert 0 <= found.consensus_accuracy <= 1
    assert 0 <= found.consistency_rate <= 1
    assert (found.internal_variance == 0) == (found.consistency_rate == 1)


def test_a_tie_counts_as_wrong() -> None:
    assert stability([[1, 0]]).consensus_accuracy == 0
    assert stability([[1, 1, 0]]).consensus_accuracy == 1


def test_nothing_is_nan() -> None:
    found = stability([])
    assert all(math.isnan(x) for x in (found.expected_accuracy, found.consensus_accuracy, found.consistency_rate))


def test_identical_answers() -> None:
    found = stability([[0.3] * 4, [1.0] * 4])
    assert found.consistency_rate == 1
    assert found.internal_variance == pytest.approx(0)
