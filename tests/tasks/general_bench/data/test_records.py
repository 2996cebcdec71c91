from __future__ import annotations

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.records import Record, box_of, checked_path, is_number
from tests.cases import for_each


def test_wrong_kinds_name_item_and_key() -> None:
    record = Record({"n": "3", "list": [1], "null": None, "empty": [], "o": {}}, "item 7")
    for call, message in (
        (lambda: record.text("none"), "item 7: `none` is missing; a text is expected"),
        (lambda: record.text("null"), "item 7: `null` is missing; a text"),
        (lambda: record.count("n", 9), "item 7: `n` is '3'; a whole number up to 9"),
        (lambda: record.record("list"), r"item 7: `list` is \[1\]; an object"),
        (lambda: record.record("o").text("x"), "item 7: `o`: `x` is missing"),
        (lambda: record.texts("list"), "a list of texts"),
        (lambda: record.texts("empty"), "a list of texts"),
        (lambda: record.answer("o"), "a text, a number or a list of them"),
        (lambda: record.answer("empty"), "a text, a number or a list of them"),
        (lambda: Record.of([1], "item 7"), r"item 7 is \[1\]; an object is expected"),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_values() -> None:
    record = Record({"t": "x", "n": 3, "l": ["a", 2, 1.5], "b": True, "null": None}, "item")
    assert (record.text("t"), record.optional_text("null"), record.texts("t")) == ("x", "", ["x"])
    assert (record.answer("t"), record.answer("n"), record.answer("l")) == ("x", "3", ["a", "2", "1.5"])
    assert record.count("n", 3) == 3 and not record.has("null") and record.has("b")


@for_each("value", [True, -1, 10, 1.0, None])
def test_counts_out_of_range(value: object) -> None:
    with pytest.raises(DataError, match="whole number up to 9"):
        Record({"n": value}, "item").count("n", 9)


@for_each("value", ["/etc/passwd", "a/../../b", "", " ", "a\0b", None, 3, ["a"]])
def test_paths_that_are_none(value: object) -> None:
    with pytest.raises(DataError, match="item"):
        checked_path(value, "item")


def test_boxes() -> None:
    assert box_of([1, 2.5, 3, 0], "b") == [1, 2.5, 3, 0]
    assert box_of([0, 0, 0, 0.0], "b") is None and box_of(None, "b") is None
    for wrong in ([1, 2, 3], ["1", 2, 3, 4], [1, 2, 3, True], {"x": 1}, "1,2,3,4", [1, 2, 3, float("nan")]):
        with pytest.raises(DataError, match=r"b is .*; .x, y, w, h. is expected"):
            box_of(wrong, "b")
    assert not is_number(10**400) and not is_number(True) and not is_number("1")
