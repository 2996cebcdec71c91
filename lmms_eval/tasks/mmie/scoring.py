"""The score in a judge's reply (MMIE specification §8)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmms_eval.utils.numbers import ScoreRange

LOWEST, HIGHEST = 0, 6
SCORES = ScoreRange(LOWEST, HIGHEST)
_MARKER = "### Score"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class ScoreReading:
    """What stands behind the marker."""

    score: int | None
    """The number, rounded; ``None`` if there is none."""

    @property
    def counted(self) -> bool:
        """It is one of 0 ... 6 and enters the averages."""
        return self.score is not None and LOWEST <= self.score <= HIGHEST


def read_score(reply: str) -> ScoreReading:
    """The first number behind the first marker, rounded to the nearest integer, ties to even.

    A number too large for a float is no score.
    """
    _, marker, rest = reply.partition(_MARKER)
    found = _NUMBER.search(rest) if marker else None
    if found is None:
        return ScoreReading(None)
    try:
        return ScoreReading(round(float(found.group())))
    except OverflowError:
        return ScoreReading(None)


def is_readable(reply: str) -> bool:
    """The reply holds a score that counts; any other may be asked again."""
    return read_score(reply).counted
