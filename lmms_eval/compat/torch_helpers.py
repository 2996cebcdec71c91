"""Helpers of transformers-based plugins; torch and transformers are imported when called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.errors import UsageError


def get_dtype(dtype: Any) -> Any:
    """Return a ``torch.dtype`` by name (``"bfloat16"``, ``"torch.bfloat16"``); ``"auto"`` and dtypes are unchanged.

    Raises:
        UsageError: torch has no dtype of that name.
    """
    if not isinstance(dtype, str) or dtype == "auto":
        return dtype
    import torch

    found = getattr(torch, dtype.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise UsageError(f"dtype {dtype!r} is unknown to torch; give float32, float16, bfloat16 or auto")
    return found


class _StopOnText:
    """Marks each sequence of the batch whose new text contains the stop text."""

    def __init__(self, tokenizer: Any, stop: str, prompt_length: int, batch_size: int) -> None:
        self.tokenizer, self.stop, self.prompt_length = tokenizer, stop, prompt_length
        self.done = [False] * batch_size
        # a token is at least one byte in any tokenizer, so the stop text lies within this many last tokens
        self.window = len(stop.encode("utf-8")) + 2

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        import torch

        recent = input_ids[:, self.prompt_length :][:, -self.window :]
        texts = self.tokenizer.batch_decode(recent)
        self.done = [done or self.stop in text for done, text in zip(self.done, texts, strict=True)]
        return torch.tensor(self.done, dtype=torch.bool, device=input_ids.device)


def stop_sequences_criteria(
    tokenizer: Any, stop_sequences: Sequence[str], initial_decoder_input_length: int, batch_size: int
) -> Any:
    """Make a ``transformers.StoppingCriteriaList`` that ends a sequence once its new text contains a stop text.

    Args:
        initial_decoder_input_length: number of tokens of the prompt, which is not searched.
    """
    from transformers import StoppingCriteriaList

    return StoppingCriteriaList(
        [_StopOnText(tokenizer, stop, initial_decoder_input_length, batch_size) for stop in stop_sequences if stop]
    )
