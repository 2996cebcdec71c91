"""Notes of scoring about the rule that read an answer, for the audit (``docs/results.md``); no score rests on them."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

NOTHING = "nothing found"
DRAWN = "drawn at random"
LETTER_ALONE = "letter alone"
FIRST_CHARACTER = "first character"
IN_PARENTHESES = "letter in parentheses"
BEFORE_STOP = "letter before a full stop"
BEFORE_BLANK = "letter before a blank"
BETWEEN_BLANKS = "letter between blanks"
OPTION_TEXT = "text of an option"
WORD_ALONE = "word alone"
WHOLE_ANSWER = "whole answer"
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """The rule that read an answer, and what it found: several things where the answer is ambiguous."""

    rule: str = ""
    """Empty: scoring told nothing."""
    found: tuple[str, ...] = ()
    """Long texts are cut."""


NOT_TOLD = AnswerReading()


@dataclass(slots=True)
class ReadingNotes:
    """Notes that are made while an answer is scored."""

    reading: AnswerReading = NOT_TOLD

    def add(self, rule: str, found: Sequence[str]) -> None:
        if self.reading.rule in ("", NOTHING):
            self.reading = AnswerReading(rule, tuple(dict.fromkeys(text[:_LONGEST] for text in found)))


_NOTES: ContextVar[ReadingNotes | None] = ContextVar("_NOTES", default=None)


def note_reading(rule: str, *found: str) -> None:
    """Note by which rule the answer at work was read.

    The first note stands, unless it is ``NOTHING``: of several answers it is then that of the first that was read.

    Args:
        rule: its name, the same for all answers that it reads.
        found: what it found, in the order of the answer; none where the rule reads the whole of it.
    """
    notes = _NOTES.get()
    if notes is not None:
        notes.add(rule, found)


def note_letter(rule: str, answer: str, *found: str) -> None:
    """Note by which rule letters were found in an answer; one that is nothing but a letter has a rule of its own."""
    note_reading(LETTER_ALONE if answer.strip() in found else rule, *found)


@contextmanager
def noting_reading() -> Iterator[ReadingNotes]:
    """Collect what is noted inside."""
    notes = ReadingNotes()
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


T = TypeVar("T")
RUN_SEED: ContextVar[int] = ContextVar("RUN_SEED", default=0)
"""Seed of the run whose task function is at work; 0 outside a run."""


@dataclass(slots=True)
class Chance:
    """Tells whether the scoring at work drew at random."""

    drew: bool = False


_CHANCE: ContextVar[Chance | None] = ContextVar("_CHANCE", default=None)


def guessed(choices: Sequence[T], key: object) -> T:
    """Draw one of the choices for an answer that names none of them, by the run's seed and a key, and note that.

    Args:
        choices: what is drawn from.
        key: text form of what tells this draw from others, such as the id of the document.

    Raises:
        IndexError: there are no choices.
    """
    note_chance()
    note_reading(DRAWN)
    return random.Random(f"{RUN_SEED.get()}:{key}").choice(choices)


def note_chance() -> None:
    """Note that chance decides the score of the document at work, now or when scores are aggregated."""
    chance = _CHANCE.get()
    if chance is not None:
        chance.drew = True


@contextmanager
def noting_chance(watch_generators: bool = False) -> Iterator[Chance]:
    """Note what is guessed inside; with ``watch_generators`` also what is drawn from the generators of the process.

    These are Python's and, where it is loaded, NumPy's older one. All threads share them, so that a draw of another
    thread is taken for one of this; watch them only for code that names ``random``.
    """
    chance = Chance()
    token = _CHANCE.set(chance)
    before = _generators() if watch_generators else None
    try:
        yield chance
    finally:
        _CHANCE.reset(token)
        if before is not None:
            chance.drew = chance.drew or _generators() != before


def _generators() -> tuple[Any, ...]:
    """The states of the generators of the process."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return (random.getstate(),)
    _, keys, place, *normal = numpy.random.get_state()
    return random.getstate(), keys.tobytes(), place, normal
