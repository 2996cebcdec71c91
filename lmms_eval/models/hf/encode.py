"""From prompt texts and pictures to the tensors of one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError, is_out_of_memory

if TYPE_CHECKING:
    from lmms_eval.models.hf.load import Loaded


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Inputs of one forward pass, padded on the left."""

    inputs: Mapping[str, Any]
    lengths: tuple[int, ...]
    """Prompt tokens of each row, without padding."""
    width: int
    """Columns of ``input_ids``."""


class Encoder:
    """Calls the processor. Not thread-safe: fast tokenizers are not."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        text_config = loaded.model.config.get_text_config()
        limit = getattr(text_config, "max_position_embeddings", None)
        self._max_length = limit if isinstance(limit, int) and limit > 0 else None

    def encode(self, texts: Sequence[str], images: Sequence[Sequence[Any]]) -> Encoded:
        """One batch; either every row has pictures or none has.

        Raises:
            RefusedError: the processor refuses an input, or a prompt is longer than the model's positions.
        """
        try:
            batch = self._loaded.processor(
                text=list(texts),
                images=[list(row) for row in images] if any(images) else None,
                return_tensors="pt",
                padding=True,
                add_special_tokens=not self._starts_with_bos(texts[0]),
            )
        except RECOVERABLE as error:
            if is_out_of_memory(error):
                raise
            raise RefusedError(f"the processor refuses the request: {type(error).__name__}: {error}") from error
        mask = batch["attention_mask"]
        if not bool(mask[:, -1].all()):
            raise RuntimeError(f"{type(self._loaded.processor).__name__} pads on the right: batches would be wrong")
        lengths = tuple(int(length) for length in mask.sum(dim=1))
        self._check_lengths(lengths)
        return Encoded(self._to_device(batch), lengths, int(batch["input_ids"].shape[1]))

    def continuation_length(self, text: str, continuation: str) -> int:
        """Tokens that ``continuation`` adds to the prompt ``text``; placeholders of pictures cancel out."""
        special = not self._starts_with_bos(text)
        both, prompt = (
            len(self._loaded.tokenizer(value, add_special_tokens=special)["input_ids"])
            for value in (text + continuation, text)
        )
        return both - prompt

    def _starts_with_bos(self, text: str) -> bool:
        """A template that writes the start token itself must not get a second one."""
        token = self._loaded.tokenizer.bos_token
        return bool(token) and text.startswith(token)

    def _check_lengths(self, lengths: Sequence[int]) -> None:
        longest = max(lengths)
        if self._max_length is not None and longest > self._max_length:
            raise RefusedError(f"the prompt has {longest} tokens, the model takes {self._max_length} at most")

    def _to_device(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        import torch

        device, dtype = self._loaded.device, self._loaded.model.dtype
        moved: dict[str, Any] = {}
        for name, value in batch.items():
            if isinstance(value, torch.Tensor):
                moved[name] = value.to(device, dtype if value.is_floating_point() else value.dtype)
            else:
                moved[name] = value
        return moved
