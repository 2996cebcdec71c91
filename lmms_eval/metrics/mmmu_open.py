"""Open answers of MMMU: what a reply may mean, as numbers and texts, and whether one of them is right."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

Candidate = float | str

_LEADS = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
"""Words that an answer follows."""
_EMPTY = frozenset((*":,.!?;'", ""))
# A number is tried from the first of its digits alone and gives none of them back, so that reading takes linear time.
_NUMBERS = (
    re.compile(r"-?\b\d{1,3}(?:,\d{3})+\b"),
    re.compile(r"-?(?<!\d)\d++(?:\.\d++)?[eE][+-]?\d+"),
    re.compile(r"-?(?:(?<!\d)\d++\.\d++|\.\d++|(?<!\d)\d++\b)(?![eE][+-]?\d)(?![,\d])"),
)
"""Numbers with commas, in scientific form, and simple ones."""


def candidates(answer: str) -> list[Candidate]:
    """Return what an answer may mean, each once: numbers from the smallest, then texts in alphabetic order."""
    parts = _key_parts(answer.strip().strip(".").lower())
    numbers = [number for part in parts for pattern in _NUMBERS for number in pattern.findall(part)]
    found = {meaning for text in (*parts, *numbers) for meaning in normalised(text)}
    return sorted(found, key=lambda meaning: (isinstance(meaning, str), meaning))


def _is_without_value(text: str) -> bool:
    """Find a text that reads as a number, but as an infinite one or as none."""
    try:
        return not math.isfinite(float(text.strip().replace(",", "")))
    except ValueError:
        return False


def normalised(text: str) -> list[Candidate]:
    """Return a text as number with two decimals, as text in lower case, or as a character beside a blank."""
    text = text.strip()
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return [round(number, 2)]
    text = text.lower()
    return [f" {text}", f"{text} "] if len(text) == 1 else [text]


def is_right(said: Iterable[Candidate], gold: Sequence[str]) -> bool:
    """Tell whether a number equals one of the reference answers, or a text contains one.

    A reference answer that Python reads as infinite or as no number (``inf``, ``nan``) equals nothing.

    Args:
        said: what the answer may mean, as ``candidates`` finds it.
        gold: the reference answers.
    """
    wanted = [meaning for text in gold if not _is_without_value(text) for meaning in normalised(text)]
    texts = [meaning for meaning in wanted if isinstance(meaning, str)]
    return any(
        any(text in meaning for text in texts) if isinstance(meaning, str) else meaning in wanted for meaning in said
    )


def _key_parts(text: str) -> list[str]:
    """Return what follows the last lead of each line, as short as possible; the whole text without any."""
    lines = text.split("\n")
    parts = []
    for number, line in enumerate(lines):
        leads = (*_LEADS, "=") if number == len(lines) - 1 else _LEADS
        tails = [line.rpartition(lead)[2].strip() for lead in leads if lead in line]
        if tails and (tail := min(tails, key=len)) not in _EMPTY:
            parts.append(tail)
    return parts or [text]
