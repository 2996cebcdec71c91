from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Annotation
from lmms_eval.tasks.general_bench.nlp.types import TYPES, read_nlp_item, reference_of
from tests.cases import for_each
from tests.tasks.general_bench.nlp.kit import CODE, item_of, json_value

REFERENCES = {
    "MultipleChoiceQA": "B",
    "OpenQA": "it",
    "Summarization": "s",
    "Translation": "oui",
    "Story Generation": "Once",
    "Dialogue": "bye",
    "Code Generation": CODE,
    "Code Repair": CODE,
    "Code Defect Detection": "1",
    "Text to SQL": "SELECT 1",
    "Code Explanation": "sets x",
    "Proof": "one\ntwo\nConclusion: done",
    "Mathematical Word Problem Solving": "42",
    "Paraphrase Generation": "p",
    "Grammar Correction": "he goes",
    "Text Style Transfer": "good day",
    "Table-to-Text Generation": "a is 1",
    "Time Series": 3,
    "classification": "joy, fear",
    "multiple choice": "joy, fear",
    **dict.fromkeys(
        ("multi label classification", "ner", "extraction", "relation extraction", "event detection", "parsing"),
        "joy<p>fear",
    ),
}


def read(type_name, raw):
    annotation = Annotation(Path("nlp/folder"), Path("nlp/folder/annotation.json"), "task", type_name, {"x": 1}, ())
    return read_nlp_item(find_task("TriviaQA"), annotation, raw, Path("predictions"))


@for_each("type_name", TYPES)
def test_every_type_has_its_place(type_name):
    assert reference_of(type_name, item_of(type_name)) == REFERENCES[type_name]
    item = read(type_name, item_of(type_name))
    assert item.reference == REFERENCES[type_name]
    assert item.form == ("number" if type_name == "Time Series" else "text")
    assert (item.id, item.prompt, item.media, item.head) == (7, "", (), {"x": 1})
    assert (item.folder, item.prediction_folder) == (Path("nlp/folder"), Path("predictions"))
    assert item.raw == item_of(type_name)


@for_each("type_name", [*TYPES, "unheard of"])
def test_an_item_of_the_closed_set_has_no_reference(type_name):
    item = {"id": 1, "input": {}}
    assert read(type_name, item).reference is None
    assert reference_of(type_name, item) == ("None" if type_name == "Code Defect Detection" else None)


@for_each(
    ("output", "expected"),
    [
        ({"summary": "s", "highlights": "h"}, "s"),
        ({"summary": "", "highlights": "h"}, "h"),
        ({"highlights": "h"}, "h"),
        ({"summary": []}, None),
        ({"summary": "", "highlights": ""}, None),
    ],
)
def test_a_summary_is_taken_before_highlights(output, expected):
    assert reference_of("Summarization", {"output": output}) == expected


def test_translations_are_the_output_itself_or_below_it():
    assert reference_of("Translation", {"output": {"translation": "ja"}}) == "ja"
    assert reference_of("Translation", {"output": ""}) is None


def test_unknown_types_have_the_first_value():
    assert reference_of("", {"output": {"b": "x", "a": "y"}}) == "x"
    assert reference_of(None, {"output": "plain"}) == "plain"


def test_empty_references():
    assert reference_of("OpenQA", {"output": {"answer": ""}}) is None
    assert reference_of("Dialogue", {"output": {"reference": []}}) == []
    assert reference_of("ner", {"output": {"spans": ""}}) == ""


@for_each(("target", "text"), [(1, "1"), ("0", "0"), (True, "True"), (None, "None")])
def test_the_scorer_reads_targets_as_text(target, text):
    assert reference_of("Code Defect Detection", {"output": {"target": target}}) == text


def test_a_proof_may_lack_steps():
    assert reference_of("Proof", {"output": {"proof": {"conclusion": "done"}}}) == "Conclusion: done"
    assert reference_of("Proof", {"output": {"proof": {"steps": "one"}}}) == "one\nConclusion: "


@for_each(
    ("type_name", "output"),
    [
        ("OpenQA", "text"),
        ("Code Generation", {"response": "text"}),
        ("Proof", {"proof": {"steps": [1]}}),
        ("Proof", {"proof": "text"}),
        ("classification", {"label": 3}),
        ("Translation", ["a"]),
    ],
)
def test_outputs_of_another_shape_are_refused(type_name, output):
    with pytest.raises(DataError):
        reference_of(type_name, {"output": output})


@for_each(
    ("type_name", "output", "expected"),
    [
        ("classification", {"label": 3}, "3"),
        ("ner", {"spans": ["Rome", "Oslo, N"]}, "rome<p>oslo, n"),
        ("Code Defect Detection", {"target": True}, "1"),
        ("Code Defect Detection", {"target": False}, "0"),
        ("Mathematical Word Problem Solving", {"solution": {"final_answer": 42}}, "42"),
        ("MultipleChoiceQA", {"answer": ["A", "C"]}, ["A", "C"]),
        ("Time Series", {"target": "146.7"}, "146.7"),
    ],
)
def test_an_item_takes_values_for_what_they_mean(type_name, output, expected):
    assert read(type_name, {"id": 1, "output": output}).reference == expected


@for_each(
    ("type_name", "raw"),
    [
        ("OpenQA", "text"),
        ("OpenQA", {"output": {"answer": "x"}}),
        ("OpenQA", {"id": [1], "output": {"answer": "x"}}),
        ("OpenQA", {"id": 1, "output": {"answer": {"x": 1}}}),
        ("OpenQA", {"id": 1, "output": {"answer": ["x", None]}}),
        ("Time Series", {"id": 1, "output": {"target": "many"}}),
        ("Time Series", {"id": 1, "output": {"target": float("nan")}}),
        ("Time Series", {"id": 1, "output": {"target": True}}),
        ("ner", {"id": 1, "output": {"spans": [["a"]]}}),
    ],
)
def test_damaged_items_name_the_folder(type_name, raw):
    with pytest.raises(DataError, match="folder"):
        read(type_name, raw)


@given(st.sampled_from([*TYPES, ""]), st.dictionaries(st.sampled_from(["id", "output"]), json_value))
def test_no_entry_raises_anything_else(type_name, raw):
    for reader in (read, reference_of):
        with contextlib.suppress(DataError):
            reader(type_name, raw)
