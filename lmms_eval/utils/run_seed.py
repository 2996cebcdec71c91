"""Chance in scoring: the run's seed for helpers that draw without being told of a document; a note that one drew."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from lmms_eval.utils.answer_reading import DRAWN, note_reading

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
