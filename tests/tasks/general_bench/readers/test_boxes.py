from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.regions import boxes, fold_label, key_points, tube
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_of
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import item

PREDICTED, REFERENCE = prediction_of(item([])), reference_of(item([]))


def test_labels_and_scores_in_either_order():
    entries = [[1, 2, 3, 4, "A", 0.5], [1, 2, 3, 4, 0.25, "b"], {"box": [1, 2, 3, 4], "label": "C", "score": 1}]
    found, marked = boxes(entries, PREDICTED)
    assert marked.labels == ("a", "b", "c")
    assert marked.scores.tolist() == [0.5, 0.25, 1.0]
    assert found.tolist() == [[1, 2, 3, 4]] * 3


def test_numbers_behind_a_box():
    assert boxes([[1, 2, 3, 4, 0.5]], PREDICTED)[1].scores.tolist() == [0.5]
    assert boxes([[1, 2, 3, 4, 7]], REFERENCE)[1].labels == ("7",)
    both = boxes([[1, 2, 3, 4, 7, 0.5]], PREDICTED)[1]
    assert (both.labels, both.scores.tolist()) == (("7",), [0.5])


def test_one_box_alone():
    assert boxes([1, 2, 3, 4], PREDICTED)[0].tolist() == [[1, 2, 3, 4]]
    assert boxes({"bbox": [1, 2, 3, 4]}, PREDICTED)[0].tolist() == [[1, 2, 3, 4]]
    assert boxes([], PREDICTED)[0].shape == (0, 4)


def test_labels_are_folded():
    assert fold_label("  Ｔraffic__Light-") == "traffic light"


HOSTILE: list[Any] = [
    None, "boxes", 4, True, [[1, 2, 3]], [[1, 2, 3, 4, "a", 0.5, 1]], [[1, 2, 3, "4"]], [[1, 2, 3, None]],
    [[1, 2, 3, True]], [[1, 2, float("nan"), 4]], [[1, 2, float("inf"), 4]], [[1, 2, -3, 4]], [[1, 2, 3, 10**400]],
    [[1, 2, 3, 1e30]], [[1, 2, 3, 4, "a"], [1, 2, 3, 4]], [[1, 2, 3, 4, float("nan")]], [[1, 2, 3, 4, "a" * 1000]],
    [[1, 2, 3, 4, ["a"]]], [None], ["1, 2, 3, 4"], [{"label": "a"}], [{"box": [1, 2, 3, 4], "label": 0.5}],
    [[1, 2, 3, 4, "a", "b"]], {}, [[[[[[[]]]]]]],
]  # fmt: skip


@for_each("value", HOSTILE, ids=lambda value: f"{value!s:.40}")
def test_what_are_no_boxes_is_refused(value: Any):
    with pytest.raises(UnreadableAnswer):
        boxes(value, PREDICTED)


def test_faulty_references_are_no_unreadable_answers():
    with pytest.raises(DataError) as caught:
        boxes([[1, 2, -3, 4]], REFERENCE)
    assert not isinstance(caught.value, UnreadableAnswer)


def test_long_answers_are_refused_fast():
    begin = time.monotonic()
    for read in (boxes, key_points, tube):
        with pytest.raises(UnreadableAnswer, match="1000000"):
            read([[0, 0, 1, 1]] * 1_000_000, PREDICTED)
    assert time.monotonic() - begin < 20


def test_tubes():
    found = tube([[1, 2, 3, 4], None, [0, 0, 0, 0], [0, 0, 5, 5]], PREDICTED)
    assert found.any(axis=1).tolist() == [True, False, False, True]
    assert found[0].tolist() == [1, 2, 3, 4]
    for value in ("x", [[1, 2, 3]], [[1, 2, 3, "a"]], {"0": [1, 2, 3, 4]}):
        with pytest.raises(UnreadableAnswer):
            tube(value, PREDICTED)


def test_key_points_flat_or_not():
    assert key_points([{"keypoints": [1, 2, 2, 3, 4, 0]}], PREDICTED)[0].tolist() == [[[1, 2, 2], [3, 4, 0]]]
    assert key_points([{"keypoints": [1, 2, 3, 4]}], PREDICTED)[0].tolist() == [[[1, 2, 1], [3, 4, 1]]]
    assert key_points([{"keypoints": [[1, 2]], "box": [0, 0, 4, 5]}], REFERENCE)[1].tolist() == [20]
    assert key_points([], PREDICTED)[0].shape == (0, 0, 3)


@for_each(
    "value",
    [[3], [{}], [{"keypoints": []}], [{"keypoints": [1]}], [{"keypoints": [["a", 1]]}], [{"keypoints": [[1]]}],
     [{"keypoints": [[1, 2]]}, {"keypoints": [[1, 2], [3, 4]]}], [{"keypoints": [[1, float("nan")]]}]],
    ids=str,
)  # fmt: skip
def test_what_are_no_key_points_is_refused(value: Any):
    with pytest.raises(UnreadableAnswer):
        key_points(value, PREDICTED)


def test_reference_key_points_need_an_area():
    with pytest.raises(DataError, match="area"):
        key_points([{"keypoints": [[1, 2]]}], REFERENCE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["box", "label", "score"]), inner),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused(value: Any):
    for read in (boxes, tube, key_points):
        with contextlib.suppress(UnreadableAnswer):
            read(value, PREDICTED)
