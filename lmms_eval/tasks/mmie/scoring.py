"""Scores in a judge's replies, and the outcome of a sample from its scores (MMIE specification §8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from lmms_eval.api.judging import Verdict, repeat_name
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import View
from lmms_eval.utils.numbers import ScoreRange

LOWEST, HIGHEST = 0, 6
SCORES = ScoreRange(LOWEST, HIGHEST)
QUESTION = "mmie"
"""Name of the judge's question."""
NO_JUDGE = "no judge: give --judge_model"
NO_SCORE = "the judge's reply holds no score from 0 to 6"
_MARKER = "### Score"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
Outcome = Literal["scored", "unparsable", "skipped", "unscored"]


def read_score(reply: str) -> int | None:
    """Read the first number after the first marker, rounded to the nearest integer, ties to even.

    A number too large for a float is no score.
    """
    _, marker, rest = reply.partition(_MARKER)
    found = _NUMBER.search(rest) if marker else None
    try:
        return None if found is None else round(float(found.group()))
    except OverflowError:
        return None


def valid_score(reply: str) -> int | None:
    """Return the score of a reply if it is 0 ... 6, so that averages include it."""
    score = read_score(reply)
    return score if score is not None and LOWEST <= score <= HIGHEST else None


def is_readable(reply: str) -> bool:
    """Return whether a reply holds a valid score. If not, the question may be asked again."""
    return valid_score(reply) is not None


class JudgedSample(Struct, frozen=True):
    """The outcome of a sample."""

    outcome: Outcome
    score: int | None = None
    """Score of the first reply."""
    repeats: tuple[int | None, ...] = ()
    """The score of every reply, if the judge was asked repeatedly."""
    reason: str = ""
    """The reason why there is no score."""


def judged(view: View, verdicts: Mapping[str, Verdict], settings: Settings) -> JudgedSample:
    """Read the verdicts about a sample: the first one and its repeats."""
    if view.is_skipped:
        return JudgedSample("skipped", reason=f"skipped: {len(view.images)} pictures, more than {settings.max_images}")
    asked: list[Verdict] = []
    while (name := repeat_name(QUESTION, len(asked) + 1)) in verdicts:
        asked.append(verdicts[name])
    if not asked or asked[0].text is None:
        return JudgedSample("unscored", reason=f"the judge gave no reply: {asked[0].error}" if asked else NO_JUDGE)
    found = [valid_score(verdict.text or "") for verdict in asked]
    repeats = tuple(found) if len(found) > 1 else ()
    if found[0] is None:
        return JudgedSample("unparsable", repeats=repeats, reason=NO_SCORE)
    return JudgedSample("scored", found[0], repeats)
