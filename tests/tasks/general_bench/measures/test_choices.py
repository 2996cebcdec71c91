from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.choices import (
    choice_match,
    first_answer_match,
    fold_text,
    options_of,
)
from tests.cases import for_each

ANIMALS = ["cat", "dog", "polar bear", "bear"]


@for_each(
    ("prediction", "reference", "expected"),
    [
        ("Golden Retriever.", "golden_retriever", True),
        ("**Tulip**", "tulip", True),
        ("The picture shows a golden retriever in a park.", "golden-retriever", True),
        ("a caterpillar", "cat", False),
        ("", "cat", False),
        ("cat " + "and more " * 20, "cat", False),  # 41 words: no answer with one class in it
        ("C++", "C#", False),
        ("猫", "猫", True),
        ("Ｃａｔ", "cat", True),
    ],
)
def test_classes(prediction, reference, expected):
    assert choice_match(prediction, [reference]) is expected


@for_each(
    ("prediction", "reference", "expected"),
    [
        ("B", "B", True),
        ("(b)", "B", True),
        ("B. a dog", "B", True),
        ("The answer is B", "(B)", True),
        ("The answer is C, not B", "B", False),
        ("A dog is what I see", "A", False),
        ("I think B or C", "B", False),
        ("A", "B", False),
    ],
)
def test_letters_without_known_options(prediction, reference, expected):
    assert choice_match(prediction, [reference]) is expected


@for_each(
    ("prediction", "reference", "expected"),
    [
        ("B", "dog", True),
        ("dog", "B", True),
        ("It is a dog.", "B", True),
        ("It is a cat or a dog.", "B", False),  # options of one length: a tie
        ("the polar bear", "D", False),  # the longest option that is there is C
        ("the polar bear", "polar bear", True),
        ("a horse", "B", False),
        ("Answer: D", "bear", True),
    ],
)
def test_letters_and_texts_of_options(prediction, reference, expected):
    assert choice_match(prediction, [reference], ANIMALS) is expected


@for_each(
    ("prediction", "reference", "expected"),
    [
        ("Yes, it is", "yes", True),
        ("No, yes would be wrong", "no", True),
        ("I do not know", "no", False),
        ("The statement is false.", "False", True),
        ("True", "yes", False),
        ("nothing", "no", False),
    ],
)
def test_poles(prediction, reference, expected):
    assert choice_match(prediction, [reference]) is expected


@for_each(
    ("prediction", "reference", "expected"),
    [
        ("There are 3 dogs", "3", True),
        ("31", "3", False),
        ("3.5", "3", False),
        ("3 or 4", "3", False),
        ("3.0", "3", True),
        ("about 1,250", "1250", True),
        ("-3", "3", False),
        ("3", "-3", False),
        ("−3", "-3", True),
    ],
)
def test_numbers(prediction, reference, expected):
    assert choice_match(prediction, [reference]) is expected


def test_any_reference_will_do():
    assert choice_match("a tabby", ["cat", "tabby"])
    assert not choice_match("a dog", ["cat", "tabby"])
    assert not choice_match("a dog", [])


def test_a_blank_reference_is_met_by_itself_only():
    assert choice_match(" ", [""])
    assert not choice_match("something", [""])


@for_each(
    ("raw", "prompt", "options"),
    [
        ({"input": {"options": ["A. cat", "B. dog"]}}, "", ["cat", "dog"]),
        ({"choices": {"A": "cat", "B": "dog"}}, "", ["cat", "dog"]),
        ({"input": {"options": ["A. one", "A. two"]}}, "", ["one", "A. two"]),
        ({}, "Which?\nA. a cat\nB. a dog\nAnswer with a letter.", ["a cat", "a dog"]),
        ({}, "Which? (A) cat; (B) dog; (C) bear", ["cat", "dog", "bear"]),
        ({}, "What is it? A dog. Or not?", []),
        ({"options": [1, 2]}, "Is A. here?", []),
        ({"input": "text"}, "", []),
    ],
)
def test_options(raw, prompt, options):
    assert options_of(raw, prompt) == options


def test_folding():
    assert fold_text(" “Polar_Bear!” ") == fold_text("polar - bear") == "polar bear"


@for_each(
    ("prediction", "expected"),
    [("On the left.", True), (" on  THE left", True), ("left", False), ("it is on the left", False)],
)
def test_first_answer(prediction, expected):
    assert first_answer_match(prediction, ["behind", "on the left"]) is expected


@given(st.text(max_size=30))
def test_every_reference_is_matched_by_itself(text):
    assert choice_match(text, [text])
    assert first_answer_match(text, [text])


@for_each("piece", ["answer ", "1,1", "(A)", "cat ", "-", "3."])
def test_long_answers_take_no_time(piece):
    begin = time.perf_counter()
    for reference in ("cat", "A", "3", "no"):
        choice_match(piece * (100_000 // len(piece)), [reference], ANIMALS)
        choice_match(piece * (100_000 // len(piece)), [reference])
    assert time.perf_counter() - begin < 20


@for_each(
    ("prediction", "expected"),
    [
        ("a cat", True),
        ("The animal is a cat, sitting on a mat", True),
        ("cat, dog", False),
        ("dog cat polar bear bear", False),
        ("a polar bear", False),
        ("not a dog but a cat", False),
    ],
)
def test_of_known_classes_one_alone_is_named(prediction, expected):
    assert choice_match(prediction, ["cat"], (), ANIMALS) is expected


def test_a_class_within_the_name_of_another_is_not_named():
    assert choice_match("It shows a polar bear.", ["polar bear"], (), ANIMALS)
    assert not choice_match("It shows a polar bear.", ["bear"], (), ANIMALS)
    assert choice_match("a tabby", ["tabby"], (), ANIMALS)  # a reference that is none of them


@for_each(
    ("prediction", "reference", "expected"),
    [
        ("It is either a cat or a dog", "cat", False),
        ("It is either a dog or a cat", "cat", False),
        ("dog/cat", "cat", False),
        ("cat, dog, horse and cow", "cat", False),
        ("the dog, the horse; a cow\na cat", "cat", False),
        ("Paris, France", "Paris", True),
        ("A cat. It may be a tabby or a lynx.", "cat", True),
        ("salt or pepper, I think", "salt or pepper", True),
        ("AC/DC on a stage", "AC/DC", True),
    ],
)
def test_alternatives_and_lists_name_none(prediction, reference, expected):
    assert choice_match(prediction, [reference]) is expected


@for_each(("prediction", "expected"), [("3,4", False), ("4,", True), ("1,2,3 and 4", False), ("4.", True)])
def test_numbers_between_commas_are_several(prediction, expected):
    assert choice_match(prediction, ["4"]) is expected


@for_each("text", [",111" * 25_000 + "a", "1.1" * 30_000 + "a", "1," * 50_000, "cat or " * 14_000])
def test_long_runs_take_no_time(text):
    start = time.process_time()
    choice_match(text, ["3", "cat"], (), ANIMALS)
    assert time.process_time() - start < 20
