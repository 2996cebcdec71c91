from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import TaskError, UsageError
from lmms_eval.tasks.yaml.choices import ChoiceColumns, changed_row
from tests.cases import for_each

LIST = {"options": "options", "answer": "answer"}


def columns(**stated: Any) -> ChoiceColumns:
    return ChoiceColumns.of({**LIST, **stated}, "probe.yaml")


@settings(max_examples=40)
@given(st.lists(st.text(max_size=8), min_size=2, max_size=8, unique=True), st.data(), st.integers(0, 30))
@pytest.mark.parametrize("form", ["letter", "number", "text"])
def test_the_right_option_is_the_same_in_every_rotation(
    form: str, options: list[str], data: st.DataObject, by: int
) -> None:
    place = data.draw(st.integers(0, len(options) - 1))
    answer: Any = {"letter": "ABCDEFGH"[place], "number": place, "text": options[place]}[form]
    found = columns(form=form)
    row = {"options": options, "answer": answer, "other": 1}
    turned = found.rotated(row, by)
    right = found.right(turned, turned["options"])
    assert right is not None
    assert turned["options"][right].endswith(options[place]) or turned["options"][right] == options[place]
    assert found.rotations(row) == len(options)
    assert found.rotated(row, len(options)) == row
    assert turned["other"] == 1


def test_labels_stay_in_their_places() -> None:
    row = {"options": ["A. red", "B. green", "C. blue"], "answer": "C"}
    assert columns().rotated(row, 1) == {"options": ["A. green", "B. blue", "C. red"], "answer": "B"}


@for_each(
    ("held", "turned"),
    [
        ("['it\\'s', 'two']", '["two", "it\'s"]'),
        (json.dumps(["é", 'a "b"']), json.dumps(['a "b"', "é"], ensure_ascii=False)),
    ],
)
def test_a_list_as_text_keeps_its_form(held: str, turned: str) -> None:
    made = columns().rotated({"options": held, "answer": "(a)"}, 1)
    assert (made["options"].replace("'two'", '"two"'), made["answer"]) == (turned, "(b)")


def test_columns_of_single_options_without_the_absent_ones() -> None:
    found = ChoiceColumns.of({"options": ["A", "B", "C", "D"], "answer": "answer", "question": ["q", "hint"]}, "x")
    row = {"A": "one", "B": "two", "C": "nan", "D": None, "answer": "A", "q": "?", "hint": "h"}
    assert found.rotations(row) == 2
    assert found.rotated(row, 1) == {**row, "A": "two", "B": "one", "answer": "B"}
    assert changed_row(found, "no-question", row) == {**row, "q": "", "hint": ""}


@for_each("answer", ["?", "E", "", None, "AB", 7])
def test_a_document_without_an_answer_among_its_options_has_one_order(answer: Any) -> None:
    row = {"options": ["one", "two"], "answer": answer}
    assert columns().rotations(row) == 1
    assert columns().rotated(row, 1) == row


@for_each("options", [[], None, "no list", ["one"], 3])
def test_what_is_no_list_of_options_has_one_order(options: Any) -> None:
    assert columns().rotations({"options": options, "answer": "A"}) == 1


@for_each(
    ("stated", "said"),
    [
        ({"options": "o"}, "options and answer name columns"),
        ({**LIST, "answers": "a"}, "unknown key 'answers'"),
        ({**LIST, "form": "roman"}, "form 'roman': give letter, number, text"),
    ],
)
def test_a_wrong_key_is_named(stated: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError, match=said):
        ChoiceColumns.of(stated, "probe.yaml")


def test_an_unknown_change_is_refused() -> None:
    with pytest.raises(UsageError, match="no change of documents 'rotation-x'"):
        changed_row(columns(), "rotation-x", {})
