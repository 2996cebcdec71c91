import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.mmie.data.records import ABSENT, Segment, read_question, read_record, read_records, read_segments
from tests.tasks.megabench.fuzzing import FUZZ

ASKED = {
    "id": "SA-1",
    "question": [{"text": "q", "image": "a.png"}],
    "answer": "yes",
    "model": "m",
    "gt_answer": [{"text": "r", "image": None}, {"text": "s", "image": None}],
}
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
)  # fmt: skip


def test_a_record_to_evaluate():
    record = read_record(ASKED)
    assert record.answer == (Segment("yes"),)
    assert record.source.question == (Segment("q", "a.png"),)
    assert record.source.reference_text == "r"
    assert (record.id, record.model, record.source.field, record.source.subfield) == ("SA-1", "m", ABSENT, ABSENT)


def test_a_record_of_the_data_set_takes_the_last_turn_of_each_role_and_missing_keys():
    question = read_question(RAW)
    assert question.question == (Segment("how?", "x.png"), Segment(None))
    assert question.reference_text == "so"
    assert (question.category, question.field) == ("Project-based learning", "Art")
    assert read_record({**RAW, "answer": [], "model": "m"}).answer == ()


@pytest.mark.parametrize(("key", "value"), [("category", "c"), ("catagory", "c")])
def test_both_spellings(key, value):
    assert read_question({**ASKED, key: value}).category == value


@pytest.mark.parametrize("key", ["subfield", "sub_field", "subcategory"])
def test_names_of_the_subfield(key):
    assert read_question({**ASKED, key: "Algebra", "field": ""}).subfield == "Algebra"
    assert read_question({**ASKED, "subfield": "first", key: "Algebra"}).subfield in ("first", "Algebra")


def test_nulls_are_empty():
    record = read_record({**ASKED, "answer": None, "question": None, "gt_answer": None})
    assert record.answer == record.source.question == ()
    assert record.source.reference_text is None
    assert read_segments([None, "t", {"text": 5, "image": None}], "x") == (Segment(None), Segment("t"), Segment("5"))


@pytest.mark.parametrize("key", list(ASKED))
def test_a_missing_key_is_named(key):
    with pytest.raises(DataError, match=key):
        read_record({name: value for name, value in ASKED.items() if name != key})


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("turns", [None, "x", [5], [{"from": "human", "content": []}]])
def test_conversations_that_say_nothing(turns):
    with pytest.raises(DataError, match="conversations"):
        read_question({"id": "SA-1", "conversations": turns})


def test_bad_records_do_not_stop_the_others():
    placed, problems = read_records([ASKED, 7, {"id": "SA-2"}, {**ASKED, "id": "SA-3"}], "f.json")
    assert [(place.position, place.record.id) for place in placed] == [(0, "SA-1"), (3, "SA-3")]
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
