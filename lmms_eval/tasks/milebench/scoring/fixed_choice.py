"""Choice questions by the ``fixed`` rules: finds the option that an answer names in its raw text."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from itertools import groupby

_LETTERS = 26


def official_letter(index: int) -> str:
    """Return the evaluator's key of the option with this index (from 0).

    ``A`` … ``Z``, ``AA`` … ``AZ``, then ``B`` and the code point ``65 + index − 52``, which runs past ``BZ``.
    """
    if index < _LETTERS:
        return chr(65 + index)
    if index < 2 * _LETTERS:
        return "A" + chr(65 + index - _LETTERS)
    return "B" + chr(65 + index - 2 * _LETTERS)


def fixed_letter(index: int) -> str:
    """``A`` … ``Z``, ``AA`` … ``ZZ``, ``AAA`` …: the official letters up to ``BZ``, and upper-case ones beyond."""
    letters = ""
    number = index + 1
    while number:
        number, rest = divmod(number - 1, _LETTERS)
        letters = chr(65 + rest) + letters
    return letters


@functools.lru_cache(maxsize=64)
def official_letters(count: int) -> tuple[str, ...]:
    """The evaluator's keys of ``count`` options."""
    return tuple(official_letter(index) for index in range(count))


@functools.lru_cache(maxsize=64)
def fixed_letters(count: int) -> dict[str, int]:
    """Index by letter of ``count`` options, in the ``fixed`` alphabet."""
    return {fixed_letter(index): index for index in range(count)}


LARGE = 2_000_000
"""Length of the text times number of pieces that makes a search for each piece costlier than the index."""
_SIZE = 4


def possible(text: str, pieces: Sequence[str]) -> Sequence[int]:
    """Return indices of pieces that may occur in ``text``: all that do, and few others if the search would be large."""
    if len(text) * len(pieces) < LARGE:
        return range(len(pieces))
    blocks = CharacterBlocks(text)
    return [index for index, piece in enumerate(pieces) if blocks.may_hold(piece)]


class CharacterBlocks:
    """The distinct blocks of four characters that a text consists of, with their beginnings and ends."""

    __slots__ = ("_begins", "_ends", "_whole")

    def __init__(self, text: str) -> None:
        self._whole = frozenset(text[at : at + _SIZE] for at in range(0, len(text), _SIZE))
        self._begins = frozenset(block[:length] for block in self._whole for length in range(_SIZE + 1))
        self._ends = frozenset(block[_SIZE - length :] for block in self._whole for length in range(_SIZE))

    def may_hold(self, piece: str) -> bool:
        """Return whether ``piece`` may occur; false only if no alignment with the blocks fits known ones."""
        return len(piece) < _SIZE or any(self._fits(piece, shift) for shift in range(_SIZE))

    def _fits(self, piece: str, shift: int) -> bool:
        """Return whether a piece may begin ``shift`` characters before the end of a block."""
        if piece[:shift] not in self._ends:
            return False
        last = shift + (len(piece) - shift) // _SIZE * _SIZE
        whole = (piece[at : at + _SIZE] in self._whole for at in range(shift, last, _SIZE))
        return piece[last:] in self._begins and all(whole)


_STATEMENT = re.compile(
    r"\b(?:answer|option|choice)\b\s*+(?:is\b\s*+)?(?::\s*+)?(?:[(\[]\s*+)?([a-z]{1,3})(?!\w)", re.IGNORECASE
)
_LEADING = re.compile(r"\s*+(?:\(([A-Za-z]{1,3})\)|([A-Za-z]{1,3})[.)])")
_RUNNING_TEXT = re.compile(r"\s+\w")
_WORD = re.compile(r"\w*")
_ENGLISH_WORDS = frozenset("ai")
"""Lower-case letters that are also words, and name no option in running text."""


NO_CHOICE = None, "none"


def read_choice(answer: str, options: Sequence[str]) -> tuple[int | None, str]:
    """Return the index of the option that an answer names, and the first rule that finds it (else ``NO_CHOICE``).

    1. ``statement``: the last "answer", "option" or "choice" that an option letter follows (with optional "is",
       colon, bracket); 2. ``leading letter``: ``L.``, ``L)`` or ``(L)`` at the start; 3. ``one letter``: nothing
       else in the text; 4. ``text``: the longest option found with word borders; a tie is no match.
    """
    letters = fixed_letters(len(options))
    found = _stated(answer, letters)
    if found is not None:
        return found, "statement"
    lead = _LEADING.match(answer)
    found = _index(lead.group(1) or lead.group(2), letters) if lead else None
    if found is not None:
        return found, "leading letter"
    found = _index(answer.strip(), letters)
    if found is not None:
        return found, "one letter"
    found = _longest_option(plain(answer), options)
    return NO_CHOICE if found is None else (found, "text")


def plain(text: str) -> str:
    """Normalise a text, so that case and runs of white space do not matter."""
    return " ".join(text.split()).lower()


def _stated(answer: str, letters: Mapping[str, int]) -> int | None:
    last = None
    for match in _STATEMENT.finditer(answer):
        letter = match.group(1)
        if letter in _ENGLISH_WORDS and _RUNNING_TEXT.match(answer, match.end()):
            continue
        found = _index(letter, letters)
        last = last if found is None else found
    return last


def _index(letter: str, letters: Mapping[str, int]) -> int | None:
    """Return the option of letters: one letter in either case, several only in upper case (they might be a word)."""
    return letters.get(letter.upper() if len(letter) == 1 else letter)


def _longest_option(answer: str, options: Sequence[str]) -> int | None:
    first: dict[str, int] = {}
    for index, option in enumerate(options):
        first.setdefault(plain(option), index)
    first.pop("", None)
    distinct = list(first)
    inside = [distinct[index] for index in possible(answer, distinct) if distinct[index] in answer]
    ends: dict[int, int] = {}
    for _, same_length in groupby(sorted(inside, key=len, reverse=True), key=len):
        found = [option for option in same_length if occurs(option, answer, ends)]
        if found:
            return first[found[0]] if len(found) == 1 else None
    return None


def occurs(piece: str, text: str, ends: dict[int, int] | None = None) -> bool:
    """Find ``piece`` in ``text`` between word borders; a number is not found inside another number.

    Args:
        ends: ends of words by their starts, which searches of the same text share.
    """
    ends = {} if ends is None else ends
    start = text.find(piece)
    while start >= 0:
        end = start + len(piece)
        is_after_border = start == 0 or _is_apart(text[start], text[start - 1], text[max(start - 2, 0) : start - 1])
        if is_after_border and (end == len(text) or _is_apart(text[end - 1], text[end], text[end + 1 : end + 2])):
            return True
        # a piece that starts with a word character starts a word, so the next one is after this word
        if start not in ends:
            run = _WORD.match(text, start)
            ends[start] = run.end() if run else start
        start = text.find(piece, max(ends[start], start + 1))
    return False


def _is_apart(inner: str, outer: str, beyond: str) -> bool:
    """Return whether a border separates the first or last character of a piece from the two characters next to it."""
    is_in_number = outer in ".," and beyond.isdigit() and inner.isdigit()
    return not _is_word(inner) or not (_is_word(outer) or is_in_number)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
