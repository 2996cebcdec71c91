import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.readers import points
from lmms_eval.tasks.general_bench.readers.points import Box3D, Tracked, read_boxes3d, read_tracks
from tests.cases import for_each

SEVEN = [1, 2, 3, 4, 5, 6, 0.5]


def test_boxes_as_objects_and_as_flat_lists():
    full = Box3D(1, 2, 3, 4, 5, 6, 0.5, "car", 0.25)
    assert read_boxes3d([{"box": SEVEN, "label": " car ", "score": 0.25}, [*SEVEN, "car", 0.25]]) == (full, full)
    assert read_boxes3d([SEVEN, SEVEN[:6], [*SEVEN, 0.25], [*SEVEN[:6], "car"]]) == (
        Box3D(1, 2, 3, 4, 5, 6, 0.5),
        Box3D(1, 2, 3, 4, 5, 6),
        Box3D(1, 2, 3, 4, 5, 6, 0.5, "", 0.25),
        Box3D(1, 2, 3, 4, 5, 6, 0.0, "car"),
    )


def test_boxes_may_be_small_and_turned_the_other_way():
    assert read_boxes3d([[1, 2, 3, 0.1, 0.2, 0.3, -0.5]]) == (Box3D(1, 2, 3, 0.1, 0.2, 0.3, -0.5),)


@for_each(
    "value",
    [None, {}, "x", [None], [[]], [[1, 2, 3]], [{}], [{"box": "x"}], [{"box": [1] * 8}], [[1, 2, 3, 0, 1, 1]],
     [[1, 2, 3, -4, 5, 6, 0]], [[float("nan"), *SEVEN[1:]]], [[10**400, *SEVEN[1:]]], [["x", *SEVEN[1:]]],
     [{"box": SEVEN, "label": 3}], [{"box": SEVEN, "score": "x"}], [{"box": SEVEN, "score": None}],
     [[True, *SEVEN[1:]]], [[*SEVEN, "a", 1, 2]], [{"box": SEVEN, "label": "x" * 201}]],
)  # fmt: skip
def test_what_are_no_boxes_is_refused(value):
    with pytest.raises(DataError):
        read_boxes3d(value)


def test_tracks_with_numbers_and_texts_as_ids():
    frames = [[{"id": 1, "label": "car", "center": [1, 2, 3], "score": 0.5}, {"id": "1", "center": [4, 5]}], []]
    assert read_tracks(frames) == ((Tracked("i1", "car", 1, 2, 0.5), Tracked("s1", "", 4, 5)), ())


@for_each(
    "value",
    [None, {}, [None], [[3]], [[{"id": 1}]], [[{"center": [1, 2, 3]}]], [[{"id": [1], "center": [1, 2, 3]}]],
     [[{"id": 1, "center": [1]}]], [[{"id": 1, "center": [1, float("inf"), 0]}]], [[{"id": True, "center": [1, 2]}]],
     [[{"id": 1, "center": [1, 2]}, {"id": 1, "center": [3, 4]}]], [[{"id": 1, "center": [1, 2], "score": None}]]],
)  # fmt: skip
def test_what_are_no_tracks_is_refused(value):
    with pytest.raises(DataError):
        read_tracks(value)


def test_numbers_of_boxes_frames_and_objects_are_bounded(monkeypatch):
    with pytest.raises(DataError, match="at most 10000"):
        read_boxes3d([SEVEN] * 10_001)
    with pytest.raises(DataError, match="at most 10000 frames"):
        read_tracks([[]] * 10_001)
    assert len(read_tracks([[{"id": number, "center": [0, 0]} for number in range(500)]])[0]) == 500
    with pytest.raises(DataError, match="more than 500"):
        read_tracks([[{}] * 501])
    monkeypatch.setattr(points, "MAX_TRACKED", 3)
    with pytest.raises(DataError, match="3 in all"):
        read_tracks([[{}] * 2] * 2)
