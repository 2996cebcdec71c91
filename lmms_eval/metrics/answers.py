"""Per-document metrics that judge a free answer against the truth: contained, the same choice, close in number.

They are called as ``fn(references=[truth], predictions=[answer], **arguments of the metric_list item)``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.utils.answer_reading import (
    BEFORE_BLANK,
    BEFORE_STOP,
    IN_PARENTHESES,
    NOTHING,
    WHOLE_ANSWER,
    note_letter,
    note_reading,
)

_CHOICES = ("A", "B", "C", "D", "E", "F", "G", "H")
_OUTER_MARKS = ",.!?;:'\""
_PHRASES = (
    "the answer is", "answer is", "the correct answer is", "correct answer is", "the best answer is", "best answer is",
    "the correct option is", "correct option is", "the best option is", "best option is", "the choice is", "choice is",
    "the correct choice is", "correct choice is", "i choose", "i select", "i pick", "my answer is", "my choice is",
    "옵션", "정답은", "답은", "답:", "答案是", "答案为", "选", "答えは",
)  # fmt: skip
ABSENT, UNPLACED = -1, -2
"""Positions of a choice without the sign, and of one whose position the sign does not show."""
_FORMS = {
    "({})": IN_PARENTHESES, "{}.": BEFORE_STOP, "{}:": "letter before a colon", "{})": "letter before a parenthesis",
    "{} ": BEFORE_BLANK, "{}-": "letter before a hyphen", "{}_": "letter before an underscore",
    "{}=": "letter before an equals sign", "{}": "letter anywhere",
}  # fmt: skip
"""Forms that a letter may be written in, and their names in the audit."""


class Sign(Struct, frozen=True):
    """A way to mark a choice as the answer."""

    name: str
    """Rule that the audit names."""
    place: Callable[[str, str], int]
    """Returns the position of a choice that is marked this way in a padded text; ``ABSENT`` if it is not."""


def named_choice(
    response: str | None,
    choices: Sequence[str],
    signs: Iterable[Sequence[Sign]],
    wins: Callable[[Iterable[int]], int],
) -> str:
    """Find the choice that an answer names by the clearest sign, or return empty text; the audit records the sign.

    Marks around the answer are dropped, and blanks are added at both ends. ``signs`` and ``wins`` are those of
    :func:`clearest_choice`.
    """
    text = (response or "").strip()
    for mark in _OUTER_MARKS:
        text = text.strip(mark)
    text = f" {text} "
    found = clearest_choice(text, choices, signs, wins)
    if found is None:
        note_reading(NOTHING)
    return found or ""


def clearest_choice(
    text: str, choices: Sequence[str], signs: Iterable[Sequence[Sign]], wins: Callable[[Iterable[int]], int]
) -> str | None:
    """Find the choice with the clearest sign in a padded text; ``None`` without any. The audit records the sign.

    The groups of signs are ordered from the clearest to the weakest; the signs of a group are equally clear. If several
    choices have a sign of the same group, ``wins`` (``min`` or ``max``) selects a position, and at equal positions the
    first choice wins.
    """
    for alike in signs:
        found = [(sign.place(text, choice), choice, sign.name) for sign in alike for choice in choices]
        places = [(place, choice, name) for place, choice, name in found if place != ABSENT]
        if places:
            best = wins(place for place, *_ in places)
            chosen, name = next((choice, name) for place, choice, name in places if place == best)
            note_letter(name, text, *(choice for _, choice, _ in places))
            return chosen
    return None


def last_place(form: str) -> Sign:
    """Return the sign for a choice in a form such as ``({})``; the last occurrence counts."""
    return Sign(_FORMS[form], lambda text, choice: text.rfind(form.format(choice)))


def extract_mcq_answer(response: str | None, choices: Sequence[str] | None = None) -> str:
    """Find the choice (by default a letter from A to H) that an answer names, or return empty text.

    Signs are tried from the clearest to the weakest: the answer begins with the choice, ends with it, names it after a
    phrase ("the answer is"), in parentheses, before a full stop, a colon, a closing parenthesis or a blank, anywhere.
    If several choices have the same sign, the last one in the text wins. Case matters.
    """
    return named_choice(response, choices or _CHOICES, _SIGNS, max)


def _at_start(text: str, choice: str) -> int:
    answer = text.strip()
    return 0 if answer.startswith(choice) and not answer[1:2].isalpha() else ABSENT


def _at_end(text: str, choice: str) -> int:
    answer = text.strip()
    return len(text) - 1 if answer.endswith(choice) and not answer[-2:-1].isalpha() else ABSENT


def _after_phrase(text: str, choice: str) -> int:
    lowered = text.lower()
    begins = ((phrase, lowered.find(phrase)) for phrase in _PHRASES)
    return max(text.find(choice, begin + len(phrase)) if begin != ABSENT else ABSENT for phrase, begin in begins)


_SIGNS = (
    (Sign("letter at the start", _at_start),),
    (Sign("letter at the end", _at_end),),
    (Sign("letter after a phrase", _after_phrase),),
    *((last_place(form),) for form in ("({})", "{}.", "{}:", "{})", "{} ", "{}")),
)

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
REL_TOL, ABS_TOL = 1e-3, 1e-6


def is_contained(truth: str, answer: str, ignore_case: bool = True) -> bool:
    """Return whether the truth is a part of the answer."""
    return truth.lower() in answer.lower() if ignore_case else truth in answer


def bare_choice(text: str) -> str:
    """Return a choice in upper case, without parentheses, full stops and blanks around it."""
    return text.strip().upper().strip("(). ")


def read_number(text: str) -> float | None:
    """Read a text without commas and percent signs as a number, else its last number."""
    text = text.strip().replace(",", "").replace("%", "")
    try:
        return float(text)
    except ValueError:
        numbers = _NUMBER.findall(text)
        return float(numbers[-1]) if numbers else None


def contains(references: Sequence[Any], predictions: Sequence[Any], *, ignore_case: bool = True) -> float:
    """1.0 if the truth is a part of the answer.

    Raises ``UsageError`` without a reference or a prediction, as all metrics of this module do.
    """
    return float(is_contained(*_pair("contains", references, predictions), ignore_case))


def mcq_match(references: Sequence[Any], predictions: Sequence[Any], *, choices: Sequence[str] | None = None) -> float:
    """1.0 if the answer names the letter of the truth (:func:`extract_mcq_answer`).

    An answer that names no letter is compared as a whole.
    """
    truth, answer = _pair("mcq_match", references, predictions)
    letter = extract_mcq_answer(answer, choices)
    if not letter:
        note_reading(WHOLE_ANSWER)
    return float(bare_choice(letter or answer) == bare_choice(truth))


def numeric(
    references: Sequence[Any], predictions: Sequence[Any], *, rel_tol: float = REL_TOL, abs_tol: float = ABS_TOL
) -> float:
    """1.0 if the numbers of both texts are close (``math.isclose``); a text that is not a number gives its last one.

    Raises ``UsageError`` if a tolerance is negative.
    """
    if rel_tol < 0 or abs_tol < 0:
        raise UsageError(f"metric 'numeric': rel_tol {rel_tol} and abs_tol {abs_tol} must not be negative")
    truth, answer = map(read_number, _pair("numeric", references, predictions))
    is_close = (
        truth is not None and answer is not None and math.isclose(answer, truth, rel_tol=rel_tol, abs_tol=abs_tol)
    )
    return float(is_close)


def _pair(metric: str, references: Sequence[Any], predictions: Sequence[Any]) -> tuple[str, str]:
    if not references or not predictions:
        raise UsageError(f"metric {metric!r}: needs one reference and one prediction")
    return str(references[0]), str(predictions[0])
