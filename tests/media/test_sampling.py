from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.media import sample_count, uniform_indices
from tests.cases import for_each


@for_each(
    ("arguments", "expected"),
    [
        ((100, 8, None, 25.0), 8),
        ((5, 8, None, 30.0), 5),
        ((300, 32, 1.0, 30.0), 10),
        ((0, 8, None, None), 8),
        ((10, 8, 1.0, 30.0), 1),  # a third of a second still gives one frame
        ((300, 32, 1.0, None), 32),  # the video's rate is unknown
        ((300, 32, 100.0, 30.0), 32),
    ],
)
def test_sample_count(arguments: tuple, expected: int) -> None:
    assert sample_count(*arguments) == expected


@for_each("arguments", [(10, 0), (10, -1), (10, 4, 0.0), (10, 4, -1.0)])
def test_sample_count_refuses_nothing_to_take(arguments: tuple) -> None:
    with pytest.raises(ValueError, match="must be"):
        sample_count(*arguments)


@given(total=st.integers(1, 100_000), count=st.integers(1, 400))
def test_uniform_indices_are_those_of_numpy(total: int, count: int) -> None:
    assert uniform_indices(total, count) == np.linspace(0, total - 1, count, dtype=int).tolist()


@given(total=st.integers(1, 5_000), count=st.integers(1, 200), include_last=st.booleans())
def test_uniform_indices_are_in_range_and_ordered(total: int, count: int, include_last: bool) -> None:
    indices = uniform_indices(total, count, include_last)
    assert len(indices) == count
    assert indices == sorted(indices)
    assert indices[0] >= 0 and indices[-1] < total
    if include_last:
        assert indices[-1] == total - 1
    if count <= total:
        assert len(set(indices)) == count


def test_mega_bench_example() -> None:
    assert uniform_indices(100, 64)[:8] == [0, 1, 3, 4, 6, 7, 9, 11]
    assert uniform_indices(100, 64)[-2:] == [97, 99]


def test_edges() -> None:
    assert uniform_indices(0, 4) == []
    assert uniform_indices(9, 1) == [0]
    assert uniform_indices(9, 1, include_last=True) == [8]
    for total, count in ((-1, 2), (5, 0)):
        with pytest.raises(ValueError, match="cannot take"):
            uniform_indices(total, count)
