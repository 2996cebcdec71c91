"""Stop strings: ending rows of a batch as soon as one is written, and cutting the answer before it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

_MARGIN_TOKENS = 4
"""A character may be spread over up to four byte tokens on either side of the window."""


@dataclass(frozen=True, slots=True)
class Ending:
    """One answer: its token ids without the end token, their number with it, and whether it ended by itself."""

    ids: list[int]
    generated: int
    ended: bool


class StopOnText:
    """A stopping criterion of transformers: each row ends with the first of the stop strings that it has written."""

    def __init__(self, tokenizer: Any, until: Sequence[str], prompt_length: int, skip_special_tokens: bool) -> None:
        self._tokenizer = tokenizer
        self._until = until
        self._prompt_length = prompt_length
        self._skip = skip_special_tokens
        self._window = max(len(text.encode()) for text in until) + _MARGIN_TOKENS
        self.stopped_at: dict[int, int] = {}
        """Tokens that a row had generated when it was stopped."""

    def __call__(self, input_ids: Any, *_: Any, **__: Any) -> Any:
        import torch

        rows, length = input_ids.shape[0], input_ids.shape[1] - self._prompt_length
        tails = input_ids[:, max(self._prompt_length, input_ids.shape[1] - self._window) :].tolist()
        for row in range(rows):
            if row in self.stopped_at or not self._has_stop(tails[row]):
                continue
            # A window may begin inside a character or word: the whole answer decides.
            if self._has_stop(input_ids[row, self._prompt_length :].tolist()):
                self.stopped_at[row] = length
        return torch.tensor([row in self.stopped_at for row in range(rows)], device=input_ids.device)

    def _has_stop(self, ids: list[int]) -> bool:
        text = self._tokenizer.decode(ids, skip_special_tokens=self._skip, clean_up_tokenization_spaces=False)
        return any(stop in text for stop in self._until)


def find_ending(ids: list[int], end_ids: Collection[int], stopped_at: int | None) -> Ending:
    """Find the end of a row of a batch: at its end token or stop string; what follows is padding."""
    if stopped_at is not None:
        ids = ids[:stopped_at]
    for position, token in enumerate(ids):
        if token in end_ids:
            return Ending(ids[:position], position + 1, True)
    return Ending(ids, len(ids), stopped_at is not None)


def cut_at(text: str, until: Sequence[str]) -> str:
    """``text`` up to the first stop string in it."""
    places = [place for place in (text.find(stop) for stop in until) if place >= 0]
    return text[: min(places)] if places else text
