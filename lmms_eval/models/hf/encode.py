"""From prompt texts and pictures to the tensors of one batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError, is_out_of_memory

if TYPE_CHECKING:
    from lmms_eval.models.hf.inputs import Prepared
    from lmms_eval.models.hf.jobs import Job
    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.hf.options import HFOptions


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Inputs of one forward pass, texts padded on the left; keyword arguments of ``generate``. On the CPU."""

    inputs: Mapping[str, Any]
    lengths: tuple[int | None, ...]
    """Prompt tokens of each row, without padding; ``None`` where the input is no text."""
    width: int
    """Columns of ``input_ids``."""
    continuations: tuple[int, ...] = ()
    """For likelihoods: tokens of each row's continuation, at the end of the row."""
    max_new_tokens: int | None = None
    """The model cannot write more than this."""
    in_pieces: bool = False
    """The answer is written piece by piece, each with a limit of its own: its length does not tell whether one was
    cut off."""


class Encoder:
    """Calls the processor. Not thread-safe: fast tokenizers are not."""

    def __init__(self, loaded: Loaded, options: HFOptions) -> None:
        self._loaded = loaded
        self._image_options = dict(options.extra)
        if "mm_token_type_ids" in inspect.signature(loaded.model.forward).parameters:
            # Not every processor gives by itself what its model places pictures by.
            self._image_options["return_mm_token_type_ids"] = True
        text_config = loaded.model.config.get_text_config()
        limit = getattr(text_config, "max_position_embeddings", None)
        known = (limit if isinstance(limit, int) and limit > 0 else None, options.max_length)
        self._max_length = min((length for length in known if length is not None), default=None)

    def encode(self, jobs: Sequence[Job]) -> Encoded:
        """One batch of jobs with equal keys: every row has pictures or none; sounds likewise.

        Raises:
            RefusedError: the processor refuses an input, a prompt is longer than the model's positions, or a
                continuation adds nothing to its prompt.
        """
        texts = [job.text for job in jobs]
        batch = refusing(lambda: self.process(texts, [job.prepared for job in jobs]))
        mask = batch["attention_mask"]
        if not bool(mask[:, -1].all()):
            raise RuntimeError(f"{type(self._loaded.processor).__name__} pads on the right: batches would be wrong")
        lengths = tuple(int(length) for length in mask.sum(dim=1))
        longest = max(lengths)
        if self._max_length is not None and longest > self._max_length:
            raise RefusedError(f"the prompt has {longest} tokens, the model takes {self._max_length} at most")
        counts = () if jobs[0].settings is not None else tuple(self._continuation_length(job) for job in jobs)
        return Encoded(batch, lengths, int(batch["input_ids"].shape[1]), counts)

    def process(self, texts: Sequence[str], prepared: Sequence[Prepared]) -> Any:
        """Process prompts with like media. An exception of the processor passes through."""
        media: dict[str, Any] = {"padding": True}
        if prepared[0].images:
            images: list[Any] = [list(row.images) for row in prepared]
            if self._loaded.flat_images:
                images = [image for row in images for image in row]
            media.update(images=images, **self._image_options)
        if prepared[0].audios:
            # Sounds are padded as the processor sees fit: some models take windows of one length alone.
            media["text_kwargs"] = {"padding": media.pop("padding")}
            media.update(audio=[sound for row in prepared for sound in row.audios])
            media.update(sampling_rate=self._loaded.sampling_rate)
        return self._loaded.processor(
            text=list(texts),
            **media,
            return_tensors="pt",
            add_special_tokens=not self._starts_with_bos(texts[0]),
        )

    def _continuation_length(self, job: Job) -> int:
        """Tokens that the continuation adds to its prompt; placeholders of pictures cancel out."""
        special = not self._starts_with_bos(job.text)
        both, prompt = (
            len(self._loaded.tokenizer(value, add_special_tokens=special)["input_ids"])
            for value in (job.text, job.prepared.text)
        )
        if both <= prompt:
            raise RefusedError(f"the continuation {job.continuation!r} adds no token to the prompt")
        return both - prompt

    def _starts_with_bos(self, text: str) -> bool:
        """A template that writes the start token itself must not get a second one."""
        token = self._loaded.tokenizer.bos_token
        return bool(token) and text.startswith(token)


def to_device(batch: Mapping[str, Any], loaded: Loaded) -> dict[str, Any]:
    """Tensors where the model's inputs go, those of floats in the model's precision."""
    import torch

    device, dtype = loaded.device, loaded.model.dtype
    moved: dict[str, Any] = {}
    for name, value in batch.items():
        if isinstance(value, torch.Tensor):
            moved[name] = value.to(device, dtype if value.is_floating_point() else value.dtype)
        else:
            moved[name] = value
    return moved


def refusing(process: Callable[[], Any]) -> Any:
    """Call a processor.

    Raises:
        RefusedError: it refuses them. Running out of memory passes through.
    """
    try:
        return process()
    except RECOVERABLE as error:
        if is_out_of_memory(error):
            raise
        raise RefusedError(f"the processor refuses the request: {type(error).__name__}: {error}") from error
