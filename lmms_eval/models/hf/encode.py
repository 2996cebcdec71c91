"""From prompt texts and pictures to the tensors of one batch."""

from __future__ import annotations

import inspect
import queue
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import Sight
from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError, Shape, is_full, is_out_of_memory, pick_batch

if TYPE_CHECKING:
    from lmms_eval.models.hf.inputs import Job, Prepared
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
    room: int | None = None
    """Tokens that the model's positions leave for an answer, if their number is known."""
    sights: tuple[Sight, ...] = ()
    """What the processor made of each row's pictures; empty without any."""
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
        width = int(batch["input_ids"].shape[1])
        room = None if self._max_length is None else self._max_length - width
        sights = sights_of(batch, [len(job.prepared.images) for job in jobs], self._loaded)
        return Encoded(batch, lengths, width, counts, room=room, sights=sights)

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


def sights_of(batch: Mapping[str, Any], pictures: Sequence[int], loaded: Loaded) -> tuple[Sight, ...]:
    """Describe what the processor made of the pictures of each row, by the tensors that it gave.

    Args:
        batch: of the processor.
        pictures: number of pictures of each row.
        loaded: the model, whose configuration names the tokens that stand for pictures.
    """
    total = sum(pictures)
    if not total:
        return ()
    sizes, each = _sizes(batch, total, loaded)
    ids, token = batch.get("input_ids"), _picture_token(loaded.model.config)
    sights, at = [], 0
    for row, count in enumerate(pictures):
        found = None if ids is None or token is None else int((ids[row] == token).sum())
        own = slice(at, at + count)
        is_exact = found is not None and sum(each[own]) == found
        sights.append(Sight(sizes[own], found, each[own] if is_exact else ()))
        at += count
    return tuple(sights)


def _picture_token(config: Any) -> int | None:
    names = ("image_token_id", "image_token_index")
    return next((token for name in names if isinstance(token := getattr(config, name, None), int)), None)


def _sizes(
    batch: Mapping[str, Any], pictures: int, loaded: Loaded
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Width, height and tokens of each picture; empty if the tensors do not show them."""
    grids, pixels = batch.get("image_grid_thw"), batch.get("pixel_values")
    if grids is not None and len(grids) == pictures:
        processor = loaded.processor.image_processor
        patch, merge = getattr(processor, "patch_size", None), getattr(processor, "merge_size", None)
        cells = [(int(high), int(wide), int(deep)) for deep, high, wide in grids.tolist()]
        each = tuple(d * h * w // merge**2 for h, w, d in cells) if isinstance(merge, int) else ()
        return (tuple((w * patch, h * patch) for h, w, _ in cells) if isinstance(patch, int) else ()), each
    shape: Sequence[int] = getattr(pixels, "shape", ())
    # Pictures cut into tiles have one dimension more; all tiles of a batch have one size.
    if len(shape) >= 4 and shape[-3] in (1, 3):
        return ((int(shape[-1]), int(shape[-2])),) * pictures, ()
    return (), ()


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


class Lookahead:
    """Batches by the requests in them. What was not started ahead is encoded when it is asked for.

    Args:
        encoders: one for each thread, sharing nothing: fast tokenizers must not be used by two threads at once.
    """

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        self.depth = len(encoders)
        """Batches that are encoded at the same time at most."""
        self._idle: queue.SimpleQueue[Encoder] = queue.SimpleQueue()
        for encoder in encoders:
            self._idle.put(encoder)
        self._pool = ThreadPoolExecutor(len(encoders), thread_name_prefix="hf-encode")
        self._ahead: dict[tuple[str, ...], Future[Encoded]] = {}

    def encode_prepared(self, prepared: Sequence[Prepared]) -> Mapping[str, Any]:
        """The processor's output for prompts that are no jobs. What encoding raises, this raises."""
        encoder = self._idle.get()
        try:
            return dict(encoder.process([each.text for each in prepared], prepared))
        finally:
            self._idle.put(encoder)

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin to encode a batch."""
        self._ahead[_ids(jobs)] = self._pool.submit(self._encode, jobs)

    def get(self, jobs: Sequence[Job]) -> Encoded:
        """The encoded batch. What encoding raises, this raises."""
        future = self._ahead.pop(_ids(jobs), None)
        return self._encode(jobs) if future is None else future.result()

    def forget(self, jobs: Sequence[Job]) -> None:
        """The batch will not be asked for."""
        future = self._ahead.pop(_ids(jobs), None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        self._ahead.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _encode(self, jobs: Sequence[Job]) -> Encoded:
        encoder = self._idle.get()
        try:
            return encoder.encode(jobs)
        finally:
            self._idle.put(encoder)


def _ids(jobs: Sequence[Job]) -> tuple[str, ...]:
    return tuple(job.request.id for job in jobs)


class Window:
    """Jobs that are held but not begun, and the batches planned from them.

    Args:
        shape: what a batch may be now.
        lookahead: encodes what is planned.
    """

    def __init__(self, shape: Callable[[], Shape[Job]], lookahead: Lookahead) -> None:
        self._shape = shape
        self._lookahead = lookahead
        self._waiting: list[Job] = []
        self._planned: deque[list[Job]] = deque()

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._planned))

    @property
    def nbytes(self) -> int:
        """Size of the media that is held."""
        batches = [self._waiting, *self._planned]
        return sum(job.request.payload_bytes for batch in batches for job in batch)

    def add(self, job: Job) -> None:
        self._waiting.append(job)

    def next_batch(self) -> list[Job]:
        """The batch to be run now; those after it are planned and begun to be encoded. Empty if nothing is held."""
        while self._waiting and len(self._planned) <= self._lookahead.depth:
            batch = pick_batch(self._waiting, self._shape())
            if self._planned and not is_full(batch, self._waiting, self._shape()):
                break  # more requests may come before it is its turn
            chosen = {job.request.id for job in batch}
            self._waiting = [job for job in self._waiting if job.request.id not in chosen]
            self._planned.append(batch)
            self._lookahead.start(batch)
        return self._planned.popleft() if self._planned else []

    def plan_anew(self) -> None:
        """The shape of batches has changed: what was planned is taken back."""
        for batch in self._planned:
            self._lookahead.forget(batch)
        self._waiting = [job for batch in self._planned for job in batch] + self._waiting
        self._planned.clear()
