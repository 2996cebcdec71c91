"""Answering one batch: generation and likelihoods."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from loguru import logger
from msgspec import Struct, structs

from lmms_eval.api.request import Response, Thoughts, Usage
from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError, is_out_of_memory
from lmms_eval.models.hf.encode import Encoded, to_device
from lmms_eval.models.hf.prefixes import shared_inputs, takes_masks
from lmms_eval.models.hf.settings import MAX_TOKENS
from lmms_eval.models.thoughts import ReadingRules, TagTokens, Written

if TYPE_CHECKING:
    from lmms_eval.models.hf.inputs import PreparedRequest
    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.hf.prefixes import SharedPrefixes
    from lmms_eval.models.hf.settings import GenerationSettings


_MARGIN_TOKENS = 4
"""A character may consist of up to four byte tokens at either end of the window."""
_SEED_RANGE = 2**63
_NO_OPENING = "\0"
"""The opening tag of thoughts that only have a closing one."""
_MOST_APART = {True: 1e-4, False: 0.05}
"""Largest difference between the log probabilities of a token with and without shared prefixes, in float32 or not."""
_COMPARED_FOR = 2
"""Texts may be this many times as long as those of a comparison of both ways; longer ones are compared again."""
Scored = tuple[list[float], list[bool]]
"""Log probabilities of tokens, and whether each is the likeliest at its place."""
_PIECE = 256
"""Tokens whose probabilities are computed at a time."""


class GeneratedEnding(Struct, frozen=True):
    """One answer: its token ids without the end token, their number with it, and whether it ended by itself."""

    ids: list[int]
    generated: int
    ended: bool


class StopOnText:
    """A stopping criterion of transformers: each row ends with the first stop string in its answer.

    A row inside a thought is checked for closing tags first, and for stop strings after the thought. All ``readings``
    have the same stop strings. The answers begin at the column ``prompt_length``.
    """

    def __init__(
        self, tags: TagTokens, readings: Sequence[ReadingRules], prompt_length: int, skip_special_tokens: bool
    ) -> None:
        self._tags = tags
        self._readings = readings
        self._prompt_length = prompt_length
        self._skip = skip_special_tokens
        self._window = _window(readings[0].until)
        self._closings = {row: tuple(closing for _, closing in reading.pairs) for row, reading in enumerate(readings)}
        self._thinking = {row for row, reading in enumerate(readings) if reading.is_opened}
        self.stopped_at: dict[int, int] = {}
        """The number of generated tokens of each stopped row."""

    def __call__(self, input_ids: Any, *_: Any, **__: Any) -> Any:
        import torch

        rows, length = input_ids.shape[0], input_ids.shape[1] - self._prompt_length
        tails = self._tails(input_ids, self._window)
        for row in range(rows):
            if row in self.stopped_at or not self._is_of_interest(input_ids, row, tails[row]):
                continue
            # A window may begin inside a character, word or thought, so the whole answer is checked.
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
        """Return whether the last tokens of a row may have ended the row, or its thought."""
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
    """Return a number of tokens that can contain each of the texts."""
    return max(len(text.encode()) for text in texts) + _MARGIN_TOKENS


def _has(text: str, wanted: Sequence[str]) -> bool:
    return any(each in text for each in wanted)


def find_ending(ids: list[int], end_ids: Collection[int], stopped_at: int | None) -> GeneratedEnding:
    """Find the end of a row of a batch, at its end token or stop string. The rest is padding."""
    if stopped_at is not None:
        ids = ids[:stopped_at]
    for position, token in enumerate(ids):
        if token in end_ids:
            return GeneratedEnding(ids[:position], position + 1, True)
    return GeneratedEnding(ids, len(ids), stopped_at is not None)


class Answerer:
    """Runs batches of jobs with equal keys. Options select a cache of keys and values, and one of fixed size."""

    def __init__(
        self,
        loaded: Loaded,
        encode: Callable[[Sequence[PreparedRequest]], Encoded],
        generate: Callable[..., Any],
        use_cache: bool = True,
        static_cache: bool = False,
        think_end_token: str | None = None,
    ) -> None:
        self._loaded, self._encode, self._generate = loaded, encode, generate
        self._use_cache, self._static_cache = use_cache, static_cache
        # Fast tokenizers are not thread-safe, and other threads encode while this one decodes.
        self._tags = TagTokens(copy.deepcopy(loaded.tokenizer))
        ending = think_end_token or ""
        self._think_end = loaded.tokenizer.decode([int(ending)]) if ending.isdecimal() else ending
        config = loaded.model.config  # for InstructBLIP and BLIP-2, only the text part has this flag
        self.is_encoder_decoder = bool(config.is_encoder_decoder or config.get_text_config().is_encoder_decoder)
        parameters = inspect.signature(loaded.model.forward).parameters
        self._keeps_logits = "logits_to_keep" in parameters
        self._without_cache = {"use_cache": False} if "use_cache" in parameters else {}
        self._compared: float | None = None
        """Maximum length of texts whose shared prefixes give equal values; 0: none. ``None``: not known yet."""
        end = loaded.model.generation_config.eos_token_id
        end = loaded.tokenizer.eos_token_id if end is None else end
        self._end_ids = frozenset(end if isinstance(end, list | tuple) else [] if end is None else [end])

    @property
    def scores_texts(self) -> bool:
        """Whether the model predicts each token of a text alone: it has no encoder, and needs no picture."""
        parameters = inspect.signature(self._loaded.model.forward).parameters.values()
        needs = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
        return not self.is_encoder_decoder and not needs

    def answer(self, jobs: Sequence[PreparedRequest]) -> list[Response]:
        """Return the responses to the jobs, in order."""
        if jobs[0].settings is None:
            return self._score(jobs)
        return self._write(jobs, jobs[0].settings)

    def _write(self, jobs: Sequence[PreparedRequest], settings: GenerationSettings) -> list[Response]:
        encoded = self._encode(jobs)
        readings = [self._reading(job, settings.until) for job in jobs]
        stopper = self._stopper(settings, encoded, readings)
        seed = jobs[0].request.seed if settings.seed is None else settings.seed
        output = self._sample(seed, encoded, settings, [stopper] if stopper else [])
        start = self._starts_a_decoder(output) if self.is_encoder_decoder else encoded.width
        limit = _length(settings, encoded)
        may_differ = settings.sampled or self._loaded.dtype != "float32"
        shared = tuple(job.request.id for job in jobs) if len(jobs) > 1 and may_differ else ()
        pad = self._loaded.tokenizer.pad_token_id
        responses = []
        for row, (job, reading) in enumerate(zip(jobs, readings, strict=True)):
            stopped_at = stopper.stopped_at.get(row) if stopper else None
            ids = output[row, start:].tolist()
            # Padding follows the answer of an encoder-decoder model, as Whisper removes the end token.
            while self.is_encoder_decoder and ids and ids[-1] == pad and pad not in self._end_ids:
                ids.pop()
            ending = find_ending(ids, self._end_ids, stopped_at)
            ended = ending.ended or (self.is_encoder_decoder and ending.generated < limit)
            cut_off = None if encoded.in_pieces else "length"
            written = self._after_thoughts(self._tags.read(ending.ids, reading, settings.skip_special_tokens))
            reasoning = self._tags.count(written, ending.generated)
            response = Response(
                job.request.id,
                text=written.text,
                finish_reason="stop" if ended or written.ended_by else cut_off,
                usage=Usage(encoded.lengths[row], ending.generated, reasoning),
                batch=shared,
                thoughts=written.thoughts,
                stops=reading.until,
                ended_by=written.ended_by,
                sight=encoded.sights[row] if encoded.sights else None,
            )
            responses.append(response)
        return responses

    def _reading(self, job: PreparedRequest, until: Sequence[str]) -> ReadingRules:
        reading = ReadingRules.of(job.request, job.prepared.text, until)
        if not self._think_end or self._think_end in {closing for _, closing in reading.pairs}:
            return reading
        return structs.replace(reading, pairs=(*reading.pairs, (_NO_OPENING, self._think_end)))

    def _after_thoughts(self, written: Written) -> Written:
        """With ``think_end_token``, return the thoughts without tags, and the answer without leading white space."""
        thoughts = written.thoughts
        if not self._think_end or thoughts is None or not thoughts.is_finished:
            return written
        return structs.replace(written, text=written.text.lstrip(), thoughts=Thoughts(thoughts.text))

    def _starts_a_decoder(self, output: Any) -> int:
        """Return the number of tokens before the answer of a decoder: T5's start token, and none for Whisper."""
        text = self._loaded.model.config.get_text_config(decoder=True)
        first = self._loaded.model.generation_config.decoder_start_token_id
        first = getattr(text, "decoder_start_token_id", None) if first is None else first
        return int(first is not None and bool((output[:, 0] == first).all()))

    def _stopper(
        self, settings: GenerationSettings, encoded: Encoded, readings: Sequence[ReadingRules]
    ) -> StopOnText | None:
        """Return the stopping criterion; ``None`` with beams, as a row is then not one answer."""
        beams = settings.arguments.get("num_beams") or self._loaded.model.generation_config.num_beams or 1
        if not settings.until or beams > 1 or self.is_encoder_decoder:
            return None
        return StopOnText(self._tags, readings, encoded.width, settings.skip_special_tokens)

    def _sample(self, seed: int, encoded: Encoded, settings: GenerationSettings, criteria: list[StopOnText]) -> Any:
        from transformers import StoppingCriteriaList

        arguments: dict[str, Any] = {
            **to_device(encoded.inputs, self._loaded),
            "use_cache": self._use_cache,
            "stopping_criteria": StoppingCriteriaList(criteria),
            **settings.arguments,
        }
        if self._static_cache:
            arguments["cache_implementation"] = "static"
        arguments["max_new_tokens"] = _length(settings, encoded)
        if self._loaded.model.generation_config.pad_token_id is None:
            arguments["pad_token_id"] = self._loaded.tokenizer.pad_token_id
        if not settings.sampled:
            return self._generate(**arguments)
        with seeded(seed, self._loaded.device):
            return self._generate(**arguments)

    def _score(self, jobs: Sequence[PreparedRequest]) -> list[Response]:
        """Add up the log probabilities of the wanted tokens of each row, in one forward pass."""
        if self.is_encoder_decoder:
            raise RefusedError("likelihoods need a decoder-only model")
        encoded = self._encode(jobs)
        shared, responses = self._shared(jobs), []
        for row, (job, (scores, greedy)) in enumerate(zip(jobs, self._probabilities(encoded), strict=True)):
            response = Response(
                job.request.id,
                loglikelihood=math.fsum(scores),
                is_greedy=all(greedy),
                usage=Usage(encoded.lengths[row], 0),
                batch=shared,
                sight=encoded.sights[row] if encoded.sights else None,
            )
            responses.append(response)
        return responses

    def _probabilities(self, encoded: Encoded) -> list[Scored]:
        """Return the scores of the wanted tokens of each row.

        What several rows begin with is computed once. The first batch is computed in both ways, and so is one with
        longer texts. A model that does not give equal values shares no prefixes from then on.
        """
        shared = encoded.prefixes
        if shared is None or self._compared == 0:
            return self._in_one_pass(encoded)
        if self._compared is not None and encoded.width <= self._compared:
            return self._by_prefix(encoded, shared)
        whole, found = self._in_one_pass(encoded), None
        try:
            if self._compared is not None or takes_masks(self._loaded):
                found = self._by_prefix(encoded, shared)
        except RECOVERABLE as error:  # a model may take no mask of this form
            if is_out_of_memory(error):
                raise
            logger.debug("{}: {}: {}", type(self._loaded.model).__name__, type(error).__name__, error)
        is_equal = found is not None and _are_equal(found, whole, _MOST_APART[self._loaded.dtype == "float32"])
        self._compared = _COMPARED_FOR * encoded.width if is_equal else 0
        if not is_equal:
            logger.info("{}: prompts of several choices are computed for each", type(self._loaded.model).__name__)
        return whole

    def _by_prefix(self, encoded: Encoded, shared: SharedPrefixes) -> list[Scored]:
        columns = shared.columns.to(self._loaded.device)
        logits = self._logits(shared_inputs(shared, self._loaded), columns)
        found = _log_probabilities(logits if self._keeps_logits else logits[:, columns], shared.places, encoded.targets)
        return _split(found, [len(target) for target in encoded.targets])

    def _in_one_pass(self, encoded: Encoded) -> list[Scored]:
        import torch

        spans = list(zip(encoded.ends, map(len, encoded.targets), strict=True))
        first = min(end - count for end, count in spans)
        logits = self._last_logits(to_device(encoded.inputs, self._loaded), encoded.width - first)
        places = [(row, at - first) for row, (end, count) in enumerate(spans) for at in range(end - count, end)]
        found = _log_probabilities(logits, torch.tensor(places), encoded.targets)
        return _split(found, [count for _, count in spans])

    def _last_logits(self, inputs: Mapping[str, Any], count: int) -> Any:
        """Return the logits of the last columns."""
        return self._logits(inputs, count)[:, -count:]

    def _logits(self, inputs: Mapping[str, Any], kept: Any) -> Any:
        """Return the logits. Most models compute only ``kept``, a number of last columns or a tensor of columns."""
        import torch

        extra = {"logits_to_keep": kept} if self._keeps_logits else {}
        with torch.inference_mode():
            return self._loaded.model(**inputs, **extra, **self._without_cache).logits

    def _shared(self, jobs: Sequence[PreparedRequest]) -> tuple[str, ...]:
        """Return the ids of a batch that may affect its likelihoods."""
        return tuple(job.request.id for job in jobs) if len(jobs) > 1 and self._loaded.dtype != "float32" else ()


def _split(scored: Scored, counts: Sequence[int]) -> list[Scored]:
    """Divide the scores of all wanted tokens into those of each row."""
    ends = list(accumulate(counts))
    slices = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    return [(scored[0][own], scored[1][own]) for own in slices]


def _are_equal(scored: Sequence[Scored], others: Sequence[Scored], most: float) -> bool:
    return all(
        abs(math.fsum(one) - math.fsum(other)) <= most * len(one)
        for (one, _), (other, _) in zip(scored, others, strict=True)
    )


def _log_probabilities(logits: Any, places: Any, targets: Sequence[Sequence[int]]) -> Scored:
    """Score the wanted tokens of all rows by the logits at their places, rows and columns ``(tokens, 2)``."""
    import torch

    at, tokens = places.to(logits.device), torch.tensor(list(chain.from_iterable(targets)), device=logits.device)
    found = []
    # In pieces, as the whole of it in float32 would need a multiple of the logits' memory.
    for part, own in zip(at.split(_PIECE), tokens.split(_PIECE), strict=True):
        scores = logits[part[:, 0], part[:, 1]].float()
        wanted = own.unsqueeze(-1)
        chosen = torch.log_softmax(scores, dim=-1).gather(-1, wanted).squeeze(-1)
        # The place of the maximum, which takes longer, is only looked up where the token has the greatest score.
        greedy = scores.amax(dim=-1) == scores.gather(-1, wanted).squeeze(-1)
        (top,) = greedy.nonzero(as_tuple=True)
        greedy[top] = scores[top].argmax(dim=-1) == own[top]
        found.append(torch.stack((chosen, greedy.float())))
    values, likeliest = torch.cat(found, dim=-1).tolist()
    return values, [one == 1.0 for one in likeliest]


def _length(settings: GenerationSettings, encoded: Encoded) -> int:
    """Return the most new tokens of a batch. Raises ``RefusedError`` if the needed context length is not known."""
    stated: int = settings.arguments["max_new_tokens"]
    if stated < MAX_TOKENS:
        return min(stated, encoded.max_new_tokens or MAX_TOKENS)
    room = encoded.max_new_tokens or encoded.room
    if room is None:
        raise RefusedError(
            "max_new_tokens=max: the model's configuration states no length of its context: give a number"
        )
    return max(1, room)


@contextmanager
def seeded(seed: int, device: Any) -> Iterator[None]:
    """Seed torch's random generators, and restore their state afterwards."""
    import torch

    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed % _SEED_RANGE)
        yield
