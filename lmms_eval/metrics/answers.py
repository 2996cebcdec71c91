"""Per-document metrics that judge a free answer against the truth: contained, the same choice, close in number.

They are called as ``fn(references=[truth], predictions=[answer], **arguments of the metric_list item)``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from lmms_eval.errors import UsageError
from lmms_eval.metrics.option_letters import extract_mcq_answer
from lmms_eval.utils.answer_reading import WHOLE_ANSWER, note_reading

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
REL_TOL, ABS_TOL = 1e-3, 1e-6


def is_contained(truth: str, answer: str, ignore_case: bool = True) -> bool:
    """Tell whether the truth is a part of the answer."""
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

    Raises:
        UsageError: no reference or no prediction (so do all metrics of this module).
    """
    return float(is_contained(*_pair("contains", references, predictions), ignore_case))


def mcq_match(references: Sequence[Any], predictions: Sequence[Any], *, choices: Sequence[str] | None = None) -> float:
    """1.0 if the answer names the letter of the truth.

    The letter is that of :func:`extract_mcq_answer`; an answer in which it finds none is compared as a whole.

    Args:
        choices: the letters, by default A to H.
    """
    truth, answer = _pair("mcq_match", references, predictions)
    letter = extract_mcq_answer(answer, choices)
    if not letter:
        note_reading(WHOLE_ANSWER)
    return float(bare_choice(letter or answer) == bare_choice(truth))


def numeric(
    references: Sequence[Any], predictions: Sequence[Any], *, rel_tol: float = REL_TOL, abs_tol: float = ABS_TOL
) -> float:
    """1.0 if the numbers of both texts are close (``math.isclose``); a text that is none gives its last number.

    Raises:
        UsageError: a negative tolerance.
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
