from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.compat.answers import _PAIR, parse_point2d


@given(st.lists(st.tuples(st.integers(-2000, 2000), st.integers(-2000, 2000)), min_size=1))
def test_whole_numbers_are_thousandths(pairs: list[tuple[int, int]]) -> None:
    points = parse_point2d(" ".join(map(str, pairs)), 1000, 500)
    assert points.shape == (len(pairs), 2) and points.dtype.kind == "i"
    assert points.tolist() == [[int(x / 1000 * 1000), int(y / 1000 * 500)] for x, y in pairs]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    points = parse_point2d(text, 640, 480)
    assert points.shape == (0,) or points.shape[1] == 2


def test_a_decimal_point_makes_a_share() -> None:
    assert parse_point2d("(0.5, 1) and [250, -500]", 640, 480).tolist() == [[320, 480], [160, -240]]


def test_no_point_is_an_empty_array() -> None:
    assert parse_point2d("[10, 20, 30, 40] (1,2,3)", 640, 480).shape == (0,)


def test_numbers_beyond_all_pixels_stay_numbers() -> None:
    points = parse_point2d(f"(-{'9' * 400}, {'9' * 25})", 640, 0)
    assert points.dtype == np.int64
    assert points[0][0] < -640 and points[0][1] == 0


@given(
    st.lists(st.sampled_from(["1", "25", "٣", ".", ",", " ", "(", "[", ")", "]", "-", "+"]), max_size=14).map("".join)
)
def test_the_expression_finds_the_pairs_of_the_published_one(text: str) -> None:
    published = r"[\[\(]\s*([-+]?\d+\.?\d*)\s*,\s*([-+]?\d+\.?\d*)\s*[\]\)]"
    for shown in (text, f"({text},{text})"):
        assert _PAIR.findall(shown) == re.findall(published, shown)
