import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.mmie.data.records import Segment, read_question, read_segments
from tests.cases import for_each
from tests.tasks.mmie.kit import ASKED

RAW = {
    "id": "PBL-1",
    "catagory": "Project-based learning",
    "field": "Art",
    "conversations": [
        {"from": "human", "content": [{"text": "old"}]},
        {"from": "human", "content": [{"text": "how?", "image": "x.png"}, {"text": None}]},
        {"from": "gpt", "content": [{"text": "so"}]},
    ],
}


def test_a_record_of_the_data_set_takes_the_last_turn_of_each_role_and_missing_keys():
    question = read_question(RAW)
    assert question.question == (Segment("how?", "x.png"), Segment(None))
    assert question.reference_text == "so"
    assert (question.category, question.field) == ("Project-based learning", "Art")


@for_each(("key", "value"), [("category", "c"), ("catagory", "c")])
def test_both_spellings(key, value):
    assert read_question({**ASKED, key: value}).category == value


@for_each("key", ["subfield", "sub_field", "subcategory"])
def test_names_of_the_subfield(key):
    assert read_question({**ASKED, key: "Algebra", "field": ""}).subfield == "Algebra"
    assert read_question({**ASKED, "subfield": "first", key: "Algebra"}).subfield in ("first", "Algebra")


@for_each("turns", [None, "x", [5], [{"from": "human", "content": []}]])
def test_conversations_that_say_nothing(turns):
    with pytest.raises(DataError, match="conversations"):
        read_question({"id": "SA-1", "conversations": turns})


def test_segments_of_every_shape():
    assert read_segments(None, "x") == ()
    assert read_segments([None, "t", {"text": 5, "image": None}], "x") == (Segment(None), Segment("t"), Segment("5"))
