"""The forms of MathVista's prompts, and the request to extract an answer from a response."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.errors import ItemError, UsageError
from lmms_eval.tasks._task_utils.judge_texts import JudgeText
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, option_lines

MULTI_CHOICE = "multi_choice"
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_EXAMPLES = 3


class Form(Struct, frozen=True):
    """A way to ask questions."""

    head: str
    """Before the question."""
    choice: str
    """The hint of a question with choices."""
    other: str
    """The hint of any other question, with places ``{kind}`` and ``{examples}``."""
    is_hint_first: bool = False
    is_lettered_in_lines: bool = False
    tail: str = ""


_EXPLAINED = Form(
    "Question: ",
    "Hint: Please answer the question and provide the correct option letter, e.g., A, B, C, D, at the end.",
    "Hint: Please answer the question requiring {kind} and provide the final {examples}, at the end.",
)
FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "step-by-step": _EXPLAINED,
        "solution": Form(_EXPLAINED.head, _EXPLAINED.choice, _EXPLAINED.other, tail="Solution:"),
        "reason-first": Form(
            "Question: ",
            "First perform reasoning, then finally select the question from the choices in the following format: "
            "Answer: xxx.",
            "First perform reasoning, then finally answer the question requiring {kind} and provide the final "
            "{examples}, at the end in the following format: Answer: xxx.",
            is_hint_first=True,
        ),
        "format-prompt": Form(
            "", "Answer with the option's letter from the given choices directly.", "", is_lettered_in_lines=True
        ),
    }
)
"""By the setting ``shot_type``."""


def question(doc: Doc, settings: Mapping[str, Any]) -> str:
    """Return question, choices and hint in the form that the setting ``shot_type`` names.

    Raises:
        UsageError: the settings ask for examples, captions or texts of pictures, or for an unknown form.
        ItemError: the document's type of answer is not known.
    """
    form = FORMS.get(settings.get("shot_type", ""))
    if form is None or any(settings.get(key) for key in ("shot", "use_caption", "use_ocr")):
        raise UsageError(
            f"mathvista: shot_type must be one of {', '.join(FORMS)}, without shot, use_caption and use_ocr: "
            f"{dict(settings)}"
        )
    asked = f"{form.head}{doc['question']}" + (f" (Unit: {doc['unit']})" if doc["unit"] else "")
    choices = doc["choices"] or ()
    if form.is_lettered_in_lines:
        listed = option_lines(choices)
    else:
        lines = [f"({letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False)]
        listed = "\n".join(["Choices:", *lines]) if lines else ""
    parts = [asked, listed, _hint(doc, form), form.tail]
    if form.is_hint_first:
        parts = [_hint(doc, form), asked, listed]
    return "\n".join(part for part in parts if part).strip()


def _hint(doc: Doc, form: Form) -> str:
    if doc["question_type"] == MULTI_CHOICE:
        return form.choice
    places = _places(doc)
    if form.is_lettered_in_lines:
        brief = {
            "integer": "a single integer number",
            "float": f"a single floating-point number{_worded(places)}",
            "list": "a Python list",
        }
        return f"Answer the question using {brief[_answer_type(doc)]}."
    kind, examples = {
        "integer": ("an integer answer", "value, e.g., 1, 2, 3"),
        "float": (f"a floating-point number{_worded(places)}", f"value, e.g., {_decimals(places or 1)}"),
        "list": ("a Python list as an answer", "list, e.g., [1, 2, 3], [1.2, 1.3, 1.4]"),
    }[_answer_type(doc)]
    return form.other.format(kind=kind, examples=examples)


def _answer_type(doc: Doc) -> str:
    kind: str = doc["answer_type"]
    if kind not in ("integer", "float", "list"):
        raise ItemError(f"mathvista: column 'answer_type' holds {kind!r} for a question without choices")
    return kind


def _places(doc: Doc) -> int:
    """Decimal places of the answer; 0 if the document states none."""
    return int(doc["precision"] or 0)


def _worded(places: int) -> str:
    if not places:
        return ""
    word = _WORDS[places] if places < len(_WORDS) else str(places)
    return f" with {word} decimal place{'' if places == 1 else 's'}"


def _decimals(places: int) -> str:
    """Numbers of so many decimal places: 1.23, 1.34, 1.45."""
    digits = itertools.cycle("2345678901")
    run = "".join(itertools.islice(digits, places + _EXAMPLES))
    return ", ".join(f"1.{run[start : start + places]}" for start in range(_EXAMPLES))


EXTRACT = JudgeText(
    "mathvista_extract",
    """Each example below shows a question, a response to it, and the short answer that the response gives. Write the \
short answer of the last response, and nothing else.

Hint: Please answer the question requiring an integer answer and provide the final value, e.g., 1, 2, 3, at the end.
Question: How many boats are in the harbour?

Model response: I count three on the left and four on the right, so there are 7 boats.

Extracted answer: 7

Hint: Please answer the question requiring a floating-point number with one decimal place and provide the final \
value, e.g., 1.2, 1.3, 1.4, at the end.
Question: What share of the tiles is blue?

Model response: Two of the five tiles are blue, which is a share of 0.4.

Extracted answer: 0.4

Hint: Please answer the question requiring a floating-point number with two decimal places and provide the final \
value, e.g., 1.23, 1.34, 1.45, at the end.
Question: What do a pear and a plum cost together? (Unit: $)

Model response: Together they cost $0.80 + $0.55 = $1.35.

Extracted answer: 1.35

Hint: Please answer the question requiring a Python list as an answer and provide the final list, e.g., [1, 2, 3], \
[1.2, 1.3, 1.4], at the end.
Question: In which two years did it snow most?

Model response: Most snow fell in 1981, followed by 1979.

Extracted answer: [1981, 1979]

Hint: Please answer the question and provide the correct option letter, e.g., A, B, C, D, at the end.
Question: How large is the angle at the top?
Choices:
(A) 30
(B) 45
(C) 60

Model response: The triangle has equal sides, so each angle is 60 degrees, choice (C).

Extracted answer: C""",
    "2c251ab9e219c5d7",
)


def extraction(doc: Doc, response: str, settings: Mapping[str, Any] | None) -> str:
    """Return the request to the judge: the text with its examples, then question and response.

    Raises:
        DataError: the user's file of texts cannot be used.
    """
    text = EXTRACT.used(settings).text.strip()
    return f"{text}\n\n{doc['query']}\n\n{response}\n\nExtracted answer: "
