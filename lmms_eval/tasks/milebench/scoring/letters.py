"""Letters of options: the evaluator's alphabet, and one that continues past its end."""

from __future__ import annotations

import functools

_LETTERS = 26


def official_letter(index: int) -> str:
    """The evaluator's key of the option with this index (from 0).

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
