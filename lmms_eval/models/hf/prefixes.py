"""Likelihoods of texts that begin alike, such as a prompt with several continuations.

A row holds a prefix tree: texts one after the other, each without the tokens that it shares with the one before. A mask
lets every token see the tokens before it in its own text, and nothing else. So one forward pass gives the predictions
of all texts, without a cache of keys and values.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    import numpy.typing as npt

    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.windows import ScoredTokens

_LEAST_SAVED = 0.25
"""Share of a batch's tokens that sharing must save, since it needs a mask, with which attention is slower."""
_LEAST_SHARED = 0.5
"""Share of a text that must be in a row already for the text to join it: a token sees in vain those of other texts."""
_WIDEST = 4
"""Maximum width of a row, as a multiple of the longest text."""
_MASKED = ("sdpa", "eager")
"""Implementations of attention that take a mask of all pairs of tokens."""


class SharedPrefixes(Struct, frozen=True, eq=False):
    """The texts of a batch as rows of prefix trees. Tensors are padded on the right."""

    ids: Any
    """Tokens ``(rows, width)``."""
    positions: Any
    """The position of each token in its text ``(rows, width)``."""
    ends: Any
    """The column after the last token that sees each token ``(rows, width)``."""
    columns: Any
    """The columns with wanted predictions, in ascending order."""
    places: Any
    """Row and number in ``columns`` of each wanted prediction, in the order of the texts ``(predictions, 2)``."""

    @classmethod
    def of(cls, windows: Sequence[ScoredTokens], pad: int) -> SharedPrefixes | None:
        """Build the rows; ``None`` if they would save little."""
        texts = [[*context, *continuation[:-1]] for context, continuation in windows]
        longest = max(map(len, texts))
        rows: list[_Row] = []
        numbers, columns = [0] * len(texts), [list[int]()] * len(texts)
        for number in sorted(range(len(texts)), key=texts.__getitem__):
            text = texts[number]
            shared = rows[-1].shared(text) if rows else 0
            added = len(text) - shared
            if shared < _LEAST_SHARED * len(text) or len(rows[-1].ids) + added > _WIDEST * longest:
                rows.append(_Row())
                shared = 0
            rows[-1].add(text, shared)
            first = len(windows[number][0]) - 1
            numbers[number], columns[number] = len(rows) - 1, rows[-1].path[first:]
        width = max(len(row.ids) for row in rows)
        if width * len(rows) > (1 - _LEAST_SAVED) * longest * len(texts):
            return None
        return cls(*_tensors(rows, width, pad), *_wanted(numbers, columns))


class _Row:
    """A row of texts in their lexical order."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.ends: list[int] = []
        self.path: list[int] = []
        """The columns of the last text."""
        self._text: Sequence[int] = ()

    def shared(self, text: Sequence[int]) -> int:
        """Return the number of tokens that a text and the last one begin with in common."""
        low, high = 0, min(len(text), len(self._text))
        while low < high:
            middle = (low + high + 1) // 2
            if text[low:middle] == self._text[low:middle]:
                low = middle
            else:
                high = middle - 1
        return low

    def add(self, text: Sequence[int], shared: int) -> None:
        """Add a text, which shares this number of tokens with the last one."""
        self.close(shared)
        begin, count = len(self.ids), len(text) - shared
        self.ids += text[shared:]
        self.positions += range(shared, len(text))
        self.ends += [0] * count
        self.path[shared:] = range(begin, begin + count)
        self._text = text

    def close(self, shared: int) -> None:
        """End the tokens of the last text after the first ``shared``: no later text sees them."""
        for column in self.path[shared:]:
            self.ends[column] = len(self.ids)


def _tensors(rows: Sequence[_Row], width: int, pad: int) -> tuple[Any, Any, Any]:
    for row in rows:
        row.close(0)
    # Padding sees itself, as a row of a mask without any entry gives values that are not numbers.
    ends = np.tile(np.arange(1, width + 1), (len(rows), 1))
    return (
        padded_rows([row.ids for row in rows], np.full_like(ends, pad)),
        padded_rows([row.positions for row in rows], np.zeros_like(ends)),
        padded_rows([row.ends for row in rows], ends),
    )


def padded_rows(rows: Sequence[Sequence[int]], padding: npt.NDArray[np.int64]) -> Any:
    """Write rows over the beginnings of those of an array of padding, and return it as a tensor."""
    import torch

    for own, row in zip(padding, rows, strict=True):
        own[: len(row)] = row
    return torch.from_numpy(padding)


def _wanted(numbers: Sequence[int], columns: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Return ``columns`` and ``places`` for texts in the rows ``numbers`` with wanted predictions in ``columns``."""
    import torch

    distinct, place = np.unique(np.fromiter(chain.from_iterable(columns), np.int64), return_inverse=True)
    row = np.repeat(np.array(numbers), [len(own) for own in columns])
    return torch.from_numpy(distinct), torch.from_numpy(np.stack((row, place), axis=1))


def shared_inputs(prefixes: SharedPrefixes, loaded: Loaded) -> dict[str, Any]:
    """Return the arguments of the forward pass, on the model's device."""
    import torch

    ids, ends = prefixes.ids.to(loaded.device), prefixes.ends.to(loaded.device, torch.int32).unsqueeze(1)
    columns = torch.arange(ids.shape[1], device=ids.device, dtype=torch.int32).unsqueeze(1)
    is_seen = (columns >= columns.mT) & (columns < ends)
    # Added to the scores of attention: a mask of truth values would be converted in every layer.
    seen, unseen = torch.tensor((0.0, float("-inf")), dtype=loaded.model.dtype, device=ids.device)
    mask = torch.where(is_seen, seen, unseen).unsqueeze(1)
    return {"input_ids": ids, "position_ids": prefixes.positions.to(ids.device), "attention_mask": mask}


def takes_masks(loaded: Loaded) -> bool:
    """Return whether a mask alone decides which tokens a token sees: no layer has a window or a state."""
    import torch
    from transformers.cache_utils import DynamicCache, DynamicLayer

    names = {"position_ids", "attention_mask", "use_cache"}
    if (
        _attention(loaded.model) not in _MASKED
        or not names <= inspect.signature(loaded.model.forward).parameters.keys()
    ):
        return False
    one = torch.zeros((1, 1), dtype=torch.long, device=loaded.device)
    with torch.inference_mode():
        cache: Any = getattr(loaded.model(input_ids=one, use_cache=True), "past_key_values", None)
    return type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers)


def _attention(model: Any) -> str | None:
    return getattr(model.config, "_attn_implementation", None)
