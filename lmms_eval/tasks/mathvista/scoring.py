"""From a response to the answer in it, to the form in which it is compared, to right or wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.errors import ItemError
from lmms_eval.metrics.text import levenshtein_distance
from lmms_eval.tasks._task_utils.question import LETTERS
from lmms_eval.tasks.mathvista.prompts import MULTI_CHOICE

Doc = Mapping[str, Any]
_LETTER = re.compile(r"\(([a-zA-Z])\)")


@dataclass(frozen=True, slots=True)
class Judged:
    """A compared answer."""

    prediction: str | None
    is_right: bool


def read(doc: Doc, response: str) -> str | None:
    """Return the answer of a response that is nothing else; ``None`` where it has to be extracted."""
    if not response or (doc["question_type"] == MULTI_CHOICE and response in _choices(doc)):
        return response
    number = {"integer": int, "float": float}.get(doc["answer_type"])
    try:
        return None if number is None else str(number(response))
    except ValueError:
        return None


def judged(doc: Doc, extraction: str) -> Judged:
    """Compare an answer with the reference: choices by their text, numbers rounded to the stated places.

    Where no places are stated, numbers are compared as they are.

    Raises:
        ItemError: a question with choices has none.
    """
    precision = doc["precision"]
    prediction = _normalised(doc, extraction, None if precision is None else int(precision))
    if doc["answer_type"] == "float" and precision is None and doc["question_type"] != MULTI_CHOICE:
        return Judged(prediction, _are_equal_numbers(extraction, doc.get("answer")))
    return Judged(prediction, _is_right(doc, prediction))


def judged_as_the_reference(doc: Doc, extraction: str) -> Judged:
    """Compare as the benchmark's usual harness does: it cannot round to a number of places that is a float."""
    precision = doc["precision"]
    is_broken = doc["answer_type"] == "float" and isinstance(precision, float) and doc["question_type"] != MULTI_CHOICE
    prediction = None if is_broken else _normalised(doc, extraction, precision)
    return Judged(prediction, _is_right(doc, prediction))


def _is_right(doc: Doc, prediction: str | None) -> bool:
    answer = doc.get("answer")
    return prediction is not None and answer is not None and prediction.strip() == str(answer).strip()


def _are_equal_numbers(extraction: str, answer: Any) -> bool:
    try:
        return float(extraction) == float(answer)
    except (TypeError, ValueError):
        return False


def _normalised(doc: Doc, extraction: str, precision: int | None) -> str | None:
    if doc["question_type"] == MULTI_CHOICE:
        return _chosen(extraction.strip(), _choices(doc))
    try:
        if doc["answer_type"] == "integer":
            return str(int(float(extraction)))
        if doc["answer_type"] == "float":
            return str(round(float(extraction), precision))
    except (ValueError, OverflowError):
        return None
    return extraction


def _chosen(extraction: str, choices: Sequence[str]) -> str:
    """Return the choice of a letter, else the one that is most like the text."""
    found = _LETTER.search(extraction)
    letter = found[1].upper() if found else extraction
    if len(letter) == 1 and letter in LETTERS[: len(choices)]:
        return choices[LETTERS.index(letter)]
    return min(choices, key=lambda choice: levenshtein_distance(letter, choice))


def _choices(doc: Doc) -> Sequence[str]:
    choices: Sequence[str] | None = doc["choices"]
    if not choices:
        raise ItemError("mathvista: column 'choices' is empty, but column 'question_type' says multi_choice")
    return choices
