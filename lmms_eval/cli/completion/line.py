"""A command line as far as it is typed: its words without quotes, and how a suggestion must be quoted there."""

from __future__ import annotations

import re
from typing import NamedTuple

_UNSAFE = re.compile(r"[^\w%+,./:=@-]")
_IN_DOUBLE_QUOTES = re.compile(r'["$`\\]')


class Line(NamedTuple):
    """The words behind the command. A named tuple, since it is made at every press of a key."""

    words: list[str]
    """Without quotes and backslashes; the last one is being typed, perhaps empty."""
    quote: str = ""
    """The quotation mark that is open."""
    kept: int = 0
    """Characters of the last word that the shell does not replace: they stand before a mark that breaks words."""

    def typed(self, value: str) -> str:
        """Return a value of the last word as it is typed in its place, or nothing where it cannot be."""
        rest = value[self.kept :]
        if self.quote == "'":
            return rest if "'" not in rest else ""
        if self.quote == '"':
            return _IN_DOUBLE_QUOTES.sub(r"\\\g<0>", rest) if "!" not in rest else ""
        return _UNSAFE.sub(r"\\\g<0>", rest)


def lexed(text: str, breaks: str) -> Line:
    """Read a line up to the cursor; assignments and the command before the words fall away.

    Args:
        text: the line, or, without ``breaks``, one word of it.
        breaks: characters, of which some break words for the shell (``COMP_WORDBREAKS``).
    """
    words, word, quote, kept = [], "", "", 0
    is_open, escaped = False, False
    for char in text:
        if escaped:
            word, escaped = word + char, False
        elif char == "\\" and quote != "'":
            escaped = is_open = True
        elif quote:
            quote, word = ("", word) if char == quote else (quote, word + char)
        elif char in "\"'":
            quote, kept, is_open = char, len(word), True
        elif char in " \t\n" and breaks:
            if is_open:
                words.append(word)
            word, kept, is_open = "", 0, False
        else:
            word, is_open = word + char, True
            kept = len(word) if char in ":=" and char in breaks else kept
    words.append(word)
    if not breaks:
        return Line(words, quote, kept)
    first = next((place for place, each in enumerate(words) if not _is_assignment(each)), 0)
    return Line(words[first + 1 :] or [""], quote, kept)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()
