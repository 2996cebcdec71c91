"""Encoding prompts with media as the tensors of batches, ahead of their generation."""

from __future__ import annotations

import inspect
import queue
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from lmms_eval.api.request import Sight
from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError, Shape, is_full, is_out_of_memory, pick_batch
from lmms_eval.models.hf.inputs import WITH_SOUND
from lmms_eval.models.hf.load import TextProcessor
from lmms_eval.models.hf.prefixes import SharedPrefixes, padded_rows
from lmms_eval.models.windows import (
    NO_PREFIX,
    ScoredTokens,
    context_length,
    prefix_token,
    scored_windows,
    text_tokens,
    tokens_of_each,
)

if TYPE_CHECKING:
    from lmms_eval.models.hf.inputs import Prepared, PreparedRequest
    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.hf.options import HFOptions


_KNOWN_PROMPTS = 256


class Encoded(Struct, frozen=True, eq=False):
    """The inputs of one forward pass on the CPU, as keyword arguments of ``generate``, whose prompts end each row."""

    inputs: Mapping[str, Any]
    lengths: tuple[int | None, ...]
    """The prompt tokens of each row, without padding; ``None`` if the input is not a text."""
    width: int
    """The number of columns of ``input_ids``."""
    targets: tuple[list[int], ...] = ()
    """For likelihoods: the tokens of each row whose probabilities are wanted."""
    ends: tuple[int, ...] = ()
    """For likelihoods: the column after the one that predicts the last of them."""
    prefixes: SharedPrefixes | None = None
    """For likelihoods: the same texts with what several of them begin with once, if that saves much."""
    max_new_tokens: int | None = None
    """The model's limit of new tokens."""
    room: int | None = None
    """The positions that the prompt leaves for an answer, if known."""
    sights: tuple[Sight, ...] = ()
    """The processed form of each row's pictures; empty without pictures."""
    in_pieces: bool = False
    """Whether the answer is generated in pieces with separate limits, so that its length does not show a cut."""


class Encoder:
    """Calls the processor. Not thread-safe, like fast tokenizers."""

    def __init__(self, loaded: Loaded, options: HFOptions) -> None:
        self._loaded = loaded
        self._is_of_text = isinstance(loaded.processor, TextProcessor)
        self._prompts: dict[str, int] = {}
        """The last prompts of likelihoods with their numbers of tokens: later batches may have the same ones."""
        self._image_options = {name: value for name, value in options.extra.items() if name != WITH_SOUND}
        self._film_size = self._size_of_films(options)
        if "mm_token_type_ids" in inspect.signature(loaded.model.forward).parameters:
            # Not every processor returns by default the types of tokens that its model needs.
            self._image_options["return_mm_token_type_ids"] = True
        text_config = loaded.model.config.get_text_config()
        limit = getattr(text_config, "max_position_embeddings", None)
        known = (limit if isinstance(limit, int) and limit > 0 else None, options.max_length)
        self._max_length = min((length for length in known if length is not None), default=None)

    def encode(self, jobs: Sequence[PreparedRequest]) -> Encoded:
        """Encode a batch of jobs with equal keys, so that either all rows or no rows have pictures or sounds.

        Raises:
            RefusedError: the processor rejects an input, a prompt is longer than the model's positions, or a
                continuation adds no token to its prompt.
        """
        windows = [job.window for job in jobs if job.window is not None]
        if windows:
            return self._encode_windows(windows, [len(context) + len(rest) - 1 for context, rest in windows])
        if jobs[0].settings is None and self._is_of_text:
            pairs = self._pairs([job.parts for job in jobs])
            return self._encode_windows(pairs, [len(context) + len(rest) for context, rest in pairs])
        texts = [self._text(job) for job in jobs]
        batch = refusing(lambda: self.process(texts, [job.prepared for job in jobs]))
        mask = batch["attention_mask"]
        if not bool(mask[:, -1].all()):
            raise RuntimeError(f"{type(self._loaded.processor).__name__} pads on the right: batches would be wrong")
        lengths = tuple(int(length) for length in mask.sum(dim=1))
        self._check_length(max(lengths))
        width = int(batch["input_ids"].shape[1])
        counts = [] if jobs[0].settings is not None else [self._continuation_length(job) for job in jobs]
        targets = tuple(batch["input_ids"][row, -count:].tolist() for row, count in enumerate(counts))
        room = None if self._max_length is None else self._max_length - width
        sights = sights_of(batch, [len(job.prepared.images) for job in jobs], self._loaded)
        return Encoded(batch, lengths, width, targets, (width - 1,) * len(counts), room=room, sights=sights)

    def _check_length(self, longest: int) -> None:
        if self._max_length is not None and longest > self._max_length:
            raise RefusedError(f"the prompt has {longest} tokens, the model takes {self._max_length} at most")

    def windows(self, text: str) -> list[ScoredTokens]:
        """Return the windows over a text. Raises ``RefusedError`` if the tokenizer has no start and no end token."""
        tokenizer = self._loaded.tokenizer
        prefix = prefix_token(tokenizer)
        if prefix is None:
            raise RefusedError(NO_PREFIX)
        tokens = refusing(lambda: text_tokens(tokenizer, text))
        return scored_windows(tokens, prefix, self._max_length or context_length(tokenizer))

    def _pairs(self, parts: Sequence[tuple[str, str]]) -> list[ScoredTokens]:
        """Return the tokens of prompts and continuations. A prompt of several continuations is encoded once."""
        wholes, prompts = [prompt + continuation for prompt, continuation in parts], {prompt for prompt, _ in parts}
        found = self._ids({*wholes, *(prompts - self._prompts.keys())})
        known = {**self._prompts, **{prompt: len(found[prompt]) for prompt in prompts if prompt in found}}
        self._prompts = dict([*known.items()][-_KNOWN_PROMPTS:])
        pairs = []
        for text, (prompt, continuation) in zip(wholes, parts, strict=True):
            whole, alone = found[text], known[prompt]
            if len(whole) <= alone:
                raise no_token(continuation)
            self._check_length(len(whole))
            context = whole[:alone]
            if not context:
                start = prefix_token(self._loaded.tokenizer)
                if start is None:
                    raise RefusedError(NO_PREFIX)
                context = [start]
            pairs.append((context, whole[alone:]))
        return pairs

    def _ids(self, texts: Collection[str]) -> dict[str, list[int]]:
        """Return the tokens of texts. Those with the start token, which a template has written, get no other."""
        found: dict[str, list[int]] = {}
        start = self._loaded.tokenizer.bos_token
        begun = {text for text in texts if text.startswith(start)} if start else set()
        for special, chosen in ((True, [text for text in texts if text not in begun]), (False, list(begun))):
            if chosen:
                encoded = refusing(partial(tokens_of_each, self._loaded.tokenizer, chosen, special))
                found.update(zip(chosen, encoded, strict=True))
        return found

    def _encode_windows(self, windows: Sequence[ScoredTokens], lengths: Sequence[int]) -> Encoded:
        """Build the tensors of windows, whose requests have ``lengths`` tokens.

        They are padded on the right, so that also models with learned positions begin each row at the first one. A
        causal model's predictions do not depend on what follows, so models of texts get no mask, without which their
        attention is faster.
        """
        import torch

        rows = [[*context, *continuation[:-1]] for context, continuation in windows]
        pad = self._loaded.tokenizer.pad_token_id
        width = max(map(len, rows))
        ids = padded_rows(rows, np.full((len(rows), width), pad, np.int64))
        inputs = {"input_ids": ids}
        if not self._is_of_text:
            inputs["attention_mask"] = padded_rows([[1] * len(row) for row in rows], np.zeros(ids.shape, np.int64))
        if "return_mm_token_type_ids" in self._image_options:
            inputs["mm_token_type_ids"] = torch.zeros_like(ids)
        targets = tuple(continuation for _, continuation in windows)
        prefixes = SharedPrefixes.of(windows, pad) if self._is_of_text else None
        return Encoded(inputs, tuple(lengths), width, targets, tuple(map(len, rows)), prefixes)

    def process(self, texts: Sequence[str], prepared: Sequence[Prepared]) -> Any:
        """Process prompts with the same kinds of media. Exceptions of the processor pass through."""
        media: dict[str, Any] = {"padding": True}
        if prepared[0].images:
            images: list[Any] = [list(row.images) for row in prepared]
            if self._loaded.flat_images:
                images = [image for row in images for image in row]
            media.update(images=images, **self._image_options)
        if prepared[0].audios:
            # Sounds are padded by the processor's default, as some models only take windows of one length.
            media["text_kwargs"] = {"padding": media.pop("padding")}
            media.update(audio=[sound for row in prepared for sound in row.audios])
            media.update(sampling_rate=self._loaded.sampling_rate)
        if films := prepared[0].films:  # in a batch of its own
            media.update(videos=[film.frames for film in films], load_audio_from_video=True)
            media.update(audio_from_video_indices=list(prepared[0].heard))
            rate = sum(film.rate for film in films) / len(films)
            media.update(videos_kwargs={**self._film_size, "fps": rate, "do_sample_frames": False})
        batch = self._loaded.processor(
            text=list(texts), **media, return_tensors="pt", add_special_tokens=not self._starts_with_bos(texts[0])
        )
        if films:
            batch[WITH_SOUND] = True  # for the model, which places both on one time scale
        return batch

    def _size_of_films(self, options: HFOptions) -> dict[str, Any]:
        """Return the option of the processor for the pixels of frames, if the arguments limit them."""
        least, most = options.min_pixels, options.max_pixels
        if not options.extra.get(WITH_SOUND) or (least is None and most is None):
            return {}
        own: Any = self._loaded.processor.video_processor.size
        highest = most or max(int(own.longest_edge), least or 0)
        return {"size": {"shortest_edge": least or min(int(own.shortest_edge), highest), "longest_edge": highest}}

    def _continuation_length(self, job: PreparedRequest) -> int:
        """Return the tokens that the continuation adds to its prompt. Placeholders of pictures cancel out."""
        special = not self._starts_with_bos(job.text)
        prompt, continuation = job.parts
        whole, alone = self._count(prompt + continuation, special), self._count(prompt, special)
        if whole <= alone:
            raise no_token(continuation)
        return whole - alone

    def _count(self, text: str, special: bool = True) -> int:
        return len(self._loaded.tokenizer(text, add_special_tokens=special)["input_ids"])

    def _text(self, job: PreparedRequest) -> str:
        """Return the input of a job: a continuation without a prompt follows the start token, or else the end token.

        Most tokenizers put the start token first by themselves.
        """
        if job.settings is not None:
            return job.text
        prompt, continuation = job.parts
        if prompt or not continuation or self._count(""):
            return prompt + continuation
        token = self._loaded.tokenizer.bos_token or self._loaded.tokenizer.eos_token
        if not token:
            raise RefusedError(NO_PREFIX)
        return f"{token}{continuation}"

    def _starts_with_bos(self, text: str) -> bool:
        """Return whether the template has written the start token, which must not be added again."""
        token = self._loaded.tokenizer.bos_token
        return bool(token) and text.startswith(token)


def no_token(continuation: str) -> RefusedError:
    return RefusedError(f"the continuation {continuation!r} adds no token to the prompt")


def sights_of(batch: Mapping[str, Any], pictures: Sequence[int], loaded: Loaded) -> tuple[Sight, ...]:
    """Describe the processed form of the pictures of each row, by the processor's output and the model's tokens."""
    total = sum(pictures)
    if not total:
        return ()
    sizes, each = _sizes(batch, total, loaded)
    named = (getattr(loaded.model.config, name, None) for name in ("image_token_id", "image_token_index"))
    ids, token = batch.get("input_ids"), next((token for token in named if isinstance(token, int)), None)
    sights, at = [], 0
    for row, count in enumerate(pictures):
        found = None if ids is None or token is None else int((ids[row] == token).sum())
        own = slice(at, at + count)
        is_exact = found is not None and sum(each[own]) == found
        sights.append(Sight(sizes[own], found, each[own] if is_exact else ()))
        at += count
    return tuple(sights)


def _sizes(
    batch: Mapping[str, Any], pictures: int, loaded: Loaded
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return width and height, and the tokens, of each picture; empty if the tensors do not show them."""
    grids, pixels = batch.get("image_grid_thw"), batch.get("pixel_values")
    if grids is not None and len(grids) == pictures:
        processor = loaded.processor.image_processor
        patch, merge = getattr(processor, "patch_size", None), getattr(processor, "merge_size", None)
        cells = [(int(high), int(wide), int(deep)) for deep, high, wide in grids.tolist()]
        each = tuple(d * h * w // merge**2 for h, w, d in cells) if isinstance(merge, int) else ()
        return (tuple((w * patch, h * patch) for h, w, _ in cells) if isinstance(patch, int) else ()), each
    shape: Sequence[int] = getattr(pixels, "shape", ())
    # Tiled pictures have one more dimension. All tiles of a batch have the same size.
    if len(shape) >= 4 and shape[-3] in (1, 3):
        return ((int(shape[-1]), int(shape[-2])),) * pictures, ()
    return (), ()


def to_device(batch: Mapping[str, Any], loaded: Loaded) -> dict[str, Any]:
    """Move tensors to the model's device, and float tensors to its precision."""
    import torch

    device = loaded.device
    moved: dict[str, Any] = {}
    for name, value in batch.items():
        if isinstance(value, torch.Tensor):
            moved[name] = value.to(device, loaded.model.dtype if value.is_floating_point() else value.dtype)
        else:
            moved[name] = value
    return moved


def refusing(process: Callable[[], Any]) -> Any:
    """Call a processor. Raises ``RefusedError`` if the processor rejects the input. Out of memory passes through."""
    try:
        return process()
    except RECOVERABLE as error:
        if is_out_of_memory(error):
            raise
        raise RefusedError(f"the processor refuses the request: {type(error).__name__}: {error}") from error


class Lookahead:
    """Encodes batches ahead of their use. A batch that was not started is encoded on ``get``.

    Args:
        encoders: one for each thread without shared state, as fast tokenizers are not thread-safe.
        threads: whether there are threads. Without them, each batch is encoded on ``get``.
    """

    def __init__(self, encoders: Sequence[Encoder], threads: bool = True) -> None:
        self.depth = len(encoders) if threads else 0
        """The maximum number of batches that are encoded at the same time, ahead of their use."""
        self._idle: queue.SimpleQueue[Encoder] = queue.SimpleQueue()
        for encoder in encoders:
            self._idle.put(encoder)
        self._pool = ThreadPoolExecutor(len(encoders), thread_name_prefix="hf-encode")
        self._ahead: dict[tuple[str, ...], Future[Encoded]] = {}

    def encode_prepared(self, prepared: Sequence[Prepared]) -> Mapping[str, Any]:
        """Return the processor's output for prompts without jobs. Exceptions of the processor pass through."""
        encoder = self._idle.get()
        try:
            return dict(encoder.process([each.text for each in prepared], prepared))
        finally:
            self._idle.put(encoder)

    def windows(self, text: str) -> list[ScoredTokens]:
        """Return the windows over a text. Raises as ``Encoder.windows`` does."""
        encoder = self._idle.get()
        try:
            return encoder.windows(text)
        finally:
            self._idle.put(encoder)

    def start(self, jobs: Sequence[PreparedRequest]) -> None:
        """Start to encode a batch, if there are threads."""
        if not self.depth:
            return
        self._ahead[_ids(jobs)] = self._pool.submit(self._encode, jobs)

    def get(self, jobs: Sequence[PreparedRequest]) -> Encoded:
        """Return the encoded batch. Exceptions of the encoder pass through."""
        future = self._ahead.pop(_ids(jobs), None)
        return self._encode(jobs) if future is None else future.result()

    def forget(self, jobs: Sequence[PreparedRequest]) -> None:
        """Discard a batch that is not needed."""
        future = self._ahead.pop(_ids(jobs), None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        self._ahead.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _encode(self, jobs: Sequence[PreparedRequest]) -> Encoded:
        encoder = self._idle.get()
        try:
            return encoder.encode(jobs)
        finally:
            self._idle.put(encoder)


def _ids(jobs: Sequence[PreparedRequest]) -> tuple[str, ...]:
    return tuple(job.request.id for job in jobs)


class Window:
    """Waiting jobs, and the batches planned from them by the current rules (``shape``), which are encoded ahead."""

    def __init__(self, shape: Callable[[], Shape[PreparedRequest]], lookahead: Lookahead) -> None:
        self._shape = shape
        self._lookahead = lookahead
        self._waiting: list[PreparedRequest] = []
        self._planned: deque[list[PreparedRequest]] = deque()

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._planned))

    @property
    def nbytes(self) -> int:
        """The size of the media of all jobs."""
        batches = [self._waiting, *self._planned]
        return sum(job.request.payload_bytes for batch in batches for job in batch)

    def add(self, job: PreparedRequest) -> None:
        self._waiting.append(job)

    def next_batch(self) -> list[PreparedRequest]:
        """Return the next batch, and start to encode the following ones. Empty if there are no jobs."""
        while self._waiting and len(self._planned) <= self._lookahead.depth:
            batch = pick_batch(self._waiting, self._shape())
            if self._planned and not is_full(batch, self._waiting, self._shape()):
                break  # more requests may arrive before its turn
            chosen = {job.request.id for job in batch}
            self._waiting = [job for job in self._waiting if job.request.id not in chosen]
            self._planned.append(batch)
            self._lookahead.start(batch)
        return self._planned.popleft() if self._planned else []

    def plan_anew(self) -> None:
        """Take back the planned batches, as the rules have changed."""
        for batch in self._planned:
            self._lookahead.forget(batch)
        self._waiting = [job for batch in self._planned for job in batch] + self._waiting
        self._planned.clear()
