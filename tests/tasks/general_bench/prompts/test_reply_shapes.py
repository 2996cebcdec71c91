from lmms_eval.tasks.general_bench.prompts.replies import boxes, entries, instances, polygons, rows, triplets
from tests.cases import for_each


@for_each(
    ("value", "found"),
    [
        ([[1, 2, 3, 4]], [[1, 2, 3, 4]]),
        ([[1, 2, 3, 4, "cat", 0.5]], [[1, 2, 3, 4, "cat", 0.5]]),
        ([1, 2, 3, 4, "cat"], [[1, 2, 3, 4, "cat"]]),
        ([], []),
        ([{"bbox": [1, 2, 3, 4], "label": "cat"}], [[1, 2, 3, 4, "cat"]]),
        ({"bbox_2d": [10, 20, 30, 50], "label": "cat", "score": 0.5}, [[10, 20, 20, 30, "cat", 0.5]]),
        ({"objects": [{"box": [1, 2, 3, 4]}]}, [[1, 2, 3, 4]]),
        ([{"bbox": [1, 2, 3, 4], "label": 7}], [[1, 2, 3, 4, "7"]]),
        ([{"bbox": [1, 2, 3, 4], "label": True}], [[1, 2, 3, 4]]),
        ([[0.1, 0.2, 0.3, 0.4]], [[0.1, 0.2, 0.3, 0.4]]),
        ([[1, 2, 3]], None),
        ([[1, 2, 3, "4"]], None),
        ([[1, 2, 3, True]], None),
        ([[1, 2, 3, 4, None]], None),
        ([[1, 2, 3, 1e300]], None),
        ([{"bbox_2d": [1, 2, 3]}], None),
        ([{"label": "cat"}], None),
        ([[1, 2, 3, 4], "more"], None),
        ("text", None),
        ({"a": 1}, None),
    ],
)
def test_boxes(value, found):
    assert boxes(value) == found


@for_each(
    ("value", "found"),
    [
        ([[1, 2, 3, 4, 5, 6]], [[1, 2, 3, 4, 5, 6]]),
        ([1, 2, 3, 4, 5, 6], [[1, 2, 3, 4, 5, 6]]),
        ([[1, 2], [3, 4], [5, 6]], [[1, 2, 3, 4, 5, 6]]),
        ([[[1, 2], [3, 4], [5, 6]], [1, 1, 2, 2, 3, 3]], [[1, 2, 3, 4, 5, 6], [1, 1, 2, 2, 3, 3]]),
        ({"polygon": [1, 2, 3, 4, 5, 6]}, [[1, 2, 3, 4, 5, 6]]),
        ({"size": [2, 2], "counts": "04"}, {"size": [2, 2], "counts": "04"}),
        ([], []),
        ([[1, 2, 3, 4]], None),
        ([[1, 2, 3, 4, 5, 6, 7]], None),
        ([["a"] * 6], None),
        ({"mask": None}, None),
        ("text", None),
    ],
)
def test_polygons(value, found):
    assert polygons(value) == found


@for_each(
    ("value", "found"),
    [
        (
            [{"mask": [[1, 2], [3, 4], [5, 6]], "category": "cat", "confidence": 1}],
            [{"mask": [[1, 2, 3, 4, 5, 6]], "label": "cat", "score": 1}],
        ),
        ([{"mask": "a.png", "label": "cat"}], None),
        ([{"indices": "a.npy", "label": "cat"}], None),
        ([{"box": [1, 2, 3, 4], "label": 7}], [{"box": [1, 2, 3, 4], "label": "7"}]),
        ([{"bbox_2d": [1, 2, 3, 4], "label": "cat"}], [{"box": [1, 2, 2, 2], "label": "cat"}]),
        ([{"keypoints": [[1, 2]], "score": 0.5, "bbox": [0, 0, 1, 1]}], [{"keypoints": [[1, 2]], "score": 0.5}]),
        ([{"indices": [3, 4], "label": "chair"}], [{"indices": [3, 4], "label": "chair"}]),
        ({"instances": []}, []),
        ([{"mask": [1, 2]}], None),
        ([{"label": "cat"}], None),
        ([[1, 2, 3, 4]], None),
    ],
)
def test_instances(value, found):
    assert instances(value) == found


@for_each(
    ("value", "found"),
    [
        (
            [["a", "on", "b"], ["c", "in", "d"], ["e", "by", "f"]],
            [["a", "on", "b"], ["c", "in", "d"], ["e", "by", "f"]],
        ),
        (["a", "on", "b"], [["a", "on", "b"]]),
        ([{"subject": "a", "relation": "on", "object": "b"}], [["a", "on", "b"]]),
        ({"triplets": [["a", "on", "b"]]}, [["a", "on", "b"]]),
        ([["a", "on"]], None),
        ([["a", "on", 3]], None),
        ([{"subject": "a", "object": "b"}], None),
    ],
)
def test_triplets(value, found):
    assert triplets(value) == found


@for_each(
    ("value", "is_answer"),
    [
        ([[1, 2, 3], [4, 5, 6.5]], True),
        ([[[1, 0, 0, 2], [0, 1, 0, 2], [0, 0, 1, 2]]], True),
        (["/data/truth.npy"], False),
        ([["a", 2, 3]], False),
        ([[None, 2, 3]], False),
        ({"points": []}, False),
        (3, False),
    ],
)
def test_rows(value, is_answer):
    assert rows(value) == (value if is_answer else None)


def test_entries_are_no_texts():
    assert entries([{"box": [1] * 7}, [[1]]]) == [{"box": [1] * 7}, [[1]]]
    assert entries(["/data/truth.json"]) is None
    assert entries("x") is None
