"""The back end ``vllm``: the asynchronous engine of vLLM in this process, or a vLLM server (``base_url``)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from lmms_eval.errors import ModelError
from lmms_eval.models.likelihood import Likelihood, likelihood_of
from lmms_eval.models.offline.model import REQUEST_ERRORS, Answer, Engine, EngineModel, Job
from lmms_eval.models.offline.prompts import Prompt
from lmms_eval.models.offline.settings import EngineSettings
from lmms_eval.models.remote.generation import Wanted
from lmms_eval.models.remote.model import import_sdk
from lmms_eval.utils.signatures import parameter_names

START_ERRORS = (TypeError, ValueError, RuntimeError, OSError, ImportError, AssertionError)
SAME_NAME = (
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "min_tokens",
    "logit_bias",
    "skip_special_tokens",
)
SET_HERE = frozenset({"n", "output_kind", "detokenize", "seed", "stop", "max_tokens", "temperature", "top_p"})
"""Fields of ``SamplingParams`` that the adapter sets itself."""
REFUSALS = (("vllm.exceptions", "VLLMError"), ("vllm.v1.engine.exceptions", "EngineGenerateError"))
"""Modules and classes. The first exists in newer versions only."""
DEATHS = (("vllm.v1.engine.exceptions", "EngineDeadError"),)


class VllmEngine(Engine):
    """``AsyncEngineArgs``, ``AsyncLLMEngine`` and ``SamplingParams``: the public names of the package's root."""

    name = "vllm"
    options: ClassVar[Mapping[str, str]] = {name: name for name in SAME_NAME}

    def __init__(self, settings: EngineSettings) -> None:
        self._vllm = import_sdk("vllm", "vllm", "vllm")
        self.refusals = (*REQUEST_ERRORS, *_classes(REFUSALS))
        self.deaths = _classes(DEATHS)
        # vLLM reads the time limit of its start from the environment.
        os.environ.setdefault("VLLM_ENGINE_READY_TIMEOUT_S", str(settings.start_timeout))
        arguments: dict[str, Any] = {
            "model": settings.model,
            "tensor_parallel_size": settings.tensor_parallel_size,
            "pipeline_parallel_size": settings.pipeline_parallel_size,
            "data_parallel_size": settings.data_parallel_size,
            "gpu_memory_utilization": settings.gpu_memory_utilization,
            "max_model_len": settings.max_model_len,
            "trust_remote_code": settings.trust_remote_code,
            "enable_prefix_caching": True,
            "disable_log_stats": True,
            **settings.engine_arguments,
        }
        try:
            # This context gives a step the same limits of requests and tokens as vLLM's own offline class.
            context = importlib.import_module("vllm.usage.usage_lib").UsageContext.LLM_CLASS
            engine_arguments = self._vllm.AsyncEngineArgs(**arguments)
            self._engine = self._vllm.AsyncLLMEngine.from_engine_args(engine_arguments, usage_context=context)
        except START_ERRORS as error:
            raise ModelError(f"vllm cannot start {settings.model}: {type(error).__name__}: {error}") from error
        self._processor_options = settings.mm_processor_kwargs
        self.parameters = parameter_names(self._vllm.SamplingParams) - SET_HERE

    def sent_options(self, wanted: Wanted) -> dict[str, Any]:
        """Return the fields of ``SamplingParams``."""
        fields = dict(wanted.pick(self.names)[0])
        given = {"temperature": wanted.temperature, "top_p": wanted.top_p, "seed": wanted.seed}
        fields |= {name: value for name, value in given.items() if value is not None}
        if wanted.stops:
            fields["stop"] = list(wanted.stops)
        return {"max_tokens": wanted.max_new_tokens, **fields}

    async def generate(self, job: Job, request_id: str) -> Answer:
        """Generate an answer. Closing the engine's generator aborts the request."""
        sampling = self._vllm.SamplingParams(**self.sent_options(job.wanted))
        final = await self._final_output(job.prompt, sampling, request_id)
        if not final.outputs:
            raise RuntimeError("the engine gave no output")
        best = final.outputs[0]
        if best.finish_reason in ("abort", "error"):
            raise RuntimeError(f"the engine aborted the request ({best.finish_reason})")
        stop = getattr(best, "stop_reason", None)  # the number of an end token, a stop string, or nothing
        ended_by = stop if isinstance(stop, str) else None
        tokens = len(final.prompt_token_ids or ()), len(best.token_ids)
        return Answer(best.text, best.finish_reason, *tokens, ended_by=ended_by)

    async def score(self, prompt: Prompt, request_id: str) -> Likelihood:
        """Get the log probabilities of the prompt. The one token that must be generated is ignored."""
        sampling = self._vllm.SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=1, detokenize=False)
        final = await self._final_output(prompt, sampling, request_id)
        # Placeholders of media expand to many tokens, but the continuation is still at the end.
        tokens = final.prompt_token_ids[-prompt.continuation :]
        known = (final.prompt_logprobs or ())[-prompt.continuation :]
        if len(known) < prompt.continuation or None in known:
            raise RuntimeError("the engine returned no log probabilities of the prompt")
        scores = [
            (entry[token].logprob, max(other.logprob for other in entry.values()))
            for token, entry in zip(tokens, known, strict=True)
        ]
        return likelihood_of(scores, len(final.prompt_token_ids))

    async def _final_output(self, prompt: Prompt, sampling: Any, request_id: str) -> Any:
        """Return the engine's output of the finished request."""
        sampling.output_kind = self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY
        sounds = [(sound.samples, sound.sampling_rate) for sound in prompt.sounds]
        films = [(film.frames, film.metadata) for film in prompt.videos]
        media = {"image": prompt.images, "video": films, "audio": sounds}
        asked: dict[str, Any] = {"prompt_token_ids": prompt.token_ids}
        if given := {name: values for name, values in media.items() if values}:
            asked["multi_modal_data"] = given
            if self._processor_options:
                asked["mm_processor_kwargs"] = self._processor_options
        final: Any = None
        async for output in self._engine.generate(asked, sampling, request_id):
            final = output
        if final is None:
            raise RuntimeError("the engine gave no output")
        return final

    def describe(self) -> Mapping[str, Any]:
        """Return the package's version."""
        return {"engine": self.name, "version": str(getattr(self._vllm, "__version__", "unknown"))}

    def close(self) -> None:
        """End the engine's processes."""
        self._engine.shutdown()


def _classes(places: Iterable[tuple[str, str]]) -> tuple[type[Exception], ...]:
    """Return the exception classes that the installed version has."""
    found = []
    for module, name in places:
        try:
            found.append(getattr(importlib.import_module(module), name))
        except (ImportError, AttributeError):
            continue
    return tuple(found)


class VLLM(EngineModel):
    """vLLM; for the arguments see ``docs/models/vllm.md``."""

    engine = VllmEngine
