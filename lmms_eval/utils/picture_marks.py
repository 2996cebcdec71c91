"""Picture marks in a text: ``<image>description</image>``, or ``<image>`` alone after the text that it illustrates."""

from __future__ import annotations

import re

from msgspec import Struct

MAX_DESCRIPTION_CHARS = 1000
"""Characters of the text before a mark without description that are used as its description."""
INSTRUCTION = (
    "Where a picture helps, describe it on a line of its own as <image>description of the picture</image>: a "
    "description that stands by itself, in one or two sentences. The picture is drawn from it and put in that place."
)
"""Instruction to a model that cannot draw."""
_MARK = re.compile(r"<image>(?P<text>(?:(?!<image>).)*?)</image>|<image>|\[image\]", re.DOTALL | re.IGNORECASE)


class WantedPicture(Struct, frozen=True):
    """A picture that a text asks for."""

    description: str


def split_marks(text: str) -> list[str | WantedPicture]:
    """Split a text into texts and wanted pictures. A mark without description and without text before it is dropped."""
    pieces: list[str | WantedPicture] = []
    place = 0
    for mark in _MARK.finditer(text):
        if before := text[place : mark.start()]:
            pieces.append(before)
        if description := (mark["text"] or "").strip() or before.strip()[-MAX_DESCRIPTION_CHARS:]:
            pieces.append(WantedPicture(description))
        place = mark.end()
    if rest := text[place:]:
        pieces.append(rest)
    return pieces


def in_words(text: str) -> str:
    """Replace the marks by their descriptions in words, for readers that would take a mark for a picture."""
    return _MARK.sub(lambda mark: f"(picture: {found})" if (found := (mark["text"] or "").strip()) else "", text)


def count_marks(text: str) -> int:
    """Return the number of pictures that a text asks for."""
    return sum(isinstance(piece, WantedPicture) for piece in split_marks(text))
