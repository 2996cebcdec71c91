"""Boxes and points are found where the metric says that they are such, and nowhere else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.viewer.masks import shapes_of


def mega(rules: dict[str, str], right: dict[str, str], response: str) -> dict[str, Any]:
    submission = {"correct_answer": right, "response": response}
    return {"doc": {"metric_info": repr({"field_score_function": rules})}, "submission": submission}


def test_boxes_of_one_field() -> None:
    line = mega(
        {"box": "nbbox_iou_single"}, {"box": "(0.1, 0.2, 0.5, 0.6)"}, "It is here.\nAnswer: [0.1, 0.2, 0.4, 0.6]"
    )
    assert shapes_of(line, None, None) == [
        {"of": "reference", "at": [0.1, 0.2, 0.5, 0.6], "label": ""},
        {"of": "answer", "at": [0.1, 0.2, 0.4, 0.6], "label": ""},
    ]


def test_fields_that_are_no_boxes_are_left_alone() -> None:
    rules = {"count": "exact_str_match", "boxes": "nbbox_iou_tuple"}
    line = mega(
        rules, {"count": "(0.5, 0.5)", "boxes": "[(0, 0, 1, 1)]"}, '{"count": "2", "boxes": "[(0.1, 0.1, 0.3, 0.4)]"}'
    )
    assert [shape["at"] for shape in shapes_of(line, None, None)] == [[0, 0, 1, 1], [0.1, 0.1, 0.3, 0.4]]
    assert shapes_of(mega({"count": "exact_str_match"}, {"count": "(0.1, 0.1)"}, "(0.1, 0.1)"), 10, 10) == []


def test_points_lie_in_boxes() -> None:
    line = mega({"point": "xml_norm_point_in_bbox"}, {"point": "(0.9, 0.9)"}, "<point>0.2, 0.3</point>")
    line["submission"]["eval_context"] = {"bounding_boxes": ["(0.1, 0.1, 0.3, 0.4)"]}
    assert [shape["at"] for shape in shapes_of(line, None, None)] == [[0.1, 0.1, 0.3, 0.4], [0.2, 0.3]]


def test_boxes_in_pixels() -> None:
    line = {
        "ap": {"measure": "detection_ap@50", "form": "boxes"},
        "target": "[[6, 8, 14, 12, 'shape']]",
        "filtered_resps": '[[0, 0, 32, 24, "shape"], ["x"], [1, 2, null, 4]]',
    }
    first, second = shapes_of(line, 64, 48)
    assert (first["at"], first["label"]) == ([6 / 64, 8 / 48, 20 / 64, 20 / 48], "shape")
    assert (second["of"], second["at"]) == ("answer", [0, 0, 0.5, 0.5])
    assert shapes_of(line, None, None) == []


@given(st.text(), st.text())
def test_any_text_is_read(right: str, response: str) -> None:
    for shape in shapes_of(mega({"box": "nbbox_iou_single"}, {"box": right}, response), 10, 10):
        assert all(0 <= number <= 1 for number in shape["at"])
