"""Constraints on the lines of a poem: syllables, rhymes, metre.

Nothing here enumerates combinations: the syllables that a line can have are a set of sums, and a line's metre is a walk
over its words with one of four states, so that the time is linear in the text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lmms_eval.tasks.megabench.metrics.pronunciation import MAX_WORD_CHARS, phones_for_word, rhyming_part, stresses

_RANGE = re.compile(r"\[\s*+(\d++)\s*+(?:,\s*+(\d++)\s*+)?\]|(\d)| ")
_REMOVED = str.maketrans(dict.fromkeys('.,!?:;"', "") | {"-": " ", "—": " "})
MAX_SYLLABLES = 10_000
"""A line with more is in no range."""
_IAMBIC_PAIRS = frozenset({"00", "01", "02", "11", "21", "22"})


@dataclass(frozen=True, slots=True)
class SyllableRange:
    """Range of the syllables of a line, both ends included."""

    least: int
    most: int


def clean_lines(text: str) -> list[str]:
    """The lines of a poem: lower case, without punctuation and without a label such as ``(A)`` at their end."""
    return [_without_label(line).lower() for line in text.strip().translate(_REMOVED).split("\n")]


def _without_label(line: str) -> str:
    bare = line.rstrip()
    is_labelled = len(bare) >= 3 and bare[-3] == "(" and bare[-1] == ")"
    return bare[:-3].rstrip() if is_labelled else line


def parse_syllable_ranges(value: str) -> list[SyllableRange]:
    """One range for each ``[a,b]``, ``[a]`` or digit; a blank between them means an empty line.

    Anything else stands for nothing, blanks at both ends included.
    """
    ranges = []
    for match in _RANGE.finditer(value.strip()):
        least = match[1] or match[3] or "0"
        ranges.append(SyllableRange(int(least), int(match[2] or least)))
    return ranges


def syllables(lines: list[str], value: str) -> bool:
    """Check that every line can be read with a number of syllables in its range."""
    ranges = parse_syllable_ranges(value)
    return len(lines) == len(ranges) and all(
        any(wanted.least <= total <= wanted.most for total in syllable_totals(line, wanted.most))
        for line, wanted in zip(lines, ranges, strict=True)
    )


def syllable_totals(line: str, most: int) -> Iterator[int]:
    """The numbers of syllables up to ``most`` that a line can have; none if it has an unknown word.

    The set of sums is a whole number whose bit ``n`` stands for ``n`` syllables.
    """
    sums, mask = 1, (1 << (min(most, MAX_SYLLABLES) + 1)) - 1
    for word in line.split():
        counts = {len(stresses(phones)) for phones in phones_for_word(word)}
        shifted = 0
        for count in counts:
            shifted |= sums << count
        sums = shifted & mask
        if not sums:
            return
    yield from (total for total in range(sums.bit_length()) if sums >> total & 1)


def rhyming_scheme(lines: list[str], scheme: str) -> bool:
    """Check that lines rhyme if and only if they have the same letter; a blank is an empty line.

    Raises ``IndexError`` for a line of blanks, whatever its letter.
    """
    if len(lines) != len(scheme):
        return False
    words: dict[str, set[str]] = {}
    for line, letter in zip(lines, scheme, strict=True):
        last = line.split()[-1] if line else None
        if (last is None) != (letter == " "):
            return False
        if last is not None:
            words.setdefault(letter, set()).add(last)
    seen: set[str] = set()
    for group in words.values():
        shared = set.intersection(*({rhyming_part(phones) for phones in phones_for_word(word)} for word in group))
        if not shared or shared & seen:
            return False
        seen |= shared
    return True


def poetry_meter(lines: list[str], _value: str) -> bool:
    """Check that every line is iambic."""
    return all(is_line_iambic(line) for line in lines)


def is_line_iambic(line: str) -> bool:
    """Check for pronunciations whose stresses, taken in pairs over the line, rise or stay level.

    The total must be even; an unknown word fits no metre, an empty line every one.
    """
    open_halves = frozenset({""})
    for word in line.split():
        if not open_halves or len(word) > MAX_WORD_CHARS:
            return False
        open_halves = _halves_after(open_halves, word)
    return "" in open_halves


@functools.lru_cache(maxsize=8192)
def _halves_after(halves: frozenset[str], word: str) -> frozenset[str]:
    """The first halves of pairs that can be open after a word, from those that can be open before it."""
    patterns = {half + stresses(phones) for phones in phones_for_word(word) for half in halves}
    return frozenset(
        pattern[len(pattern) - len(pattern) % 2 :]
        for pattern in patterns
        if all(pattern[index : index + 2] in _IAMBIC_PAIRS for index in range(0, len(pattern) - 1, 2))
    )
