"""Answers to one batch: generation and likelihood."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import Response, Usage
from lmms_eval.models.hf.batching import RefusedError
from lmms_eval.models.hf.encode import Encoded, Encoder
from lmms_eval.models.hf.stopping import StopOnText, cut_at, find_ending

if TYPE_CHECKING:
    from lmms_eval.api.request import Request
    from lmms_eval.models.hf.inputs import Prepared
    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.hf.settings import Settings

_SEED_RANGE = 2**63


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A prepared request with its settings; ``settings`` is ``None`` for a likelihood."""

    request: Request
    prepared: Prepared
    settings: Settings | None


class Answerer:
    """Runs batches of jobs that may share one: equal settings, and all with pictures or none."""

    def __init__(self, loaded: Loaded, generate: Callable[..., Any], use_cache: bool) -> None:
        self._loaded = loaded
        self._generate = generate
        self._use_cache = use_cache
        self._encoder = Encoder(loaded)
        end = loaded.model.generation_config.eos_token_id
        end = loaded.tokenizer.eos_token_id if end is None else end
        self._end_ids = frozenset(end if isinstance(end, list | tuple) else [] if end is None else [end])

    def answer(self, jobs: Sequence[Job]) -> list[Response]:
        """One response for each job, in their order."""
        if jobs[0].settings is None:
            return self._score(jobs)
        return self._write(jobs, jobs[0].settings)

    def _write(self, jobs: Sequence[Job], settings: Settings) -> list[Response]:
        encoded = self._encoder.encode([job.prepared.text for job in jobs], [job.prepared.images for job in jobs])
        stopper = self._stopper(settings, encoded)
        output = self._sample(jobs[0].request.seed, encoded, settings, [stopper] if stopper else [])
        start = 0 if self._loaded.model.config.is_encoder_decoder else encoded.width
        may_differ = settings.sampled or self._loaded.dtype != "float32"
        shared = tuple(job.request.id for job in jobs) if len(jobs) > 1 and may_differ else ()
        responses = []
        for row, job in enumerate(jobs):
            stopped_at = stopper.stopped_at.get(row) if stopper else None
            ending = find_ending(output[row, start:].tolist(), self._end_ids, stopped_at)
            text = self._decode(ending.ids, settings)
            cut = cut_at(text, settings.until)
            response = Response(
                job.request.id,
                text=cut,
                finish_reason="stop" if ending.ended or cut != text else "length",
                usage=Usage(encoded.lengths[row], ending.generated),
                batch=shared,
            )
            responses.append(response)
        return responses

    def _stopper(self, settings: Settings, encoded: Encoded) -> StopOnText | None:
        """With beams a row is no longer one answer: then stop strings are cut afterwards only."""
        beams = settings.arguments.get("num_beams") or self._loaded.model.generation_config.num_beams or 1
        if not settings.until or beams > 1 or self._loaded.model.config.is_encoder_decoder:
            return None
        return StopOnText(self._loaded.tokenizer, settings.until, encoded.width, settings.skip_special_tokens)

    def _sample(self, seed: int, encoded: Encoded, settings: Settings, criteria: list[StopOnText]) -> Any:
        import torch
        from transformers import StoppingCriteriaList

        arguments: dict[str, Any] = {
            **encoded.inputs,
            "use_cache": self._use_cache,
            "stopping_criteria": StoppingCriteriaList(criteria),
            **settings.arguments,
        }
        if self._loaded.model.generation_config.pad_token_id is None:
            arguments["pad_token_id"] = self._loaded.tokenizer.pad_token_id
        if not settings.sampled:
            return self._generate(**arguments)
        device = self._loaded.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed % _SEED_RANGE)
            return self._generate(**arguments)

    def _decode(self, ids: list[int], settings: Settings) -> str:
        text: str = self._loaded.tokenizer.decode(
            ids, skip_special_tokens=settings.skip_special_tokens, clean_up_tokenization_spaces=False
        )
        return text

    def _score(self, jobs: Sequence[Job]) -> list[Response]:
        """Log-probabilities of the continuations; one forward pass."""
        model = self._loaded.model
        if model.config.is_encoder_decoder:
            raise RefusedError("likelihoods need a decoder-only model")
        counts = [self._count(job) for job in jobs]
        texts = [job.prepared.text + (job.request.continuation or "") for job in jobs]
        encoded = self._encoder.encode(texts, [job.prepared.images for job in jobs])
        keep = max(counts) + 1
        extra = {"logits_to_keep": keep} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
        import torch

        with torch.inference_mode():
            logits = model(**encoded.inputs, **extra).logits[:, -keep:].float()
        targets = encoded.inputs["input_ids"][:, -keep:]
        shared = tuple(job.request.id for job in jobs) if len(jobs) > 1 and self._loaded.dtype != "float32" else ()
        responses = []
        for row, (job, count) in enumerate(zip(jobs, counts, strict=True)):
            scores = torch.log_softmax(logits[row, -count - 1 : -1], dim=-1)
            wanted = targets[row, -count:]
            chosen = scores.gather(-1, wanted.unsqueeze(-1)).double()
            response = Response(
                job.request.id,
                loglikelihood=float(chosen.sum()),
                is_greedy=bool((scores.argmax(dim=-1) == wanted).all()),
                usage=Usage(encoded.lengths[row], 0),
                batch=shared,
            )
            responses.append(response)
        return responses

    def _count(self, job: Job) -> int:
        count = self._encoder.continuation_length(job.prepared.text, job.request.continuation or "")
        if count < 1:
            raise RefusedError(f"the continuation {job.request.continuation!r} adds no token to the prompt")
        return count
