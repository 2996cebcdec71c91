import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.mmie.data.records import ABSENT, Segment
from lmms_eval.tasks.mmie.submission import (
    OutputText,
    feedback_from_temporary,
    processed_record,
    read_record,
    read_records,
)
from lmms_eval.tasks.mmie.view import View, ViewedPicture
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ
from tests.tasks.mmie.kit import ASKED

RECORDS = [
    {"id": "SA-0", "model": "m", "question": "q", "answer": "a", "gt_answer": None, "images": []},
    {"id": "SA-0", "model": "m", "question": "q2", "answer": "a2", "gt_answer": None, "images": []},
    {"id": "SA-1", "model": "m", "question": "q", "answer": "a", "gt_answer": None, "images": []},
]
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["id", "question", "answer", "model", "gt_answer", "text", "image", "conversations", "from",
                             "content", "catagory"]),
            inner, max_size=6,
        ),
    ),
    max_leaves=20,
)  # fmt: skip  # fmt: skip


def told(*texts):
    return [
        dict(record) if text is None else {**record, "gpt_feedback": text}
        for record, text in zip(RECORDS, texts, strict=False)
    ]


def test_replies_up_to_the_first_gap():
    assert feedback_from_temporary(told("f", "", "g"), RECORDS)[0] == {0: "f", 1: "", 2: "g"}
    assert feedback_from_temporary(told("f", None, "g"), RECORDS)[0] == {0: "f"}


def test_another_content_under_the_same_id_is_not_taken():
    changed = [{**RECORDS[0], "answer": "edited"}, *RECORDS[1:]]
    assert feedback_from_temporary(told("f", "g", "h"), changed) == ({1: "g", 2: "h"}, 1)


def test_entries_beyond_the_data_and_other_content():
    assert feedback_from_temporary(told("f", "g", "h"), RECORDS[:1])[1] == 2
    for content in (None, 5, "x", {"a": 1}, [5], [{"gpt_feedback": 3}]):
        assert feedback_from_temporary(content, RECORDS) == ({}, 0)


def test_a_record_to_evaluate():
    record = read_record(ASKED)
    assert record.answer == (Segment("yes"),)
    assert record.question == (Segment("q", "a.png"),)
    assert record.reference_text == "r"
    assert (record.id, record.model, record.field, record.subfield) == ("SA-1", "m", ABSENT, ABSENT)


def test_nulls_are_empty():
    record = read_record({**ASKED, "answer": None, "question": None, "gt_answer": None})
    assert record.answer == record.question == ()
    assert record.reference_text is None


@for_each("key", list(ASKED))
def test_a_missing_key_is_named(key):
    with pytest.raises(DataError, match=key):
        read_record({name: value for name, value in ASKED.items() if name != key})


@for_each(
    ("change", "said"),
    [
        ({"question": [{"text": "q"}]}, "question, segment 0 lacks the key 'image'"),
        ({"answer": [{"image": None}]}, "answer, segment 0 lacks the key 'text'"),
        ({"gt_answer": []}, "gt_answer has no segment"),
        ({"answer": 5}, "not a int"),
        ({"answer": [5]}, "answer, segment 0"),
    ],
)
def test_what_is_refused(change, said):
    with pytest.raises(DataError, match=said):
        read_record({**ASKED, **change})


def test_bad_records_do_not_stop_the_others():
    placed, problems = read_records([ASKED, 7, {"id": "SA-2"}, {**ASKED, "id": "SA-3"}], "f.json")
    assert [(position, record.id) for position, record in placed.items()] == [(0, "SA-1"), (3, "SA-3")]
    assert [(problem.position, problem.id) for problem in problems] == [(1, None), (2, "SA-2")]


def test_the_top_level_must_be_a_list():
    with pytest.raises(DataError, match=r"f\.json: a JSON list"):
        read_records({"SA-1": ASKED}, "f.json")


@FUZZ
@given(json_values)
def test_any_json_is_read_or_refused_by_name(value):
    try:
        placed, problems = read_records(value, "f.json")
    except DataError:
        assert not isinstance(value, list)
    else:
        assert len(placed) + len(problems) == len(value)


def test_the_record_of_the_benchmarks_files():
    record = read_record({"id": 7, "question": "q", "answer": "a", "model": "m", "gt_answer": None})
    found = processed_record(record, View(("q\n",), ("a\n", ViewedPicture("p"))))
    assert found == {
        "id": 7,
        "model": "m",
        "question": "q\n",
        "answer": "a\n<image>",
        "gt_answer": None,
        "images": ["p"],
    }
    assert list(found) == ["id", "model", "question", "answer", "gt_answer", "images"]


def test_the_output_is_what_json_writes():
    records = [{"id": "é", "images": [], "x": {"y": [1, "a\nb"]}}, {"id": 2, "images": ["p"]}]
    text = OutputText(records)
    before = text.snapshot()
    text.judged(1, "fine\n")
    assert before() == json.dumps(records, indent=4).encode()
    records[1]["gpt_feedback"] = "fine\n"
    assert text.snapshot()() == json.dumps(records, indent=4).encode()
    assert OutputText([]).snapshot()() == b"[]"
