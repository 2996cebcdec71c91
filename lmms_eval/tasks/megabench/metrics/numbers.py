"""Comparisons of numbers."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from lmms_eval.metrics.guard import LimitExceeded
from lmms_eval.tasks.megabench.conversions.containers import str_to_list
from lmms_eval.tasks.megabench.conversions.geometry import is_number
from lmms_eval.tasks.megabench.conversions.latex import first_tokens, unbox, unwrap_delimiters
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal
from lmms_eval.tasks.megabench.metrics.arithmetic import (
    OFFICIAL,
    REPAIRED,
    ArithmeticRefused,
    Value,
    Vocabulary,
    evaluate,
)
from lmms_eval.tasks.megabench.metrics.latex_process import evaluate_in_process
from lmms_eval.tasks.megabench.metrics.strings import simple_str_match
from lmms_eval.tasks.megabench.metrics.values import text_of

MAX_LATEX_TOKENS = 250
"""Most tokens that are parsed as LaTeX: the parser takes milliseconds a token, and a valid prefix is enough."""
READ_LIMIT = 5.0
"""Seconds to read one side."""
RELATIVE_TOLERANCE = 0.01
RMSE_CLIP = 0.1
ANGLE_CLIP = 10.0

_SIMPLE_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?\Z", re.ASCII)
_PLAIN_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:(/100)\s*)?", re.ASCII)
_EQUALS = re.compile(r"(?:=|≈|\\approx)\s*(.*)")
_truth_text = functools.partial(text_of, wanted="the truth must be a text")


def number_rel_diff_ratio(response: Any, truth: Any) -> float:
    """Return 1 minus the relative difference, at least 0; also 0 for a truth of 0 or values that are not finite."""
    try:
        predicted = response if is_number(response) else read_literal(response)
        true = read_literal(truth)
    except LiteralError:
        return 0.0
    if not (is_number(predicted) and is_number(true)) or true == 0:
        return 0.0
    ratio = abs((predicted - true) / true)
    return max(0.0, 1 - ratio) if math.isfinite(ratio) else 0.0


def positive_int_match(response: Any, truth: Any) -> float:
    """Equality of two integers written as text; -1 (left out of the mean) when both are 0 or less."""
    if truth is None or truth == "":
        return 0.0
    expected = read_literal(truth)
    if not isinstance(expected, int):
        raise TypeError(f"the truth is a {type(expected).__name__}, not an integer")
    try:
        predicted = read_literal(response)
    except LiteralError:
        return 0.0
    if not isinstance(predicted, int):
        return 0.0
    if expected <= 0 and predicted <= 0:
        return -1.0
    return float(predicted == expected)


def normalized_rmse(response: Any, truth: Any) -> float:
    """1 - |difference| / 0.1, at least 0."""
    try:
        predicted, true = read_literal(response), read_literal(truth)
    except LiteralError:
        return 0.0
    if not (is_number(predicted) and is_number(true)):
        return 0.0
    difference = math.sqrt((float(predicted) - float(true)) ** 2)
    return 0.0 if math.isnan(difference) else 1 - min(difference, RMSE_CLIP) / RMSE_CLIP


def angle_seq_float_rmse(response: Any, truth: Any) -> float:
    """1 - (mean absolute difference of two lists, at most 10) / 10."""
    import numpy as np

    predicted, true = str_to_list(response), str_to_list(truth)
    if len(predicted) != len(true) or not true:
        return 0.0
    try:
        with np.errstate(all="ignore"):
            difference = np.abs(np.asarray(predicted) - np.asarray(true))
        mean = math.fsum(difference.ravel().tolist()) / len(true)
    except (TypeError, ValueError, OverflowError):  # texts, ragged lists, or integers beyond any float
        return 0.0
    return 0.0 if math.isnan(mean) else 1 - min(mean, ANGLE_CLIP) / ANGLE_CLIP


def general_single_numerical_match(response: Any, truth: Any) -> float:
    """Equality of two numbers (or lists of numbers) within 1 % of the truth, read through LaTeX; else of the texts."""
    response, truth = _bare_texts(response, truth)
    return _compare_readings(response, truth, _reading_or_none(response), _reading_or_none(truth))


def boxed_single_numerical_match(response: Any, truth: Any) -> float:
    r"""``general_single_numerical_match`` of the contents of the first ``\boxed{...}`` on each side."""
    boxed = response if isinstance(response, str) else str(response)
    truth = unbox(_truth_text(truth))
    inner_response, inner_truth = _bare_texts(unbox(boxed), truth)
    try:
        return _compare_readings(inner_response, inner_truth, read_number(inner_response), read_number(inner_truth))
    except LimitExceeded:
        return simple_str_match(boxed, truth)


def general_single_numerical_match_fixed(response: Any, truth: Any) -> float:
    r"""``general_single_numerical_match`` that reads plain floats first, and ``\%``, ``e`` and roots."""
    response, truth = _bare_texts(response, truth)
    return _compare_readings(response, truth, _repaired_reading(response), _repaired_reading(truth))


def boxed_single_numerical_match_fixed(response: Any, truth: Any) -> float:
    r"""``general_single_numerical_match_fixed`` of the contents of the first ``\boxed{...}`` on each side."""
    boxed = response if isinstance(response, str) else str(response)
    return general_single_numerical_match_fixed(unbox(boxed), unbox(_truth_text(truth)))


def positive_int_match_fixed(response: Any, truth: Any) -> float:
    """``positive_int_match`` that takes an integer as it is, as a JSON reply has it."""
    is_integer = isinstance(response, int) and not isinstance(response, bool)
    return positive_int_match(str(response) if is_integer else response, truth)


def _reading_or_none(text: str) -> Value | None:
    try:
        return read_number(text)
    except LimitExceeded:
        return _number_in(_plain_units(text))


def _repaired_reading(text: str) -> Value | None:
    text = _plain_units(text.replace(r"\%", "%"))
    plain = _PLAIN_NUMBER.fullmatch(text)
    if plain is not None:
        return _float_in(plain.group(1)) if plain.group(2) is None else float(plain.group(1)) / 100
    try:
        return read_number(text, REPAIRED)
    except LimitExceeded:
        return _number_in(text, REPAIRED)


def _bare_texts(response: Any, truth: Any) -> tuple[str, str]:
    return _bare(response if isinstance(response, str) else str(response)), _bare(_truth_text(truth))


def _bare(text: str) -> str:
    """Remove formula delimiters, and everything up to the first equals sign."""
    text = unwrap_delimiters(unwrap_delimiters(text, r"\(", r"\)"), r"\[", r"\]")
    after = _EQUALS.search(text)
    return after.group(1).strip() if after else text


def _compare_readings(response: str, truth: str, predicted: Value | None, true: Value | None) -> float:
    if predicted is None or true is None:
        return simple_str_match(response, truth)
    if isinstance(predicted, int | float) and isinstance(true, int | float):
        predicted, true = [predicted], [true]
    if not isinstance(predicted, list) or not isinstance(true, list) or len(predicted) != len(true):
        return 0.0
    if not all(is_number(item) for item in (*predicted, *true)):
        return 0.0
    pairs: Any = zip(sorted(predicted), sorted(true), strict=True)
    return float(all(_close(first, second) for first, second in pairs))


def _close(predicted: float, true: float) -> bool:
    tolerance = abs(true) * RELATIVE_TOLERANCE
    return true - tolerance <= predicted <= true + tolerance


def read_number(text: str, vocabulary: Vocabulary = OFFICIAL) -> Value | None:
    """A number, a list or a tuple written in LaTeX or as an arithmetic expression; ``None`` without one.

    A valid LaTeX prefix is enough, so ``5, 6`` reads as 5. Raises ``LimitExceeded`` if the parser takes too long.
    """
    text = _plain_units(text)
    if _SIMPLE_DECIMAL.match(text):
        return _number_in(text)
    if text:
        printed = _printed_latex(first_tokens(text, MAX_LATEX_TOKENS))
        text = text if printed is None else printed
    return _number_in(text, vocabulary)


@functools.lru_cache(maxsize=1024)
def _printed_latex(text: str) -> str | None:
    printed: str | None = evaluate_in_process("latex_text", text, limit=READ_LIMIT)
    return printed


def _plain_units(text: str) -> str:
    text = text.replace(r"\pi", "π")
    text = re.sub(r"(?<![\d}])π", "3.14", text)
    text = re.sub(r"(?<=\d)π", "*3.14", text)
    text = text.replace("%", "/100")
    for unit in ("$", "¥", "°C", " C", "°"):
        text = text.replace(unit, "")
    return text


def _number_in(text: str, vocabulary: Vocabulary = OFFICIAL) -> Value | None:
    number = _float_in(text)
    if number is not None:
        return number
    try:
        value = evaluate(text, vocabulary)
    except ArithmeticRefused:
        return None
    return _float_in(value) if isinstance(value, str) else value


def _float_in(text: str) -> float | int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number
