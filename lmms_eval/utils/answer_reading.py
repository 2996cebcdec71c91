"""Notes that scoring functions make: the rule that parsed an answer (for the audit), and whether chance was involved.

The notes do not influence scores (``docs/results.md``).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from msgspec import Struct

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
_NOTES: ContextVar[ScoringNotes | None] = ContextVar("_NOTES", default=None)
T = TypeVar("T")
NOTING = ("note_reading", "note_letter", "guessed", "named_choice", "clearest_choice", "extract_mcq_answer")
"""Functions that note which answer they found."""
RUN_SEED: ContextVar[int] = ContextVar("RUN_SEED", default=0)
"""Seed of the run that calls a task's function; 0 outside a run."""


class AnswerReading(Struct, frozen=True):
    """The rule that parsed an answer, and what it found: several texts if the answer is ambiguous."""

    rule: str = ""
    """Name of the rule; empty if scoring did not report one."""
    found: tuple[str, ...] = ()
    """Found texts; long ones are cut."""


NO_READING = AnswerReading()


class ScoringNotes(Struct):
    """Notes of scoring functions about one answer."""

    reading: AnswerReading = NO_READING
    drew: bool = False
    """Chance was involved."""


def note_reading(rule: str, *found: str) -> None:
    """Note which rule parsed the answer that is being scored.

    The first note counts, unless it is ``NOTHING``: if there are several answers, the first that was parsed counts.

    Args:
        rule: name of the rule, the same for all answers that it parses.
        found: what the rule found, in the order of the answer; empty if the rule uses the whole answer.
    """
    notes = _NOTES.get()
    if notes is not None and notes.reading.rule in ("", NOTHING):
        notes.reading = AnswerReading(rule, tuple(dict.fromkeys(text[:_LONGEST] for text in found)))


def note_letter(rule: str, answer: str, *found: str) -> None:
    """Note which rule found letters in an answer. An answer that is just a letter has a rule of its own."""
    note_reading(LETTER_ALONE if answer.strip() in found else rule, *found)


def guessed(choices: Sequence[T], key: object) -> T:
    """Draw one of the choices, by the run's seed and a key, for an answer that names no choice, and note the draw.

    Args:
        choices: the choices.
        key: identifies this draw by its text form, such as the id of the document.

    Raises:
        IndexError: there are no choices.
    """
    note_chance()
    note_reading(DRAWN)
    return random.Random(f"{RUN_SEED.get()}:{key}").choice(choices)


def note_chance() -> None:
    """Note that the score of the current document depends on chance, now or when scores are aggregated."""
    notes = _NOTES.get()
    if notes is not None:
        notes.drew = True


class scoring_notes:
    """A context that collects notes, and with ``watch_generators`` draws from the process's generators.

    These generators are Python's and, if NumPy is loaded, its legacy one. All threads share them, so a draw of another
    thread counts too; watch them only for code that uses ``random``.
    """

    __slots__ = ("_before", "_token", "notes")

    def __init__(self, watch_generators: bool = False) -> None:
        self.notes = ScoringNotes()
        self._before = _generators() if watch_generators else None

    def __enter__(self) -> ScoringNotes:
        self._token = _NOTES.set(self.notes)
        return self.notes

    def __exit__(self, *_: object) -> None:
        _NOTES.reset(self._token)
        if self._before is not None:
            self.notes.drew = self.notes.drew or _generators() != self._before


class reading_apart(scoring_notes):
    """A context that collects notes, and makes them outside of it too."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        outer, notes = _NOTES.get(), self.notes
        if outer is not None:
            outer.drew = outer.drew or notes.drew
            if outer.reading.rule in ("", NOTHING) and notes.reading.rule:
                outer.reading = notes.reading


def _generators() -> tuple[Any, ...]:
    """Return the states of the process's random generators."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return (random.getstate(),)
    _, keys, place, *normal = numpy.random.get_state()
    return random.getstate(), keys.tobytes(), place, normal
