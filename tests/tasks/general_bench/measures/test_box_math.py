from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.mask_math import box_f1, jaccard, paired_iou, success_area, tube_iou

NUMBER = st.floats(-1e6, 1e6)
SIDE = st.floats(0, 1e6)
BOX = st.tuples(NUMBER, NUMBER, SIDE, SIDE).map(list)


def iou(one: list[float], other: list[float]) -> float:
    return float(paired_iou(np.array(one, dtype=float), np.array(other, dtype=float)))


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


@given(st.lists(BOX, min_size=1, max_size=5), st.lists(BOX, min_size=1, max_size=5))
def test_rows_agree_with_single_boxes(ones: list[list[float]], others: list[list[float]]):
    found = paired_iou(np.array(ones)[:, None], np.array(others)[None])
    assert found.shape == (len(ones), len(others))
    assert found[0, -1] == pytest.approx(iou(ones[0], others[-1]))


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


def rows(*boxes: list[float]) -> np.ndarray:
    return np.array(boxes, dtype=float).reshape(-1, 4)


@given(st.lists(BOX, min_size=1, max_size=6), st.lists(BOX, min_size=1, max_size=6))
def test_f_counts_hits_misses_and_wrong_boxes(found: list[list[float]], truth: list[list[float]]):
    hits, hit = 0, set()
    for box in found:
        overlaps = [iou(box, other) for other in truth]
        if max(overlaps) >= 0.5:
            hits += 1
            hit.add(overlaps.index(max(overlaps)))
    precision, recall = hits / len(found), hits / (hits + len(truth) - len(hit)) if hits else 0
    wanted = 2 * precision * recall / (precision + recall) if hits else 0
    assert box_f1(rows(*found), rows(*truth)) == pytest.approx(wanted)


def test_f_of_empty_sides():
    box = rows([0, 0, 5, 5])
    assert (box_f1(rows(), rows()), box_f1(rows(), box), box_f1(box, rows())) == (1, 0, 0)


def test_a_true_box_is_hit_several_times():
    box = rows([0, 0, 10, 10])
    assert box_f1(rows([0, 0, 10, 10], [0, 0, 10, 9]), box) == 1  # two hits, nothing missed
    assert box_f1(rows([0, 0, 10, 5]), box, 0.5) == 1
    assert box_f1(rows([0, 0, 10, 5]), box, 0.51) == 0


def test_j_is_the_mean_over_frames():
    assert jaccard(rows([0, 0, 4, 4], [9, 9, 1, 1]), rows([0, 0, 4, 4], [0, 0, 1, 1])) == 0.5
    for pair in ((rows([0, 0, 1, 1]), rows()), (rows(), rows())):
        with pytest.raises(DataError, match="a box for each frame"):
            jaccard(*pair)
