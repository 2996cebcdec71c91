"""Code blocks fenced by three backticks."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

FenceMode = Literal["plain", "ascii", "verbatim"]

_FENCE = "```"
_JSON_FENCE = "```json"
_WORD = re.compile(r"\w*")
_LONG_INPUT = 10_000


class Excerpt(Struct, frozen=True):
    """A part of a text, such as the content of its first code block; if none is ``found``, the text itself."""

    text: str
    found: bool


def extract_fence(text: str, mode: FenceMode = "plain") -> Excerpt:
    """Extract the first code block of ``text``. Word characters after the opening backticks are its language tag.

    ``plain`` strips the content on both sides. ``ascii`` keeps the indentation of the first line and drops blanks at
    the end; ``verbatim`` also keeps the trailing blanks of the last line.
    """
    if mode != "plain" and (len(text) > _LONG_INPUT or not text.strip()):
        text = text.rstrip()
    start = text.find(_FENCE)
    if start < 0:
        return Excerpt(text, False)
    tag = _WORD.match(text, start + len(_FENCE))
    body = tag.end() if tag else start + len(_FENCE)
    end = text.find(_FENCE, body)
    if end < 0:
        return Excerpt(text, False)
    content = text[body:end]
    if mode == "plain":
        return Excerpt(content.strip(), True)
    blank = len(content) - len(content.lstrip())
    content = content[content.rfind("\n", 0, blank) + 1 :]
    if mode == "ascii":
        return Excerpt(content.rstrip(), True)
    newline = content.find("\n", len(content.rstrip()))
    return Excerpt(content if newline < 0 else content[:newline], True)


def extract_json_fence(text: str) -> Excerpt:
    """Extract the first block whose tag begins with ``json``, stripped; the rest of the tag (``jsonc``) is kept."""
    start = text.find(_JSON_FENCE)
    body = start + len(_JSON_FENCE)
    end = text.find(_FENCE, body)
    if start < 0 or end < 0:
        return Excerpt(text, False)
    return Excerpt(text[body:end].strip(), True)
