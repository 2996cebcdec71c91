import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.geometry import (
    BY_CENTRE,
    BY_OVERLAP,
    MAX_BOXES,
    Box3D,
    area_above_tenth,
    interpolated_area,
    match_item,
    mean_average_precision,
)


def box(x, score=1.0, label="car"):
    return Box3D(x, 0, 0, 2, 2, 2, 0, label, score)


TRUTH = [box(0), box(10)]


def test_each_true_box_is_taken_once_the_best_score_first():
    found = match_item(TRUTH, [box(0.2, 0.5), box(0, 0.4), box(10, 0.9)], BY_OVERLAP)
    assert found == {"car": {"objects": 2, "found": [[0.9, 1, 1], [0.5, 1, 1], [0.4, 0, 0]]}}


def test_the_nearest_free_box_is_taken():
    truth = [box(0), box(1.2)]
    assert match_item(truth, [box(0.5, 0.9), box(0, 0.8)], BY_CENTRE)["car"]["found"] == [
        [0.9, 1, 1, 1, 1],
        [0.8, 0, 0, 1, 1],  # the other true box is 1.2 m off
    ]


def test_thresholds_of_overlap():
    # shifted by x the IoU is (2 - x) / (2 + x): 0.3 m gives 0.74, 1 m 0.33, 1.3 m 0.21
    for shift, hits in ((0.3, (True, True)), (1.0, (True, False)), (1.3, (False, False))):
        assert match_item([box(0)], [box(shift)], BY_OVERLAP)["car"]["found"] == [[1.0, *hits]]


def test_hand_computed_means():
    perfect = match_item(TRUTH, TRUTH, BY_OVERLAP)
    assert mean_average_precision([perfect], BY_OVERLAP) == 1
    half = match_item(TRUTH, [box(0)], BY_OVERLAP)
    assert mean_average_precision([half], BY_OVERLAP) == pytest.approx(51 / 101)
    loose = match_item([box(0)], [box(1.0)], BY_OVERLAP)  # found at 0.25, not at 0.50
    assert mean_average_precision([loose], BY_OVERLAP) == pytest.approx(0.5)
    late = match_item([box(0)], [box(50, 0.9), box(0, 0.1)], BY_OVERLAP)
    assert mean_average_precision([late], BY_OVERLAP) == pytest.approx(0.5)


def test_items_are_pooled_and_classes_averaged():
    first = match_item([box(0)], [box(0, 0.3), box(50, 0.8)], BY_OVERLAP)
    second = match_item([box(0)], [box(0, 0.9)], BY_OVERLAP)
    # scores fall 0.9 hit, 0.8 false, 0.3 hit: precision 1 up to recall 0.5, then 2/3
    expected = (51 + 50 * 2 / 3) / 101
    assert mean_average_precision([first, second], BY_OVERLAP) == pytest.approx(expected)
    bus = match_item([box(0, label="bus")], [], BY_OVERLAP)
    assert mean_average_precision([first, second, bus], BY_OVERLAP) == pytest.approx(expected / 2)
    unknown = match_item([], [box(0, label="tree")], BY_OVERLAP)
    assert mean_average_precision([first, second, unknown], BY_OVERLAP) == pytest.approx(expected)


def test_nothing_there_is_0():
    assert mean_average_precision([], BY_OVERLAP) == 0
    assert mean_average_precision([match_item([], [], BY_OVERLAP)], BY_OVERLAP) == 0
    assert mean_average_precision([match_item(TRUTH, [], BY_CENTRE)], BY_CENTRE) == 0


def test_areas_of_curves():
    recalls, precisions = np.array([0.5, 0.5, 1.0]), np.array([1.0, 0.5, 2 / 3])
    assert interpolated_area(recalls, precisions) == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert interpolated_area(np.array([0.5, 1.0]), np.array([1.0, 0.5])) == pytest.approx((51 + 50 / 2) / 101)
    assert area_above_tenth(np.array([0.5, 1.0]), np.array([1.0, 1.0])) == pytest.approx(1)
    # recall ends at 0.5: 40 of the 90 recalls from 0.11 on are reached
    assert area_above_tenth(np.array([0.25, 0.5]), np.array([1.0, 1.0])) == pytest.approx(40 / 90)
    assert area_above_tenth(np.array([0.5, 1.0]), np.array([0.1, 0.1])) == 0
    assert area_above_tenth(np.array([1.0]), np.array([0.55])) == pytest.approx(0.5)


def test_the_best_boxes_of_an_item_count_and_a_crowd_is_bounded():
    crowd = [box(0, 1 - number / 10_000) for number in range(3000)]
    start = time.perf_counter()
    found = match_item([box(0), box(0.1)], [*crowd, box(0.1, 0.0)], BY_OVERLAP)
    assert time.perf_counter() - start < 20
    assert len(found["car"]["found"]) == MAX_BOXES
    assert sum(one[1] for one in found["car"]["found"]) == 2


@given(st.integers(0, 2**32 - 1), st.sampled_from([BY_OVERLAP, BY_CENTRE]))
def test_between_0_and_1_and_1_for_the_truth_itself(seed, matching):
    source = np.random.default_rng(seed)
    truth = [box(number * 20) for number in range(source.integers(1, 5))]
    found = [box(source.uniform(-5, 90), source.random()) for _ in range(6)]
    assert 0 <= mean_average_precision([match_item(truth, found, matching)], matching) <= 1
    assert mean_average_precision([match_item(truth, truth, matching)], matching) == pytest.approx(1)


def test_false_alarms_behind_all_hits_cost_nothing():
    with_noise = [*TRUTH, *(box(1000 + number, 0.1) for number in range(3))]
    assert mean_average_precision([match_item(TRUTH, with_noise, BY_OVERLAP)], BY_OVERLAP) == 1
