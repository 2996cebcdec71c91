"""JSON lists and objects in replies, fenced or not, wherever they stand. Time grows in proportion to the reply."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SIGN = re.compile(r'[\[\]{}"\n]|\\.', re.DOTALL)
_OPENS = {"]": "[", "}": "{"}
_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_NONE = re.compile(r"\bNone\b")
_MOST_VALUES = 50
_MAX_DIGITS = 18
"""Of an integer: what 64 bits hold."""


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    sign: str


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    stop: int


def json_values(text: str) -> Iterator[Any]:
    """The JSON lists and objects of a text that stand in no other, the last first; 50 at most.

    A list that the end of the reply cut short comes first of all, with the entries that are complete. Single quotes,
    ``None`` and commas before a closing bracket, as Python writes lists, are read too.
    """
    spans, unclosed = _spans(text)
    if spans:
        start = next((place.start for place in reversed(unclosed) if place.start < spans[-1].start), None)
        if start is not None and text[start] == "[":
            yield from _parsed(text[start : spans[-1].stop] + "]")
    yield from itertools.islice(
        (value for span in reversed(spans) for value in _parsed(text[span.start : span.stop])), _MOST_VALUES
    )


def _spans(text: str) -> tuple[list[_Span], list[_Place]]:
    """Finds the outermost pairs of brackets in order, and the brackets that nothing closes."""
    opened: list[_Place] = []
    spans: list[_Span] = []
    pending = {"[": 0, "{": 0}
    for place in _brackets(text):
        wanted = _OPENS.get(place.sign)
        if wanted is None:
            opened.append(place)
            pending[place.sign] += 1
        elif pending[wanted]:
            while (last := opened.pop()).sign != wanted:
                pending[last.sign] -= 1
            pending[wanted] -= 1
            while spans and spans[-1].start > last.start:
                spans.pop()
            spans.append(_Span(last.start, place.start + 1))
    return spans, opened


def _brackets(text: str) -> Iterator[_Place]:
    """Yields the brackets outside of quotations; a quotation mark that its line does not close begins none."""
    held: list[_Place] | None = None
    for match in _SIGN.finditer(text):
        sign = match[0]
        if sign == '"':
            held = [] if held is None else None
        elif sign == "\n":
            yield from held or ()
            held = None
        elif sign[0] != "\\":
            place = _Place(match.start(), sign)
            if held is None:
                yield place
            else:
                held.append(place)
    yield from held or ()


def _parsed(text: str) -> Iterator[Any]:
    """Yields the value of a text, if it is one, as JSON or as nearly that: other quotes, ``None``, a last comma."""
    plain = _TRAILING_COMMA.sub("", _NONE.sub("null", text))
    for attempt in (text, plain if '"' in plain else plain.replace("'", '"')):
        try:
            yield json.loads(attempt, parse_constant=_refuse, parse_int=_integer, parse_float=_float)
        except (ValueError, RecursionError):
            continue
        return


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("an integer of too many digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.40} is no finite number")
    return number


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")
