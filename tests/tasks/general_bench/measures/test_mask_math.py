from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.mask_math import (
    as_pixels,
    box_of,
    class_counts,
    dice_of,
    iou_of,
    overlap,
    overlap_row,
    runs_of,
    runs_of_box,
    runs_of_indices,
    shared_areas,
    video_iou,
)

PAIR = st.tuples(*[arrays(bool, (6, 9))] * 2)


@given(PAIR)
def test_overlaps_are_those_of_the_pixels(pair: tuple[np.ndarray, np.ndarray]):
    one, other = pair
    found = overlap(runs_of(one), runs_of(other))
    assert found == ((one & other).sum(), one.sum(), other.sum())
    assert iou_of(*found) == pytest.approx((one & other).sum() / max((one | other).sum(), 1))
    assert dice_of(*found) == pytest.approx(2 * (one & other).sum() / max(one.sum() + other.sum(), 1))
    mirrored = overlap(runs_of(other), runs_of(one))
    assert (iou_of(*mirrored), dice_of(*mirrored)) == (iou_of(*found), dice_of(*found))
    assert iou_of(*found) <= dice_of(*found) <= 1


@given(st.lists(arrays(bool, (5, 4)), min_size=1, max_size=5))
def test_rows_of_overlaps(masks: list[np.ndarray]):
    first, runs = masks[0], [runs_of(mask) for mask in masks]
    assert shared_areas(runs[0], runs).tolist() == [int((first & mask).sum()) for mask in masks]
    expected = [(first & mask).sum() / max((first | mask).sum(), 1) for mask in masks]
    assert overlap_row(runs[0], runs) == pytest.approx(expected)
    assert shared_areas(runs[0], []).tolist() == []


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)))
def test_sets_of_points(one: list[int], other: list[int]):
    first, second = (runs_of_indices(np.array(values, dtype=np.int64)) for values in (one, other))
    assert (first.area, second.area) == (len(set(one)), len(set(other)))
    assert shared_areas(first, [second])[0] == len(set(one) & set(other))


@given(*[st.floats(-20, 30)] * 2, *[st.floats(0, 40)] * 2)
def test_boxes_as_pixels(x: float, y: float, width: float, height: float):
    expected = np.zeros((11, 13), dtype=bool)
    expected[max(round(y), 0) : max(round(y + height), 0), max(round(x), 0) : max(round(x + width), 0)] = True
    assert np.array_equal(as_pixels(runs_of_box([x, y, width, height], 11, 13)), expected)


def test_masks_of_different_sizes_are_refused():
    with pytest.raises(DataError, match="2 x 3 and 3 x 2"):
        overlap(runs_of(np.zeros((2, 3), bool)), runs_of(np.zeros((3, 2), bool)))


def test_videos_are_pooled_over_frames():
    full, none = runs_of(np.ones((2, 2), bool)), runs_of(np.zeros((2, 2), bool))
    assert video_iou([full, none, none], [full, full, none]) == 0.5
    assert video_iou([none], [none]) == 0.0
    with pytest.raises(DataError):
        video_iou([full], [full, full])


@given(*[arrays(np.int64, 24, elements=st.integers(0, 5))] * 2)
def test_class_counts_are_those_of_a_confusion_matrix(predicted: np.ndarray, truth: np.ndarray):
    metrics = pytest.importorskip("sklearn.metrics")
    matrix = metrics.confusion_matrix(truth, predicted, labels=range(6))
    expected = {
        label: (matrix[label, label], matrix[label].sum(), matrix[:, label].sum())
        for label in range(6)
        if matrix[label].sum() + matrix[:, label].sum()
    }
    assert class_counts(predicted, truth) == expected


@given(arrays(bool, (6, 9)))
def test_the_box_of_a_mask_reaches_from_its_first_to_its_last_pixel(mask: np.ndarray):
    ys, xs = mask.nonzero()
    wanted = [xs.min(), ys.min(), xs.max() - xs.min(), ys.max() - ys.min()] if len(xs) else [0, 0, 0, 0]
    assert box_of(runs_of(mask)) == wanted
