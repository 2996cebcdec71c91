"""The reader behind the ``json`` parser: finds dictionaries and lists in free text, as JSON or as Python literals."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

from lmms_eval.tasks.megabench.conversions.fences import Excerpt, extract_json_fence
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal

MAX_SPANS = 2_000
"""Most candidate structures of a text that are tried, from the last one backwards."""

_ANSWER_LINE = re.compile(r"^(?:\*\*)?Answer:\s*(.*)", re.MULTILINE)
_ANSWER_REST = re.compile(r"^(?:\*\*)?Answer:(?:\*\*)?\s*(.*)", re.MULTILINE | re.DOTALL)
_BRACKET = re.compile(r"[{}\[\]]")
_LOOSE_QUOTE = re.compile(r"(?<!\w)'|'(?!\w)")
_BACKSLASH_QUOTE = re.compile(r"\\(?=[\"'])")
_MASKED_DOUBLE, _MASKED_SINGLE = "__DOUBLE_QUOTE__", "__SINGLE_QUOTE__"


_UNREADABLE = object()


def read_structure(text: str, *, whole_answer: bool = False) -> Any:
    """Read the last dictionary or list in the text, as JSON or (preferred) as a Python literal.

    If a line starts with ``Answer:``, only what follows on the first such line is read; then the content of a
    ```` ```json ```` block if there is one. Without anything readable: ``[]`` if the text starts with ``[``, else
    ``{}``. With ``whole_answer`` all text after the marker is read. The result may be a list with
    tuples, a set or a dictionary with any keys.
    """
    text = extract_json_fence(answer_part(text, whole_answer=whole_answer).text).text
    for span in reversed(deque(_spans(text), maxlen=MAX_SPANS)):  # the last one counts
        value = _read_span(span)
        if value is not _UNREADABLE:
            return value
    return [] if text.startswith("[") else {}


def answer_part(text: str, *, whole_answer: bool = False) -> Excerpt:
    """Return the part that ``read_structure`` reads, stripped: what follows ``Answer:`` if it is found."""
    answer = (_ANSWER_REST if whole_answer else _ANSWER_LINE).search(text)
    return Excerpt((answer.group(1) if answer else text).strip(), answer is not None)


def _spans(text: str) -> Iterator[str]:
    """Yield candidate structures from left to right: ``{`` to its partner, ``[`` to the last ``]`` in reach."""
    text = text[: max(text.rfind("}"), text.rfind("]")) + 1]  # no bracket closes after it
    brackets = "".join(_BRACKET.findall(text))
    positions = [match.start() for match in _BRACKET.finditer(text)]
    partner = _partners(brackets)
    # for each index the last "]" before an unmatched brace, skipping {...}; -1 without one
    reach = [-1] * (len(brackets) + 1)
    for place in range(len(brackets) - 1, -1, -1):
        kind, further = brackets[place], reach[place + 1]
        if kind == "{":
            reach[place] = reach[partner[place] + 1] if partner[place] >= 0 else -1
        elif kind != "}":
            reach[place] = place if kind == "]" and further < 0 else further
    index = 0
    while index < len(brackets):
        last = partner[index] if brackets[index] == "{" else reach[index + 1] if brackets[index] == "[" else -1
        if last >= 0:
            yield text[positions[index] : positions[last] + 1]
        index = max(index, last) + 1


def _partners(brackets: str) -> list[int]:
    """Return for each ``{`` the index of its ``}``, and -1 for all other characters. Square brackets are ignored."""
    stack: list[int] = []
    partner = [-1] * len(brackets)
    for index, kind in enumerate(brackets):
        if kind == "{":
            stack.append(index)
        elif kind == "}" and stack:
            partner[stack.pop()] = index
    return partner


def _read_span(span: str) -> Any:
    """Read a literal or JSON, also with loose quotes; ``_UNREADABLE`` if it is neither."""
    span = _unquote_structures(span)
    literals = [span, _BACKSLASH_QUOTE.sub(r"\\\\", span)] if _BACKSLASH_QUOTE.search(span) else [span]
    for text in literals:
        try:
            return read_literal(text)
        except LiteralError:
            pass
    for text in (span, _LOOSE_QUOTE.sub('"', span)):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return _UNREADABLE


def _unquote_structures(span: str) -> str:
    """Replace each double-quoted text that holds a JSON object or array by that object or array."""
    masked = span.replace('\\"', _MASKED_DOUBLE).replace("\\'", _MASKED_SINGLE)
    replacement: dict[str, str] = {}
    for content in dict.fromkeys(re.findall(r'"([^"]*)"', masked)):
        if content.lstrip().startswith(("{", "[")):
            try:
                value = json.loads(content.replace(_MASKED_DOUBLE, '"').replace(_MASKED_SINGLE, "'"))
                if isinstance(value, dict | list):
                    replacement[content] = json.dumps(value)
            except (ValueError, RecursionError):
                pass
    # "key" is replaced wherever it occurs, whatever the quotes around it belong to
    pieces = masked.split('"')
    output, index = [pieces[0]], 1
    while index < len(pieces):
        if index + 1 < len(pieces) and pieces[index] in replacement:
            output += [replacement[pieces[index]], pieces[index + 1]]
            index += 2
        else:
            output += ['"', pieces[index]]
            index += 1
    return "".join(output).replace(_MASKED_DOUBLE, '\\"').replace(_MASKED_SINGLE, "\\'")
