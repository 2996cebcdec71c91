"""Filters the pieces that can occur in a text, which speeds up a search for 1,000 options in a megabyte."""

from __future__ import annotations

from collections.abc import Sequence

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
