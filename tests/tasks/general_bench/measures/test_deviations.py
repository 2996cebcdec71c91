from __future__ import annotations

import pytest

from lmms_eval.tasks.general_bench.measures.text_math import mean_absolute_error


def test_of_hand_values():
    pairs = [(1, 2), ("4", 2.0), (0, "-3")]
    assert mean_absolute_error(pairs) == pytest.approx((1 + 2 + 3) / 3)


def test_pairs_that_are_no_numbers_are_left_out():
    pairs = [("n/a", 1), (None, 1), ([1], 1), (10**400, 1), (5, 1)]
    assert mean_absolute_error(pairs) == 4.0


def test_without_a_pair_the_value_is_zero():
    assert mean_absolute_error([]) == mean_absolute_error([("x", 1)]) == 0.0
