from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.nlp.types import TYPES
from lmms_eval.tasks.general_bench.prompts.nlp import extract, extract_fixed, nlp_prompt, time_series_values
from tests.cases import for_each
from tests.tasks.general_bench.nlp.kit import item_of
from tests.tasks.megabench.fuzzing import reply_text


def official(type_name, reply):
    return extract("t", type_name, item_of(type_name), reply)


def cut(type_name, reply):
    return official(type_name, reply)["prediction"]


def fixed(type_name, reply):
    return extract_fixed("t", type_name, item_of(type_name), reply)["prediction"]


@for_each(
    ("reply", "letter"),
    [
        ("The answer is \\boxed{C}", "C"),
        ("the answer is (d)", "A"),
        ("Answer A or B", "A"),
        ("Answer: C", "A"),
        ("answer: B\nANSWER: C", "C"),
        ("answer C", "C"),
        ("answer: maybe BA", "A"),
        ("the answer is B. Next ANSWER unclear", "A"),
        ("C", "A"),
        ("", "A"),
    ],
)
def test_official_choices(reply, letter):
    assert cut("MultipleChoiceQA", reply) == letter


def test_official_choices_stand_inside_words_too():
    item = {"input": {"options": ["w", "x", "y", "z"]}}
    assert extract("t", "MultipleChoiceQA", item, "answer: Definitely") == {"prediction": "D"}
    assert extract_fixed("t", "MultipleChoiceQA", item, "answer: Definitely") == {"prediction": ""}
    assert extract("t", "MultipleChoiceQA", {"input": {"options": ["x"]}}, "answer: D") == {"prediction": "A"}


@for_each(
    ("reply", "letter"),
    [
        ("The answer is \\boxed{C}", "C"),
        ("\\boxed{A} at first. The answer is \\boxed{\\text{B}}", "B"),
        ("so \\boxed{(c) because}", "C"),
        ("The answer is B. \\boxed{12}", "B"),
        ("the answer is (c)", "C"),
        ("The Answer: **B**", "B"),
        ("ANSWER: c", "C"),
        ("answer B. On second thought the answer is C, not B.", "C"),
        ("The answer is A because it rains", "A"),
        ("B", "B"),
        ("b.", "B"),
        ("(C) the third", "C"),
        ("B: x\nfor a reason", "B"),
        ("B\nfor a reason", "B"),
        ("I would take option C.", "C"),
        ("C is the right answer.", "C"),
        ("A cat sat on option B.", "B"),
        ("Both B and C fit.", ""),
        ("A cat sat there.", ""),
        ("answer: Definitely", ""),
        ("The answer is D", ""),
        ("It's not clear.", ""),
        ("", ""),
    ],
)
def test_fixed_choices(reply, letter):
    assert fixed("MultipleChoiceQA", reply) == letter


def test_the_form_that_the_prompt_asks_for_is_read_by_both():
    closing = nlp_prompt("t", "MultipleChoiceQA", item_of("MultipleChoiceQA")).splitlines()[-1]
    for letter in "ABC":
        reply = f"Some thoughts on A, B and C.\n{closing.replace('X', letter)}"
        assert (cut("MultipleChoiceQA", reply), fixed("MultipleChoiceQA", reply)) == (letter, letter)


@for_each(
    ("reply", "letter", "better"),
    [
        ("b", "b", "b"),
        ("B", "b", "b"),
        (" d ", " d ", "d"),
        ("The Answer is C", "a", "c"),
        ("(D)", "d", "d"),
        ("none of them", "none of them", ""),
        ("", "", ""),
    ],
)
def test_letters(reply, letter, better):
    assert cut("multiple choice", reply) == letter
    assert fixed("multiple choice", reply) == better


@for_each(
    ("type_name", "reply", "prediction"),
    [
        ("OpenQA", " x \n", "x"),
        ("Translation", "Translation: a Translation: b ", "b"),
        ("Translation", " a ", "a"),
        ("Story Generation", " Once ", " Once "),
        ("Story Generation", "Story: a\nStory: b ", "b"),
        ("Code Generation", "Code: a Code: b ", "a Code: b"),
        ("Code Repair", "Refined Code:\nx\n", "x"),
        ("Text to SQL", "```sql\nSQL: SELECT 1\n```", "SELECT 1\n```"),
        ("Code Defect Detection", "There is NO DEFECT.", "0"),
        ("Code Defect Detection", "Defect", "1"),
        ("Code Defect Detection", "", "1"),
        ("classification", " Joy\n", " joy\n"),
        ("ner", "Rome, Oslo,Bonn\nKiel", "rome<p>oslo,bonn\nkiel"),
        ("Dialogue", " hi ", "hi"),
        ("Grammar Correction", "rewritten sentence: x", "rewritten sentence: x"),
    ],
)
def test_other_answers_are_cut_alike(type_name, reply, prediction):
    assert cut(type_name, reply) == prediction
    assert fixed(type_name, reply) == prediction


def test_word_problems_have_steps_and_a_result():
    expected = {"prediction_steps": "a", "prediction_final": "1 Final Answer: 2"}
    assert official("Mathematical Word Problem Solving", "a Final Answer: 1 Final Answer: 2") == expected
    assert official("Mathematical Word Problem Solving", "42") == {"prediction_steps": "42", "prediction_final": ""}


@for_each(
    ("reply", "official_value", "fixed_value"),
    [
        ("[3.5]", 3.5, 3.5),
        ("3.5", 0.0, 3.5),
        ("about -2e1.", 0.0, -20.0),
        ("from 3 to 4", 0.0, ""),
        ("none", 0.0, ""),
        ("[abc]", 0.0, ""),
        ("[] [5]", 5.0, 5.0),
        ("[e, 2]", 2.0, 2.0),
        ("[+4]", 0.0, 4.0),
        ("[1e999]", 0.0, ""),
    ],
)
def test_next_values(reply, official_value, fixed_value):
    assert cut("Time Series", reply) == official_value
    assert fixed("Time Series", reply) == fixed_value


def test_lists_are_cut_and_filled_to_the_horizon():
    assert time_series_values("[1,2]", 3) == [1.0, 2.0, 2.0]
    assert time_series_values("[1 2\n3]", 2) == [1.0, 2.0]
    assert time_series_values("no list", 2) == [0.0, 0.0]


@for_each("cutting", [extract, extract_fixed])
def test_choices_need_options(cutting):
    with pytest.raises(DataError, match=r"'t', item None: no input\.options"):
        cutting("t", "MultipleChoiceQA", {}, "The answer is A")


@given(st.sampled_from([*TYPES, "unheard of"]), reply_text)
def test_no_reply_raises(type_name, reply):
    item = item_of(type_name) if type_name in TYPES else {}
    for cutting in (extract, extract_fixed):
        record = cutting("t", type_name, item, reply)
        assert set(record) in ({"prediction"}, {"prediction_steps", "prediction_final"})
        assert all(isinstance(value, str | float) for value in record.values())


@for_each("piece", ["[", "[1 ", "\\boxed{", "\\boxed{ ", "( ", "A ", "answer", " ", "*", "9", "\n", "(a"])
@for_each("end", ["", "!"])
def test_long_replies_take_no_time(piece, end):
    reply = "\\boxed{" + piece * (300_000 // len(piece)) + end
    start = time.perf_counter()
    for type_name in ("MultipleChoiceQA", "multiple choice", "Time Series", "ner"):
        cut(type_name, reply)
        fixed(type_name, reply)
    assert time.perf_counter() - start < 20
