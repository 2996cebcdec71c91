"""Estimated length of a prompt in tokens, before it is encoded: for putting like with like into a batch."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_eval.models.hf.batching import RECOVERABLE

_CHARACTERS_PER_TOKEN = 3.5
_PIXELS_PER_TOKEN = 28 * 28
_PICTURE_MIN_TOKENS = 64
_SOUND_TOKENS_PER_SECOND = 25
_STEP = 16
"""Pixels to which a processor is asked about widths and heights: asking takes 0.1 ms, so sizes that are nearly alike
share an answer."""


class Lengths:
    """Estimates for one model. Thread-safe.

    Args:
        processor: is asked for the tokens of a picture of a given size, where it can tell.
        image_options: keyword arguments that it gets with pictures.
    """

    def __init__(self, processor: Any, image_options: Mapping[str, Any]) -> None:
        self._count = getattr(processor, "_get_num_multimodal_tokens", None)
        self._image_options = dict(image_options)
        self._of_size = functools.lru_cache(maxsize=4096)(self._ask)

    def tokens(self, text: str, sizes: Iterable[tuple[int, int]], seconds: float = 0.0) -> float:
        """Tokens of a prompt with pictures of these widths and heights and ``seconds`` of sound."""
        rounded = [tuple(-(-side // _STEP) * _STEP for side in size) for size in sizes]
        media = sum(self._of_size(*size) for size in rounded) + seconds * _SOUND_TOKENS_PER_SECOND
        return len(text) / _CHARACTERS_PER_TOKEN + media

    def _ask(self, width: int, height: int) -> float:
        if self._count is not None:
            try:
                found = self._count(image_sizes=[(height, width)], **self._image_options).num_image_tokens
                return float(found[0])
            except RECOVERABLE:  # an interface that transformers keeps for vLLM: not every processor has it right
                self._count = None
        return max(_PICTURE_MIN_TOKENS, width * height / _PIXELS_PER_TOKEN)
