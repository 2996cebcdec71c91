"""Choice questions by the ``official`` rules: which option's letter the reference reads from an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval.tasks.milebench.scoring.letters import official_letters
from lmms_eval.tasks.milebench.scoring.normalise import normalise
from lmms_eval.tasks.milebench.scoring.occurrence import possible

EMPTY_COUNTS_AS = "C"
_LONGEST_BARE_LETTER = 2
_ESCAPED = frozenset(r"\.^$*+?{}[]|()")
"""Escaped by the reference in an option before it compares it: one with any of these never matches by its text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The letters read from an answer (not always one in use), and the step that read them."""

    extracted: str
    step: str


def read_letter(text: str, options: Sequence[str]) -> Reading:
    """The letter that the reference selects; ``text`` and ``options`` are normalised.

    Steps: ``empty``, ``letter and text``, ``text``, ``bare letter``, ``letters collected``.
    """
    letters = official_letters(len(options))
    if not text:
        return Reading(EMPTY_COUNTS_AS, "empty")
    labelled = [normalise(f"{letter} {option}") for letter, option in zip(letters, options, strict=True)]
    found = leftmost(text, labelled)
    if found is not None:
        return Reading(labelled[found][:1].upper(), "letter and text")
    bare = [normalise(option).replace(" ", "") for option in options]  # a second time, as the reference does
    found = leftmost(text.replace(" ", ""), bare)
    if found is not None and _ESCAPED.isdisjoint(bare[found]):
        return Reading(letters[found].upper(), "text")
    if len(text) <= _LONGEST_BARE_LETTER and text.upper() in letters:
        return Reading(text.upper(), "bare letter")
    capitals = {character: character.upper() for character in set(text)}
    used = frozenset(letters)
    collected = text.translate({ord(one): upper if upper in used else "" for one, upper in capitals.items()})
    return Reading(collected, "letters collected")


def leftmost(text: str, pieces: Sequence[str]) -> int | None:
    """The piece that occurs first in ``text`` (the earlier of two at one place); ``None`` if none occurs."""
    best, place = None, len(text) + 1
    for index in possible(text, pieces):
        piece = pieces[index]
        at = text.find(piece, 0, place - 1 + len(piece))  # only an occurrence further left is of interest
        if at >= 0:
            best, place = index, at
            if at == 0:
                break
    return best
