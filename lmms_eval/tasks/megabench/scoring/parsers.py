"""Response parsers: from a model's raw reply to the values of its answer fields."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.tasks.megabench.conversions.fences import Excerpt, FenceMode, extract_fence
from lmms_eval.tasks.megabench.conversions.literals import unwrap_string
from lmms_eval.tasks.megabench.conversions.structures import read_structure

_MARKER = "Answer:"
_WORD_MARKER = re.compile(r"\bAnswer:")
_BOLD_MARKER = re.compile(
    r"(?<!\*)(\*{1,3})[Aa]nswer(?::[ \t]*\1(?!\*)|\1:)"  # **Answer:** or **Answer**:
    r"|\b[Aa]nswer(?:\*{1,3}:|:\*{1,3}(?=\s|\Z))"  # the end of **Final Answer:**
)
_ANSWER_HEAD = re.compile(r"[A-Za-z0-9_-]|\([A-Za-z0-9_-]+\)\Z")


class AnswerShape(Struct, frozen=True):
    """Properties of the true answer that the string parsers need."""

    field: str
    """The only answer field of the task."""
    single_line: bool
    """Whether the true answer contains no newline."""


Parsed = Any
"""A dictionary by field, or (``dummy``) the bare text, or whatever structure the reply holds."""
Parser = Callable[[str, AnswerShape], Parsed]


def answer_string(reply: str, shape: AnswerShape, mode: FenceMode = "plain") -> Parsed:
    """Return the answer as one text: stripped, with the indentation of its first line, or with all blanks."""
    return {shape.field: parse_answer(reply, mode, single_line=shape.single_line)}


def json_answer(reply: str, _shape: AnswerShape) -> Parsed:
    """The structure in the reply; the values of a dictionary are freed of one layer of quotes."""
    return _unwrapped(read_structure(reply))


def _unwrapped(structure: Any) -> Parsed:
    if isinstance(structure, dict):
        return {key: unwrap_string(value) for key, value in structure.items()}
    return structure


def dummy(reply: str, _shape: AnswerShape) -> Parsed:
    """The reply itself, stripped."""
    return reply.strip()


PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        "answer_string": answer_string,
        "ascii_answer_string": functools.partial(answer_string, mode="ascii"),
        "verbatim_answer_string": functools.partial(answer_string, mode="verbatim"),
        "json": json_answer,
        "dummy": dummy,
        "unsupported": json_answer,
    }
)
"""By lower-case name. ``unsupported`` reads as ``json``; only the scorer's fallback to the raw reply differs."""
STRING_PARSERS = frozenset({"answer_string", "ascii_answer_string", "verbatim_answer_string"})
"""Parsers that need exactly one answer field."""


def is_repaired(name: str, reply: str) -> bool:
    """Return whether ``parse_repaired`` may differ from the official parser for a reply."""
    if name in STRING_PARSERS:
        return _BOLD_MARKER.search(reply) is not None
    return name == "json" and _MARKER in reply


def parse_repaired(name: str, reply: str, shape: AnswerShape) -> Parsed:
    """Return the result of the parser ``name`` without two faults of the official ones (scoring rules §3).

    Asterisks around the answer marker are dropped, and the ``json`` parser reads all that follows the marker.
    """
    if name in STRING_PARSERS:
        return PARSERS[name](_BOLD_MARKER.sub(_MARKER, reply), shape)
    if name == "json":
        return _unwrapped(read_structure(reply, whole_answer=True))
    return PARSERS[name](reply, shape)


def parse_answer(reply: str, mode: FenceMode, *, single_line: bool = False) -> str:
    """Return the final answer in a reply: after the answer marker, without code block and quotes.

    ``single_line``: the true answer has one line, so prose after a first paragraph that looks like an answer is cut
    (``plain`` mode only).
    """
    marked = marked_answer(reply).text
    if mode != "plain":
        marked = _tidy_blank_lines(marked)
        marked = marked if mode == "verbatim" else marked.rstrip()
    fenced = extract_fence(marked.strip() if mode == "plain" else marked, mode)
    text = fenced.text
    if mode == "plain" and single_line and not fenced.found:
        lines, paragraph = text.splitlines(), text.split("\n\n", 1)[0].strip()
        if len(lines) > 1 and not lines[1].strip() and _ANSWER_HEAD.match(paragraph):
            text = paragraph
    if text.startswith(("{", "[")):
        structure = read_structure(text)
        if (structure == {} and "{}" not in text) or (structure == [] and "[]" not in text):
            return text  # nothing could be read
        try:
            return str(structure)
        except (ValueError, RecursionError):  # an integer of thousands of digits, or nested too deeply to print
            return text
    return str(unwrap_string(text))


def marked_answer(reply: str) -> Excerpt:
    """Return the text after the first marker that starts a word, up to the next asterisk if one precedes the marker.

    The whole text without such a marker.
    """
    text = reply.replace("answer:", _MARKER)
    last = text.rfind(_MARKER)
    if last >= 0:
        text = text[:last].replace(_MARKER, "") + text[last:]
    marker = _WORD_MARKER.search(text)
    if marker is not None:
        end = text.find("*", marker.end()) if text[: marker.start()].endswith("*") else -1
        text = text[marker.end() : end if end >= 0 else None]
    return Excerpt(text, marker is not None)


def _tidy_blank_lines(text: str) -> str:
    """Replace runs of blank lines by one empty line, and remove them at both ends."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() or not lines or lines[-1].strip():
            lines.append(line)
        else:
            lines[-1] = ""
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return "\n".join(lines)
