"""The back end ``vllm``: the asynchronous engine of vLLM in this process, or a vLLM server (``base_url``)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from lmms_eval.api.request import Usage
from lmms_eval.models.offline.model import REQUEST_ERRORS, Engine, EngineJob, OfflineModel
from lmms_eval.models.offline.prompts import EnginePrompt
from lmms_eval.models.offline.settings import EngineSettings
from lmms_eval.models.remote.generation import Wanted
from lmms_eval.models.remote.reply import Reply, scored_reply
from lmms_eval.utils.signatures import parameter_names

SAME_NAME = (
    "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "min_tokens", "logit_bias",
    "skip_special_tokens",
)  # fmt: skip
SET_HERE = frozenset({"n", "output_kind", "detokenize", "seed", "stop", "max_tokens", "temperature", "top_p"})
"""Fields of ``SamplingParams`` that the adapter sets itself."""
REFUSALS = (("vllm.exceptions", "VLLMError"), ("vllm.v1.engine.exceptions", "EngineGenerateError"))
"""Modules and classes. The first exists in newer versions only."""
DEATHS = (("vllm.v1.engine.exceptions", "EngineDeadError"),)


class VllmEngine(Engine):
    """``AsyncEngineArgs``, ``AsyncLLMEngine`` and ``SamplingParams``: the public names of the package's root."""

    name = "vllm"
    options: ClassVar[Mapping[str, str]] = {name: name for name in SAME_NAME}

    def start(self, settings: EngineSettings) -> Any:
        """Return the asynchronous engine with the model."""
        self.refusals = (*REQUEST_ERRORS, *_classes(REFUSALS))
        self.deaths = _classes(DEATHS)
        self.parameters = parameter_names(self.package.SamplingParams) - SET_HERE
        self._processor_options = settings.mm_processor_kwargs
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
        # This context gives a step the same limits of requests and tokens as vLLM's own offline class.
        context = importlib.import_module("vllm.usage.usage_lib").UsageContext.LLM_CLASS
        engine_arguments = self.package.AsyncEngineArgs(**arguments)
        return self.package.AsyncLLMEngine.from_engine_args(engine_arguments, usage_context=context)

    def sent_options(self, wanted: Wanted) -> dict[str, Any]:
        """Return the fields of ``SamplingParams``."""
        fields = dict(wanted.pick(self.names)[0])
        given = {"temperature": wanted.temperature, "top_p": wanted.top_p, "seed": wanted.seed}
        fields |= {name: value for name, value in given.items() if value is not None}
        if wanted.stops:
            fields["stop"] = list(wanted.stops)
        return {"max_tokens": wanted.max_new_tokens, **fields}

    def context_length(self) -> int | None:
        """Return the length that vLLM has chosen for this model and machine."""
        length = getattr(getattr(self._engine, "model_config", None), "max_model_len", None)
        return length if isinstance(length, int) else None

    async def generate(self, job: EngineJob, request_id: str) -> Reply:
        """Generate an answer. Closing the engine's generator aborts the request."""
        sampling = self.package.SamplingParams(**self.sent_options(job.wanted))
        final = await self._final_output(job.prompt, sampling, request_id)
        if not final.outputs:
            raise RuntimeError("the engine gave no output")
        best = final.outputs[0]
        if best.finish_reason in ("abort", "error"):
            raise RuntimeError(f"the engine aborted the request ({best.finish_reason})")
        stop = getattr(best, "stop_reason", None)  # the number of an end token, a stop string, or nothing
        ended_by = stop if isinstance(stop, str) else None
        usage = Usage(len(final.prompt_token_ids or ()), len(best.token_ids))
        return Reply(best.text, best.finish_reason, usage, ended_by=ended_by)

    async def score(self, prompt: EnginePrompt, request_id: str) -> Reply:
        """Get the log probabilities of the prompt. The one token that must be generated is ignored."""
        sampling = self.package.SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=1, detokenize=False)
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
        return scored_reply(scores, len(final.prompt_token_ids))

    async def _final_output(self, prompt: EnginePrompt, sampling: Any, request_id: str) -> Any:
        """Return the engine's output of the finished request."""
        sampling.output_kind = self.package.sampling_params.RequestOutputKind.FINAL_ONLY
        sounds = [(sound.samples, sound.sampling_rate) for sound in prompt.sounds]
        media = {"image": prompt.images, "video": prompt.videos, "audio": sounds}
        asked: dict[str, Any] = {"prompt_token_ids": prompt.token_ids}
        if given := {name: values for name, values in media.items() if values}:
            asked["multi_modal_data"] = given
            heard = {"use_audio_in_video": True} if prompt.hears_videos else {}
            if options := {**self._processor_options, **heard}:
                asked["mm_processor_kwargs"] = options
        final: Any = None
        async for output in self._engine.generate(asked, sampling, request_id):
            final = output
        if final is None:
            raise RuntimeError("the engine gave no output")
        return final


def _classes(places: Iterable[tuple[str, str]]) -> tuple[type[Exception], ...]:
    """Return the exception classes that the installed version has."""
    found = []
    for module, name in places:
        try:
            found.append(getattr(importlib.import_module(module), name))
        except (ImportError, AttributeError):
            continue
    return tuple(found)


class VLLM(OfflineModel):
    """vLLM; for the arguments see ``docs/models/vllm.md``."""

    engine = VllmEngine
