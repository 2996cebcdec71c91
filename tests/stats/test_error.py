from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.stats import clustered_stderr, item_errors, item_number, mean_stderr, pop_stddev, sample_stddev

NUMBERS = st.floats(-1e6, 1e6)


@given(st.lists(NUMBERS, min_size=2, max_size=30))
def test_deviations_agree_with_the_standard_library(values: list[float]) -> None:
    assert sample_stddev(values) == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-9)
    assert pop_stddev(values) == pytest.approx(statistics.pstdev(values), rel=1e-9, abs=1e-9)
    assert mean_stderr(values) == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_one_cluster_per_item_is_the_plain_error(values: list[float]) -> None:
    assert clustered_stderr(values, range(len(values))) == pytest.approx(mean_stderr(values), rel=1e-9, abs=1e-12)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3)), min_size=2, max_size=30))
def test_clustered_error_is_never_imaginary(items: list[tuple[float, int]]) -> None:
    assert clustered_stderr([v for v, _ in items], [c for _, c in items]) >= 0


def test_negatively_correlated_clusters_give_zero() -> None:
    assert clustered_stderr([1, 0, 0, 1, 1, 0], ["a", "a", "b", "b", "c", "c"]) < mean_stderr([1, 0, 0, 1, 1, 0])
    assert clustered_stderr([0.0, 1.0], ["a", "a"]) == pytest.approx(0.5 / math.sqrt(2))
    assert clustered_stderr([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0], list("aabbccdd")) >= 0.0


def test_repeating_every_item_in_its_cluster_does_not_shrink_the_error() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 0.2]
    tripled = [v for v in values for _ in range(3)]
    assert clustered_stderr(tripled, [i // 3 for i in range(18)]) > 1.5 * mean_stderr(tripled)


def test_undefined_is_nan() -> None:
    found = [mean_stderr([1.0]), sample_stddev([]), sample_stddev([1.0]), pop_stddev([]), clustered_stderr([1], [1])]
    assert all(math.isnan(x) for x in found)


def test_lengths_must_agree() -> None:
    with pytest.raises(UsageError, match="2 values but 1"):
        clustered_stderr([1, 2], ["a"])


def test_item_errors_take_numbers_only_and_scale() -> None:
    plain, percent = item_errors([1, 0, "x", None, 1]), item_errors([1, 0, 1], scale=100)
    assert plain.clt == pytest.approx(1 / 3)
    assert plain.clustered is None
    assert percent.clt == pytest.approx(100 / 3)


def test_item_errors_by_cluster() -> None:
    items = [{"hit": 1, "v": 1}, {"hit": 1, "v": 1}, {"hit": 0, "v": 2}, {"hit": 0, "v": 2}]
    errors = item_errors(items, "v", "hit")
    assert errors.clt is not None and errors.clustered is not None
    assert errors.clustered > errors.clt
    assert item_errors([{"hit": 1, "v": 1}, {"hit": 0, "v": 1}], "v", "hit").clustered is None
    assert item_errors(items, None, "hit").clustered is None
    assert item_errors([1, 0, 1], "v") == item_errors([1, 0, 1])
    assert item_errors([*items, 1], "v", "hit").clustered is None
    assert item_number({"hit": 2}, "hit") == 2
    assert item_number({"hit": "2"}, "hit") is None
