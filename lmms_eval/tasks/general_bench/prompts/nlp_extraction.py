"""Records of ``prediction.json`` from replies, for language tasks (General-Bench specification §4.1).

``extract`` follows the reference's predictor, faults included: a choice that it does not find is A, a number that it
does not find is 0. ``extract_fixed`` finds choices and numbers by better rules, and leaves a missing answer empty, so
that it counts as wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from lmms_eval.tasks.general_bench.measures.text_math import SEPARATOR
from lmms_eval.tasks.general_bench.nlp.types import LETTERS, Fields, NlpType, type_of

HORIZON = 1
"""Number of predicted values of a time series."""
_CUE = "answer"
_FOUR = "ABCD"
"""The options of a ``multiple choice`` task."""
_SERIES = re.compile(r"\[([0-9.,\s\-eE]+)\]")
_COMMAS_AND_SPACES = re.compile(r"[,\s]+")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_BOXED = re.compile(
    r"\\boxed\s*+\{\s*+(?:\\(?:text|mathrm|mathbf|textbf)\s*+\{\s*+)?[(\[]?\s*+([A-Za-z])(?![A-Za-z0-9])"
)
_BRACKETED = re.compile(r"[(\[]\s*+([A-Za-z])\s*+[)\]]")
_EDGE = r"[A-Za-z0-9'’]"
_ALONE = re.compile(rf"(?<!{_EDGE})([A-Z])(?!{_EDGE})")
_NO_WORD = re.compile(rf"(?<!{_EDGE})(?![AI]\s+[a-z])([A-Z])(?!{_EDGE})")
"""As ``_ALONE``, without articles and pronouns."""
_WHOLE = re.compile(r"[\s*_\"'`(\[:]*+([A-Za-z])[\s*_\"'`)\].:,]*+")
_LEADING = re.compile(r"[\s*_\"'`(\[]*+([A-Z])(?:[*_\"'`]*+[)\].:,]|[ \t*_\"'`]*+(?:\n|$))")


def extract(task: str, type_name: str, raw: Mapping[str, Any], reply: str) -> dict[str, Any]:
    """Return the record without its ``id``: ``prediction``, or ``prediction_steps`` and ``prediction_final``.

    Raises:
        DataError: the item of a multiple-choice question has no options. The reply never raises.
    """
    kind = type_of(type_name)
    match kind.name:
        case "MultipleChoiceQA":
            after = _after_last_cue(reply) if _CUE in reply else ""
            return _prediction(next((letter for letter in _letters(task, raw) if letter in after), "A"))
        case "multiple choice":
            if len(reply.strip()) > 1:
                reply = next((letter for letter in _FOUR if letter in reply), reply)
            return _prediction(reply.lower())
        case "Time Series":
            return _prediction(time_series_values(reply, HORIZON)[0])
        case _:
            return _common(kind, reply)


def extract_fixed(task: str, type_name: str, raw: Mapping[str, Any], reply: str) -> dict[str, Any]:
    """Extract as ``extract`` does, but read choices and numbers as they are meant. A missing one is an empty text.

    A choice is the letter in the last box, else the first one that is a word of its own after the last ``answer``, in
    any case, else the one that the reply begins with or consists of, or the only one that it names. A number may lack
    brackets if it is the only one.

    Raises:
        DataError: the item of a multiple-choice question has no options. The reply never raises.
    """
    kind = type_of(type_name)
    match kind.name:
        case "MultipleChoiceQA":
            return _prediction(find_choice(_letters(task, raw), reply))
        case "multiple choice":
            return _prediction(find_choice(_FOUR, reply).lower())
        case "Time Series":
            return _prediction(_next_value(reply))
        case _:
            return _common(kind, reply)


def time_series_values(reply: str, horizon: int) -> list[float]:
    """Return the first ``horizon`` numbers of the first list in brackets. A shorter list repeats its last number.

    A list has only digits, dots, commas, white space, minus signs and the letter e. Anything in it that is no finite
    number is skipped. Without a list, or without a number in it, the values are zeros.
    """
    numbers = _listed(reply)
    missing = horizon - len(numbers)
    return [*numbers, *([numbers[-1] if numbers else 0.0] * missing)][:horizon]


def find_choice(letters: str, reply: str) -> str:
    """Find the letter of the option that a reply chooses, or return an empty text (see ``extract_fixed``)."""
    boxed = [match[1].upper() for match in _BOXED.finditer(reply)]
    if boxed and boxed[-1] in letters:
        return boxed[-1]
    return _choice_after(letters, _after_last_cue(reply)) or _choice_of_whole(letters, reply)


def _choice_after(letters: str, text: str) -> str:
    """Find the first letter that is a word of its own, or in brackets in either case. A whole text may be a small
    letter.
    """
    found = [match for pattern in (_BRACKETED, _ALONE) for match in pattern.finditer(text)]
    for match in sorted(found, key=lambda match: match.start(1)):
        if match[1].upper() in letters:
            return match[1].upper()
    return _whole(letters, text)


def _choice_of_whole(letters: str, text: str) -> str:
    """Find the letter, marked as an option, that begins the text or is all of it, else the only one that it names."""
    leading = _LEADING.match(text)
    if leading and leading[1] in letters:
        return leading[1]
    named = {match[1] for match in _NO_WORD.finditer(text) if match[1] in letters}
    return _whole(letters, text) or (named.pop() if len(named) == 1 else "")


def _whole(letters: str, text: str) -> str:
    whole = _WHOLE.fullmatch(text)
    return whole[1].upper() if whole and whole[1].upper() in letters else ""


def _after_last_cue(reply: str) -> str:
    """Return the text after the last ``answer`` in any case, or an empty text."""
    start = re.sub(_CUE, _CUE, reply, flags=re.IGNORECASE | re.ASCII).rfind(_CUE)
    return reply[start + len(_CUE) :] if start >= 0 else ""


def _common(kind: NlpType, reply: str) -> dict[str, Any]:
    """Cut the replies that both rules treat the same."""
    if kind.name == "Mathematical Word Problem Solving":
        steps, _, final = reply.partition(kind.marker)
        return {"prediction_steps": steps.strip(), "prediction_final": final.strip()}
    if kind.name == "Code Defect Detection":
        return _prediction("0" if "no defect" in reply.lower() else "1")
    if kind.reading == "label":
        return _prediction(reply.lower())
    if kind.reading == "labels":
        return _prediction(reply.lower().replace(", ", SEPARATOR))
    return _prediction(_marked(kind, reply))


def _marked(kind: NlpType, reply: str) -> str:
    if not kind.marker or kind.marker not in reply:
        return reply if kind.keeps_space else reply.strip()
    if kind.first_marker:
        return reply.partition(kind.marker)[2].strip()
    return reply.rpartition(kind.marker)[2].strip()


def _next_value(reply: str) -> float | str:
    """Return the first number in brackets, else the only number of the reply, else an empty text."""
    listed = _listed(reply)
    if listed:
        return listed[0]
    numbers = _finite(_NUMBER.findall(reply))
    return numbers[0] if len(numbers) == 1 else ""


def _listed(reply: str) -> list[float]:
    series = _SERIES.search(reply)
    return _finite(_COMMAS_AND_SPACES.split(series[1])) if series else []


def _finite(texts: list[str]) -> list[float]:
    numbers = []
    for text in texts:
        try:
            numbers.append(float(text))
        except ValueError:
            continue
    return [number for number in numbers if math.isfinite(number)]


def _letters(task: str, raw: Mapping[str, Any]) -> str:
    return LETTERS[: len(Fields(task, raw).options())]


def _prediction(value: object) -> dict[str, Any]:
    return {"prediction": value}
