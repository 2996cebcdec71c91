import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.megabench.conversions.geometry import (
    best_ious,
    iou,
    parse_boxes_xml,
    parse_point_xml,
    str_to_bboxes,
    str_to_coords,
)
from lmms_eval.tasks.megabench.conversions.literals import ConversionError
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text


@for_each(
    ("text", "expected"),
    [
        ("(0, 0, 1, 1)", [(0, 0, 1, 1)]),
        ("[(0, 0, 1, 1), (0, 0, 1), ('a', 0, 1, 1)]", [(0, 0, 1, 1)]),
        ("[[0, 0, 1, 1], null]", [[0, 0, 1, 1]]),
        ("no boxes", []),
        ([0, 0, 1, 1], []),
    ],
)
def test_boxes_in_texts(text: Any, expected: list[Any]) -> None:
    assert str_to_bboxes(text) == expected


@for_each("text", ["5", "None", "{0, 1, 2, 3}", "{1: 1, 2: 2, 3: 3, 4: 4}"])
def test_literals_that_hold_no_boxes_are_refused(text: str) -> None:
    with pytest.raises(ConversionError):
        str_to_bboxes(text)


def test_points_in_texts() -> None:
    assert str_to_coords("[(0, 1), [2, 3], (4,), 5]") == [(0, 1), [2, 3]]
    assert str_to_coords("(0, 1)") == []
    assert str_to_coords("[[0, 1], ") == []
    assert str_to_coords("{(0, 1), (0.5, 2)}") == list({(0, 1), (0.5, 2)})
    assert str_to_coords("{(0, 1): 'a', 'b': (2, 3)}") == [(0, 1)]
    assert str_to_coords("'ab'") == []


@for_each("text", ["[null]", "5", "0.5", "None", "..."])
def test_literals_that_hold_no_points_are_refused(text: str) -> None:
    with pytest.raises(ConversionError):
        str_to_coords(text)


@for_each(
    ("text", "expected"),
    [
        ("tap <point>0.1, 0.2</point>", (0.1, 0.2)),
        ("<point>0,0</point><point>1,1</point>", None),
        ("<point>0,0,0</point>", None),
        ("<Point>0,0</Point>", None),
        ("<point>0,\n0</point>", None),
        (None, None),
    ],
)
def test_tagged_points(text: Any, expected: Any) -> None:
    assert parse_point_xml(text) == expected


def test_tagged_boxes() -> None:
    assert parse_boxes_xml("<box>0,0,1,1</box> <box>x</box>\n<box>1, 1, 2, 2</box>") == [(0, 0, 1, 1), (1, 1, 2, 2)]
    assert parse_boxes_xml("<box><box>0,0,1,1</box>") == []


def test_iou() -> None:
    assert iou((0, 0, 2, 1), (1, 0, 3, 1)) == pytest.approx(1 / 3)
    assert iou((0, 0, 1, 1), (2, 2, 3, 3)) == 0
    assert iou((1, 1, 1, 1), (1, 1, 1, 1)) == 0
    assert best_ious([(0, 0, 1, 1)], []) == [0]


corner = st.tuples(*[st.integers(0, 20)] * 4).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]) + 1, max(c[1], c[3]) + 1)
)


@FUZZ
@given(corner, corner)
def test_iou_is_symmetric_and_bounded(first: Any, second: Any) -> None:
    assert iou(first, second) == iou(second, first)
    assert 0 <= iou(first, second) <= 1
    assert iou(first, first) == 1


@FUZZ
@given(reply_text)
def test_tag_parsers_never_raise(text: str) -> None:
    parse_point_xml(text)
    parse_boxes_xml(text)
    with contextlib.suppress(ConversionError):
        assert {len(box) for box in str_to_bboxes(text)} <= {4}
        assert {len(point) for point in str_to_coords(text)} <= {2}


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit():
        test_tag_parsers_never_raise.hypothesis.inner_test(NASTY[name])  # type: ignore[attr-defined]
