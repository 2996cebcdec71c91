"""Stop strings: ending rows of a batch as soon as the answer has one, and finding where each row ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval.models.thoughts import Reading, TagTokens

_MARGIN_TOKENS = 4
"""A character may be spread over up to four byte tokens on either side of the window."""


@dataclass(frozen=True, slots=True)
class Ending:
    """One answer: its token ids without the end token, their number with it, and whether it ended by itself."""

    ids: list[int]
    generated: int
    ended: bool


class StopOnText:
    """A stopping criterion of transformers: each row ends with the first of the stop strings in its answer.

    A row that is inside a thought is watched for closing tags, and for stop strings again once it has written one.

    Args:
        tags: decodes.
        readings: of the rows; all with the same stop strings.
        prompt_length: columns before the answers.
        skip_special_tokens: leave them out of the text, but for those of tags.
    """

    def __init__(
        self, tags: TagTokens, readings: Sequence[Reading], prompt_length: int, skip_special_tokens: bool
    ) -> None:
        self._tags = tags
        self._readings = readings
        self._prompt_length = prompt_length
        self._skip = skip_special_tokens
        self._window = _window(readings[0].until)
        self._closings = {row: tuple(closing for _, closing in reading.pairs) for row, reading in enumerate(readings)}
        self._thinking = {row for row, reading in enumerate(readings) if reading.is_opened}
        self.stopped_at: dict[int, int] = {}
        """Tokens that a row had generated when it was stopped."""

    def __call__(self, input_ids: Any, *_: Any, **__: Any) -> Any:
        import torch

        rows, length = input_ids.shape[0], input_ids.shape[1] - self._prompt_length
        tails = self._tails(input_ids, self._window)
        for row in range(rows):
            if row in self.stopped_at or not self._is_of_interest(input_ids, row, tails[row]):
                continue
            # A window may begin inside a character or word, or in a thought: the whole answer decides.
            reading = self._readings[row]
            text = self._decode(row, input_ids[row, self._prompt_length :].tolist())
            if reading.is_thinking(text):
                self._thinking.add(row)
                continue
            self._thinking.discard(row)
            if reading.read(text).ended_by:
                self.stopped_at[row] = length
        return torch.tensor([row in self.stopped_at for row in range(rows)], device=input_ids.device)

    def _is_of_interest(self, input_ids: Any, row: int, tail: list[int]) -> bool:
        """Return whether the last tokens of a row may have ended it, or the thought that it is in."""
        if row not in self._thinking:
            return _has(self._decode(row, tail), self._readings[row].until)
        closings = self._closings[row]
        (tail,) = self._tails(input_ids[row : row + 1], _window(closings))
        return _has(self._decode(row, tail), closings)

    def _tails(self, input_ids: Any, window: int) -> list[list[int]]:
        tails: list[list[int]] = input_ids[:, max(self._prompt_length, input_ids.shape[1] - window) :].tolist()
        return tails

    def _decode(self, row: int, ids: list[int]) -> str:
        return self._tags.decode(ids, self._readings[row].pairs, self._skip)


def _window(texts: Sequence[str]) -> int:
    """Return the number of tokens in which each of the texts has room."""
    return max(len(text.encode()) for text in texts) + _MARGIN_TOKENS


def _has(text: str, wanted: Sequence[str]) -> bool:
    return any(each in text for each in wanted)


def find_ending(ids: list[int], end_ids: Collection[int], stopped_at: int | None) -> Ending:
    """Find the end of a row of a batch: at its end token or stop string; what follows is padding."""
    if stopped_at is not None:
        ids = ids[:stopped_at]
    for position, token in enumerate(ids):
        if token in end_ids:
            return Ending(ids[:position], position + 1, True)
    return Ending(ids, len(ids), stopped_at is not None)
