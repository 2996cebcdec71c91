import math
from typing import Any

import pytest

from lmms_eval.tasks.megabench.conversions.literals import ConversionError, LiteralError
from lmms_eval.tasks.megabench.metrics import dicts
from tests.cases import for_each

UNIT = "(0, 0, 1, 1)"


@for_each(
    ("response", "score"),
    [
        (UNIT, 1),
        ("[(0, 0, 1, 1), (2, 2, 3, 3)]", 0.5),
        ([[0, 0, 1, 2]], 0.5),
        ([[0, 0, 1, 1, 9]], 1),
        ([0, 0, 1, 1], 0),
        ([["0", "0", "1", "1"]], 0),
        ("", 0),
        (None, 0),
    ],
)
def test_mean_over_predicted_boxes(response: Any, score: float) -> None:
    assert dicts.nbbox_iou_tuple(response, "[(0, 0, 1, 1), (5, 5, 6, 6)]") == pytest.approx(score)


def test_a_number_is_no_list_of_boxes() -> None:
    with pytest.raises(ConversionError):
        dicts.nbbox_iou_tuple("5", UNIT)


def test_one_box() -> None:
    assert dicts.nbbox_iou_single("[0, 0, 1, 2]", UNIT) == 0.5
    assert dicts.nbbox_iou_single("[(0, 0, 1, 1)]", UNIT) == 0
    assert dicts.nbbox_iou_single("nothing", UNIT) == 0
    assert dicts.nbbox_iou_single("(0, 0, 1)", UNIT) == 0
    with pytest.raises(TypeError):
        dicts.nbbox_iou_single([0, 0, 1, 1], UNIT)
    with pytest.raises(ConversionError):
        dicts.nbbox_iou_single(UNIT, "")


def test_one_box_may_have_more_than_four_numbers() -> None:
    assert dicts.nbbox_iou_single("(0, 0, 1, 2, 9)", "(0, 0, 1, 1, 7, 'x')") == 0.5


@for_each("truth", [[0, 0, 1, 1], (0, 0, 1, 1), [(0, 0, 1, 1)], []])
def test_the_one_true_box_is_a_text(truth: Any) -> None:
    with pytest.raises(LiteralError):  # which scores 0
        dicts.nbbox_iou_single(UNIT, truth)
    assert dicts.nbbox_iou_single(UNIT, str(truth)) == (1 if str(truth)[1:2] == "0" else 0)


def test_pairs_of_boxes() -> None:
    assert dicts.nbbox_iou_sequence("[(0, 0, 1, 1), (0, 0, 1, 1)]", "[(0, 0, 1, 1), (2, 2, 3, 3)]") == 0.5
    assert dicts.nbbox_iou_sequence(UNIT, "[]") == 0
    assert math.isnan(dicts.nbbox_iou_sequence("", []))


def test_tagged_boxes() -> None:
    truth = "<box>0, 0, 1, 1</box>"
    assert dicts.xml_nbbox_iou_single("<box>0,0,1,1</box><box>3,3,4,4</box>", truth) == 0.5
    assert dicts.xml_nbbox_iou_single([0, 0, 1, 1], truth) == 1
    assert dicts.xml_nbbox_iou_single(truth, [[0, 0, 1, 1]]) == 1
    assert dicts.xml_nbbox_iou_single(truth, [0, 0, 1, 1]) == 0
    assert dicts.xml_nbbox_iou_single(truth, [[0, 0, 1, 1], "?"]) == 0
    assert dicts.xml_nbbox_iou_single("<box>\x1c0, 0\x1d,1,\u30001</box>", truth) == 1  # what Python's strip removes
    assert dicts.xml_nbbox_iou_single("none", truth) == 0
