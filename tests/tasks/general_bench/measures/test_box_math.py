from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.box_math import (
    TrackScore,
    as_boxes,
    box_f1,
    from_corners,
    iou,
    mean_iou,
    paired_iou,
    success_area,
    track_score,
    tracking_j_and_f,
    tube_iou,
)

NUMBER = st.floats(-1e6, 1e6)
SIDE = st.floats(0, 1e6)
BOX = st.tuples(NUMBER, NUMBER, SIDE, SIDE).map(list)


@given(BOX, BOX)
def test_iou_is_bounded_and_symmetric(one: list[float], other: list[float]):
    assert 0 <= iou(one, other) <= 1 + 1e-9
    assert iou(one, other) == pytest.approx(iou(other, one))


@given(st.tuples(st.integers(-99, 99), st.integers(-99, 99), st.integers(1, 99), st.integers(1, 99)).map(list))
def test_a_box_is_itself(box: list[int]):
    assert iou(box, box) == 1
    assert iou(box, [box[0], box[1], 0, box[3]]) == 0


def test_iou_by_hand():
    assert iou([0, 0, 4, 4], [2, 2, 4, 4]) == pytest.approx(4 / 28)
    assert iou([0, 0, 4, 4], [4, 0, 4, 4]) == 0
    assert iou([0, 0, 0, 0], [0, 0, 0, 0]) == 0
    assert from_corners(np.array([[1, 2, 4, 8]])).tolist() == [[1, 2, 3, 6]]


@given(st.lists(BOX, min_size=1, max_size=5), st.lists(BOX, min_size=1, max_size=5))
def test_rows_agree_with_single_boxes(ones: list[list[float]], others: list[list[float]]):
    found = paired_iou(as_boxes(ones)[:, None], as_boxes(others)[None])
    assert found.shape == (len(ones), len(others))
    assert found[0, -1] == pytest.approx(iou(ones[0], others[-1]))


def test_f_counts_a_reference_box_that_is_hit_twice():
    truth = as_boxes([[0, 0, 10, 10], [50, 50, 10, 10]])
    # two hits, one false, one missed: precision 2/3, recall 2/3
    assert box_f1(as_boxes([[0, 0, 10, 10], [0, 0, 10, 9], [90, 90, 1, 1]]), truth) == pytest.approx(2 / 3)
    assert box_f1(as_boxes([]), as_boxes([])) == 1
    assert box_f1(as_boxes([]), truth) == 0
    assert box_f1(truth, as_boxes([])) == 0


def test_j_and_f():
    same = as_boxes([[0, 0, 10, 10], [5, 5, 10, 10]])
    assert track_score(same, same) == TrackScore(1, 1)
    assert tracking_j_and_f([TrackScore(1, 1), TrackScore(0.5, 0)]) == pytest.approx(1.25 / 2.0001)
    with pytest.raises(DataError):
        mean_iou(same, same[:1])
    with pytest.raises(DataError):
        mean_iou(same[:0], same[:0])


def test_success_curve():
    assert success_area(np.array([1.0, 1.0])) == pytest.approx(20 / 21)
    assert success_area(np.array([0.0])) == 0
    # above 0, .05, ..., .5 (11 of 21 thresholds) in one of two frames
    assert success_area(np.array([0.52, 0.0])) == pytest.approx(11 / 21 / 2)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_success_is_near_the_mean_overlap(overlaps: list[float]):
    assert abs(success_area(np.array(overlaps)) - np.mean(overlaps)) <= 1 / 20 + 1e-9


def test_tubes():
    overlaps = np.array([0.5, 1.0, 0.0, 0.0])
    assert tube_iou(overlaps, np.array([1, 1, 1, 0], bool), np.array([1, 1, 0, 0], bool)) == pytest.approx(0.5)
    assert tube_iou(overlaps, np.zeros(4, bool), np.zeros(4, bool)) == 0
