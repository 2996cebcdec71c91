from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.stats import (
    aggregate_subtask_metrics,
    combined_sample_stderr,
    mean_stderr,
    pooled_sample_stderr,
    sample_stddev,
    unweighted_group_stderr,
)

PARTS = st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=12), min_size=1, max_size=5)


@given(PARTS)
def test_the_weighted_mean_is_the_mean_of_all(parts: list[list[float]]) -> None:
    means, sizes = [math.fsum(p) / len(p) for p in parts], [len(p) for p in parts]
    everything = [v for p in parts for v in p]
    assert aggregate_subtask_metrics(means, sizes) == pytest.approx(math.fsum(everything) / len(everything), abs=1e-12)
    assert aggregate_subtask_metrics(means, sizes, False) == pytest.approx(math.fsum(means) / len(means), abs=1e-12)


@given(PARTS)
def test_pooled_error_comes_from_the_pooled_variance(parts: list[list[float]]) -> None:
    sizes = [len(p) for p in parts]
    variance = sum((len(p) - 1) * sample_stddev(p) ** 2 for p in parts) / (sum(sizes) - len(parts))
    found = pooled_sample_stderr([mean_stderr(p) for p in parts], sizes)
    assert found == pytest.approx(math.sqrt(variance / sum(sizes)), rel=1e-9, abs=1e-12)


@given(st.floats(0, 1), st.integers(2, 100))
def test_one_part_keeps_its_error(error: float, n: int) -> None:
    assert pooled_sample_stderr([error], [n]) == pytest.approx(error, abs=1e-12)
    assert combined_sample_stderr([error], [n], [0.5]) == pytest.approx(error, abs=1e-12)
    assert unweighted_group_stderr([error]) == pytest.approx(error, abs=1e-12)


def test_unweighted_error() -> None:
    assert unweighted_group_stderr([0.3, 0.4]) == pytest.approx(0.25)


def test_undefined_and_uneven() -> None:
    assert math.isnan(aggregate_subtask_metrics([], []))
    assert math.isnan(pooled_sample_stderr([0.1], [1]))
    assert math.isnan(unweighted_group_stderr([]))
    assert math.isnan(combined_sample_stderr([], [], []))
    with pytest.raises(UsageError, match="1, 2"):
        pooled_sample_stderr([0.1], [1, 2])
