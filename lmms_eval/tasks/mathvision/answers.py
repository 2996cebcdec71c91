"""The answer in a response, cleaned as the benchmark's authors do, and its comparison with the reference."""

from __future__ import annotations

import re

from lmms_eval.metrics.math_answers import MAX_NUMBER_CHARS, latex_number
from lmms_eval.utils.answer_reading import NOTHING, WHOLE_ANSWER, note_reading

_LETTERS = "ABCDE"
_PHRASES = ("the final answer is", "the answer is", "the correct answer is", "the answer should be")
_DECIMALS = 2
_REMOVED = (
    "\\text", "\\mbox", "\\left", "\\right", "\\!", "^{\\circ}", "^\\circ", "{m}^3", "m^3", "{units}", "units", "{km}",
    "km", "\\$", "$", "\\%",
)  # fmt: skip
_REPLACED = (("bmatrix", "pmatrix"), ("tfrac", "frac"), ("dfrac", "frac"), ("{.", "{0."))


def final_answer(response: str) -> str:
    """Return the answer that a response ends with, in lower case and simplified LaTeX."""
    letter = _letter(response)
    text = _stated(letter)
    rule = _rule(response, letter, text)
    if text.count("oxed{") > 1:
        text = f"oxed{{{text.rpartition('oxed{')[2]}"
    text = _cleaned(text)
    text = re.sub(r"\(([a-e])\)", r"\1", text)
    text = re.sub(r"\{([a-e])\}", r"\1", text)
    found = text.rstrip(".").lstrip(":").strip()
    if found:
        note_reading(rule, found)
    else:
        note_reading(NOTHING)
    return found


def _rule(response: str, letter: str, stated: str) -> str:
    """Name the step that found the answer, from what the steps left of a response."""
    if "oxed{" in stated:
        return "box"
    if stated != letter:
        return "what is stated"
    return "letter at an end" if letter != response else WHOLE_ANSWER


def _letter(text: str) -> str:
    """Return the letter that a text begins or ends with in one of the usual ways; else the text."""
    for letter in _LETTERS:
        begins = (f"{letter}\n", f"({letter})\n", f"({letter}) {letter}\n")
        if text.endswith((f" {letter}.", f" ({letter}).")) or text.startswith(begins):
            text = letter
    return text


def _stated(text: str) -> str:
    """Return the number after the last ``is``, or the sentence after "the answer is" and its like; else the text."""
    last = text.split("is ")[-1].rstrip(".")
    try:
        float(last)
    except ValueError:
        pass
    else:
        text = last
    if "oxed{" in text:
        return text
    for phrase in (form for one in _PHRASES for form in (one, one.replace("the", "The", 1))):
        if phrase in text:
            text = text.rpartition(phrase)[2].strip().split("\n")[0].split(". ")[0]
    return text


def _cleaned(text: str) -> str:
    text = text.lower().replace("{}", "")
    _, opening, rest = text.partition("oxed{")
    content, closing, _ = rest.rpartition("}")  # a box ends with the last brace of the text
    text = _closed(content if opening and closing else text).split("=")[-1].split("\\approx")[-1]
    for blank in (" ", "\\,", "\n"):
        text = text.replace(blank, "")
    text = text.replace("∞", "\\infty").replace("\\\\", "\\")
    for mark in _REMOVED:
        text = text.replace(mark, "")
    for old, new in _REPLACED:
        text = text.replace(old, new)
    if text.startswith("."):
        text = f"0{text}"
    if "sqrt" in text:
        text = re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", text)
        text = re.sub(r"\\frac([^{])([^{])", r"\\frac{\1}{\2}", text)
        text = re.sub(r"\\frac([^{])(?={)", r"\\frac{\1}", text)
    if text == "0.5":
        return "\\frac{1}{2}"
    return re.sub(r"\A(-?\d+)/(-?\d+)\Z", r"\\frac{\1}{\2}", text)


def _closed(text: str) -> str:
    """Return the text up to its first closing brace if no brace opens before it."""
    before, closing, _ = text.partition("}")
    return before if closing and "{" not in before else text


def is_equal(one: str, other: str) -> bool:
    """Return whether two answers are the same text, the same list of numbers, or numbers equal to two decimals.

    Raises:
        NotEvaluated: the package that reads LaTeX is not installed.
    """
    one, other = one.lower().strip(), other.lower().strip()
    if not one or not other:
        return False
    if one == other:
        return True
    items = _rounded_list(one)
    if items is not None and items == _rounded_list(other):
        return True
    number = latex_number(one, _DECIMALS)
    return number is not None and number == latex_number(other, _DECIMALS)


def _rounded_list(text: str) -> list[str] | None:
    """Return the opening bracket of ``(a,b)`` or ``[a,b]`` and its numbers as printed; ``None`` for any other text."""
    items = text[1:-1].split(",")
    if text[0] + text[-1] not in ("()", "[]") or len(items) < 2 or len(text) > MAX_NUMBER_CHARS:
        return None
    numbers = [latex_number(item.strip(), _DECIMALS) for item in items]
    return None if None in numbers else [text[0], *map(str, numbers)]
