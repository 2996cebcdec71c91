"""Parsing of a judge's replies: numbers, yes or no, JSON (harness specification §9.4)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from lmms_eval.api.response import is_invisible
from lmms_eval.errors import TaskError

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WRONG = ("INCORRECT", "NOT_ATTEMPTED")
_RIGHT = ("correct", "yes", "true", "1")
NO_SCORES = (-1.0, -1.0)


def parse_binary(text: str, output_format: str = "0/1") -> int | bool:
    """For ``0/1``, return 1 if the text contains the character 1; else (``yes/no``) whether it begins with yes."""
    if output_format == "0/1":
        return 1 if "1" in text else 0
    return text.strip().lower().startswith("yes")


def parse_binary_response(text: str) -> bool:
    """Return whether a reply means right: it contains correct, yes, true or 1 in any case, and no wrong verdict.

    Wrong verdicts are ``INCORRECT`` and ``NOT_ATTEMPTED``. Parts of words count, so ``untrue`` and ``10`` mean right.
    """
    if any(verdict in text.upper() for verdict in _WRONG):
        return False
    return any(word in text.lower() for word in _RIGHT)


def parse_comparative(text: str) -> tuple[float, float]:
    """Return the first two numbers of the first line, or ``(-1, -1)`` if there are fewer."""
    numbers = _NUMBER.findall(text.strip().split("\n")[0])
    return (float(numbers[0]), float(numbers[1])) if len(numbers) >= 2 else NO_SCORES


def parse_score(text: str, score_range: tuple[float, float] | None = None) -> float:
    """Return the first number, clipped to the range; without a number, the range's lower bound, or 0."""
    found = _NUMBER.search(text)
    if found is None:
        return float(score_range[0]) if score_range else 0.0
    value = float(found.group())
    return value if score_range is None else max(float(score_range[0]), min(float(score_range[1]), value))


def parse_json(text: str) -> dict[str, Any]:
    """Return the object from the first brace to the last one; an empty one if that is not a JSON object."""
    try:
        value = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


READERS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "text": lambda text: not is_invisible(text),
        "score": lambda text: _NUMBER.search(text) is not None,
        "binary": lambda text: "0" in text or "1" in text,
        "yes_no": lambda text: re.search(r"\b(?:yes|no)\b", text, re.IGNORECASE) is not None,
        "comparative": lambda text: parse_comparative(text) != NO_SCORES,
        "json": lambda text: bool(parse_json(text)),
    }
)
"""Tests of replies by name: each returns whether the text can be parsed in that form."""


def reader(named: Any, where: str) -> Callable[[str], bool]:
    """Return the test that ``named`` selects: one of ``READERS`` by name, or a function of the reply's text.

    Raises:
        TaskError: ``named`` is neither.
    """
    if callable(named):
        function: Callable[[str], Any] = named

        def is_read(text: str) -> bool:
            """A task's own reader rejects a reply with ``False``, ``None`` or a conversion error."""
            try:
                value = function(text)
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
                return False
            return value is not None and value is not False

        return is_read
    if named not in READERS:
        raise TaskError(f"{where}: reader {named!r} is unknown; give a function or one of {', '.join(READERS)}")
    return READERS[named]
