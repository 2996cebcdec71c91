"""Rules that read answers as the models' authors read them; the recorded answers are in ``tests/parity``."""

from __future__ import annotations

import pytest

from lmms_eval.errors import UnknownNameError, UsageError
from lmms_eval.filters.reasoning import ANSWER_MARKS, between
from lmms_eval.recipes.extraction import (
    RULES,
    AskedQuestion,
    ReadingRule,
    after_thoughts,
    boxed,
    is_equal,
    rule,
)
from lmms_eval.utils.answer_reading import scoring_notes
from tests.cases import for_each

CARS = {"A": "The red one", "B": "The white one", "C": "The blue one", "D": "None of these cars"}
QWEN, KIT = "qwen-evaluation/choice_rule", "vlmevalkit/choice_rule"


def read(name: str, text: str, truth: str = "B", options: dict[str, str] | None = None) -> str | None:
    return rule(name).read(text, AskedQuestion(CARS if options is None else options, truth))


CHOICES = {
    "the only letter": (QWEN, "<think>A or C</think>So (B).", "B"),
    "two letters": (QWEN, "B, not C", None),
    "an article in a long answer": (QWEN, "A car is near, so the answer is A", None),
    "a letter far from the end": (KIT, "B is what I would choose here after all", None),
    "a letter after a phrase": (KIT, "The answer is B since C and D are far away from it", "B"),
    "a text longer than the options": (KIT, "the white one " + "and so on " * 30, None),
    "the text of an option": (QWEN, "Surely THE BLUE ONE", "C"),
    "the texts of two options": (QWEN, "the blue one or the white one", None),
    "a refusal": (QWEN, "Cannot determine the answer", "Z"),
    "a lone Z": (KIT, "Z", "Z"),
    "a letter that is no option": (QWEN, "E", None),
    "no answer": (QWEN, "", None),
    "no option has a text": (QWEN, "none", None),
}


@for_each("name, text, found", CHOICES.values(), ids=CHOICES)
def test_choice_rules(name: str, text: str, found: str | None) -> None:
    assert read(name, text) == found


def test_a_choice_without_texts_is_not_found_everywhere() -> None:
    assert read(QWEN, "I see it", options={"A": "", "B": ""}) is None


OPEN = {
    "the reference anywhere": ("It is 17.5 kN", "7.5", "A", True),
    "the other answers": ("other answers", "7.5", "B", False),
    "neither": ("8", "7.5", None, False),
    "the letter of the reference": ("A", "7.5", "A", True),
}


@for_each("text, truth, found, is_right", OPEN.values(), ids=OPEN)
def test_open_questions_of_mmmu_are_choices(text: str, truth: str, found: str | None, is_right: bool) -> None:
    question, own = AskedQuestion({}, truth), rule("qwen-evaluation/mmmu")
    assert own.read(text, question) == found
    assert own.is_right is not None
    assert own.is_right(found or "", question) is is_right


EQUAL = {
    "lower case": ("Yes", "yes", True),
    "arithmetic": ("2+1", "3", True),
    "a quotient": ("1/3", "0.3333333", True),
    "a quotient with too few digits": ("1/3", "0.33333", False),
    "thousands": ("3,000", "3000", True),
    "an assignment": ("x = 3", "3", True),
    "LaTeX": (r"$\dfrac{1}{2}$", "0.5", True),
    "a power of ten": ("1e1", "10", True),
    "a root, which the source does not read": (r"2\sqrt{2}", r"\sqrt{8}", False),
    "empty": ("", "", False),
    "a division by zero": ("1/0", "1", False),
    "code": ("__import__('os')", "1", False),
    "a power that would take for ever": ("9**9**9**9", "1", False),
    "a long text": ("1" * 2000, "1", False),
    "not a number": ("1e999", "1", False),
}


@for_each("one, other, equal", EQUAL.values(), ids=EQUAL)
def test_values_of_mathvision(one: str, other: str, equal: bool) -> None:
    pytest.importorskip("math_verify")
    assert is_equal(one, other) is equal


def test_an_answer_in_the_middle_of_a_sentence_goes_to_the_judge() -> None:
    assert read("qwen-evaluation/mathvision", "The answer is 3.", "3", {}) is None
    assert read("qwen-evaluation/mathvision", "fourth", "D", {"C": "third", "D": "fourth"}) == "D"


BOXES = {
    "nested braces": (r"\boxed{1} and \boxed{\frac{1}{2}} m", (r"\frac{1}{2}", True)),
    "open": (r"\boxed{\text{a", (r"\text{a", False)),
    "none": ("boxed{1}", None),
}


@for_each("text, found", BOXES.values(), ids=BOXES)
def test_boxes(text: str, found: tuple[str, bool] | None) -> None:
    assert boxed(text) == found


PARTS = {
    "thoughts twice": (after_thoughts("<think>a</think>b</think> c "), "c"),
    "thoughts that never end": (after_thoughts("<think>a "), "<think>a"),
    "an answer between marks": (between("x <answer> 3 </answer> y", ANSWER_MARKS), "3"),
    "a mark that does not close": (between("x <answer> 3", ANSWER_MARKS), "x <answer> 3"),
    "a thought of Kimi that never ends": (read("kimi/summary", "◁think▷B"), ""),
    "the last answer of MiniCPM": (read("minicpm-v/choice", "Answer: A\nAnswer: C."), "C"),
    "a word is no letter": (read("minicpm-v/choice", "Answer: Cat"), "Answer: Cat"),
    "yes and no": (read("vlmevalkit/yes_no_rule", "Yes, no."), None),
    "no": (read("vlmevalkit/yes_no_rule", "Not yes? No."), None),
    "videos: best": (read("vlmevalkit/videomme_letter", "Best option: (C)"), "C"),
    "videos: none": (read("vlmevalkit/videomme_letter", "no idea"), ""),
}


@for_each("found, expected", PARTS.values(), ids=PARTS)
def test_parts_of_answers(found: str | None, expected: str | None) -> None:
    assert found == expected


def test_rules_in_a_row() -> None:
    both = rule("glm/answer | vlmevalkit/choice_rule")
    assert both.name == "glm/answer | vlmevalkit/choice_rule"
    assert (
        both.read("<think>A or C</think><answer><|begin_of_box|>D<|end_of_box|></answer>", AskedQuestion(CARS)) == "D"
    )
    assert both.is_right is rule(KIT).is_right
    assert rule("vlmevalkit/yes_no_rule | kimi/summary").read("maybe", AskedQuestion()) is None


def test_bad_names() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown extraction rule 'glm/answr'; did you mean glm/answer"):
        rule("glm/answr")
    with pytest.raises(UsageError, match="decides on answers, so it must be the last one"):
        rule(f"{KIT} | kimi/summary")


HOSTILE = {
    "brackets": "(" * 100_000,
    "boxes": "\\boxed{" * 20_000,
    "thoughts": "<think>" * 20_000,
    "marks": "<answer>" * 20_000 + "</answer>",
    "answers": "Answer: " * 20_000,
    "the answer is": "the answer is " * 10_000,
    "blanks": "answer is" + " " * 100_000,
    "signs": "1+" * 50_000 + "1",
}


@for_each("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_answers_are_read_soon(text: str) -> None:
    for own in RULES.values():
        assert isinstance(own, ReadingRule)
        own.read(text, AskedQuestion(CARS, "B"))


def test_the_audit_names_what_was_read() -> None:
    with scoring_notes() as notes:
        read(QWEN, "I take (B)")
    assert (notes.reading.rule, notes.reading.found) == ("word alone", ("B",))
