from __future__ import annotations

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.nlp.types import NlpFields, as_text
from tests.cases import for_each

FIELDS = NlpFields(
    "Some Task", {"id": "q1", "input": {"question": "q?", "options": ["x", 2], "none": None}, "text": "t"}
)


def test_values_by_path():
    assert FIELDS.text("input", "question") == "q?"
    assert FIELDS.options() == ["x", "2"]
    assert FIELDS.get("input", "none") is None
    assert FIELDS.get("text", "deeper") is None
    assert FIELDS.get("absent", "deeper") is None


@for_each("path", [("input", "none"), ("input", "absent"), ("absent",), ("text", "deeper")])
def test_an_absent_value_is_named_with_task_and_item(path):
    with pytest.raises(DataError, match=rf"'Some Task', item 'q1': no {'.'.join(path)}"):
        FIELDS.value(*path)


def test_what_is_no_list_is_refused():
    with pytest.raises(DataError, match="text is 't', no list"):
        FIELDS.entries("text")


@for_each("options", [[], ["x"] * 27])
def test_options_need_letters(options):
    with pytest.raises(DataError, match=r"input\.options has"):
        NlpFields("t", {"input": {"options": options}}).options()


def test_values_that_are_no_text_become_json():
    assert as_text("é") == "é"
    assert as_text({"é": [1, None]}) == '{"é": [1, null]}'
