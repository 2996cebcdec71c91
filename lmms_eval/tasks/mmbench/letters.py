"""The letter that an answer to MMBench means: by its words, or by the text of one option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LETTERS = "ABCDE"
_FORMS = (
    ("", "."), ("", ","), ("", ":"), ("", ")"), ("", ")."), ("(", ")"), ("(", ")."), (":", ""), (":", ","), (":", "."),
    (":", ")"), (":", ")."),
)  # fmt: skip
_ABSENT = ("", "nan")
_ARTICLE, _FEW_WORDS = "A", 3
_COMPARED = "ABCD"


def options_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a document by their letters, without absent ones (null, empty, ``nan``)."""
    given = {letter: row.get(letter) for letter in LETTERS}
    return {letter: str(text) for letter, text in given.items() if text is not None and str(text) not in _ABSENT}


def find_letter(answer: str, options: Mapping[str, str]) -> str | None:
    """Find the one letter that an answer names, else the one option whose text it holds; ``None`` if there is no one.

    All five letters count, whatever options there are. An ``A`` among more than three words may be the article.
    """
    words = answer.split()
    present = frozenset(words)
    named = _named(present)
    if len(named) == 1 and not (_ARTICLE in named and len(words) > _FEW_WORDS):
        return named[0]
    for before, after in _FORMS:
        named = _named(present, before, after)
        if len(named) == 1:
            return named[0]
    text = answer.lower()
    held = [letter for letter, option in options.items() if letter in _COMPARED and option.lower() in text]
    return held[0] if len(held) == 1 else None


def _named(present: frozenset[str], before: str = "", after: str = "") -> list[str]:
    return [letter for letter in LETTERS if f"{before}{letter}{after}" in present]
