"""Marks of pictures in a text: ``<image>description</image>``, or ``<image>`` alone after the text that it shows."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_DESCRIPTION_CHARS = 1000
"""Characters of the text before a mark without description: its end says what the picture shows."""
INSTRUCTION = (
    "Where a picture helps, describe it on a line of its own as <image>description of the picture</image>: a "
    "description that stands by itself, in one or two sentences. The picture is drawn from it and put in that place."
)
"""Instruction of a task to a model that cannot draw."""
_MARK = re.compile(r"<image>(?P<said>(?:(?!<image>).)*?)</image>|<image>|\[image\]", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A picture that the text asks for."""

    description: str


def split_marks(text: str) -> list[str | Wanted]:
    """Texts and wanted pictures in order; a mark that neither says nor follows any text is left out."""
    pieces: list[str | Wanted] = []
    place = 0
    for mark in _MARK.finditer(text):
        if before := text[place : mark.start()]:
            pieces.append(before)
        if said := (mark["said"] or "").strip() or before.strip()[-MAX_DESCRIPTION_CHARS:]:
            pieces.append(Wanted(said))
        place = mark.end()
    if rest := text[place:]:
        pieces.append(rest)
    return pieces


def in_words(text: str) -> str:
    """The text with descriptions in words, for a reader who would take a mark for a picture."""
    return _MARK.sub(lambda mark: f"(picture: {said})" if (said := (mark["said"] or "").strip()) else "", text)


def count_marks(text: str) -> int:
    """Count the pictures that the text asks for."""
    return sum(isinstance(piece, Wanted) for piece in split_marks(text))
