"""The back end ``sglang``: the engine of SGLang in this process, or an SGLang server (``base_url``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lmms_eval.api.request import Usage
from lmms_eval.models.offline.model import Engine, EngineJob, OfflineModel
from lmms_eval.models.offline.prompts import EnginePrompt
from lmms_eval.models.offline.settings import EngineSettings
from lmms_eval.models.remote.generation import Wanted
from lmms_eval.models.remote.reply import Reply, scored_reply

MOST_TOKENS = 1 << 24
"""More tokens than any context has."""
SAME_NAME = (
    "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "skip_special_tokens",
    "custom_params", "ebnf", "ignore_eos", "json_schema", "logit_bias", "no_stop_trim", "regex",
    "spaces_between_special_tokens", "stop_token_ids",
)  # fmt: skip


class SglangEngine(Engine):
    """``sglang.Engine`` and its ``async_generate``."""

    name = "sglang"
    decodes_videos = True
    options: ClassVar[Mapping[str, str]] = {**{name: name for name in SAME_NAME}, "min_tokens": "min_new_tokens"}

    def start(self, settings: EngineSettings) -> Any:
        """Return ``sglang.Engine`` with the model."""
        arguments: dict[str, Any] = {
            "model_path": settings.model,
            "tp_size": settings.tensor_parallel_size,
            "pp_size": settings.pipeline_parallel_size,
            "dp_size": settings.data_parallel_size,
            "mem_fraction_static": settings.gpu_memory_utilization,
            "trust_remote_code": settings.trust_remote_code,
            **({"context_length": settings.max_model_len} if settings.max_model_len else {}),
            **({"mm_process_config": settings.mm_processor_kwargs} if settings.mm_processor_kwargs else {}),
            **settings.engine_arguments,
        }
        return self.package.Engine(**arguments)

    def sent_options(self, wanted: Wanted) -> dict[str, Any]:
        """Return the engine's sampling parameters."""
        sampling = dict(wanted.pick(self.names)[0])
        # Without a length the engine uses its own default. It cuts a larger length to what its context leaves.
        sampling["max_new_tokens"] = MOST_TOKENS if wanted.max_new_tokens is None else wanted.max_new_tokens
        given = {"temperature": wanted.temperature, "top_p": wanted.top_p}
        sampling |= {name: value for name, value in given.items() if value is not None}
        if wanted.temperature != 0:
            sampling["sampling_seed"] = wanted.seed
        if wanted.stops:
            sampling["stop"] = list(wanted.stops)
        return sampling

    async def generate(self, job: EngineJob, request_id: str) -> Reply:  # noqa: ARG002 - the engine numbers requests itself
        """Generate an answer. If it is cancelled, the engine continues to its end."""
        answer = await self._generate(job.prompt, self.sent_options(job.wanted))
        facts = answer["meta_info"]
        finish = facts.get("finish_reason") or {}
        stop = finish.get("matched")  # the number of an end token, or a stop string
        usage = Usage(facts.get("prompt_tokens"), facts.get("completion_tokens"))
        return Reply(answer["text"], finish.get("type"), usage, ended_by=stop if isinstance(stop, str) else None)

    async def score(self, prompt: EnginePrompt, request_id: str) -> Reply:  # noqa: ARG002 - as above
        """Get the log probabilities of the prompt's last tokens, without generating."""
        answer = await self._generate(
            prompt,
            {"max_new_tokens": 0, "temperature": 0},
            return_logprob=True,
            # Placeholders of media expand to many tokens. Then there are more scores than needed, aligned at the end.
            logprob_start_len=max(0, len(prompt.token_ids) - prompt.continuation - 1),
            top_logprobs_num=1,
        )
        facts = answer["meta_info"]
        own = (facts.get("input_token_logprobs") or [])[-prompt.continuation :]
        best = (facts.get("input_top_logprobs") or [])[-prompt.continuation :]
        if min(len(own), len(best)) < prompt.continuation or any(not item or item[0] is None for item in (*own, *best)):
            raise RuntimeError("the engine returned no log probabilities of the prompt")
        scores = [(mine[0], likeliest[0][0]) for mine, likeliest in zip(own, best, strict=True)]
        return scored_reply(scores, facts.get("prompt_tokens"))

    async def _generate(self, prompt: EnginePrompt, sampling: dict[str, Any], **options: Any) -> Any:
        """Return the engine's output for a prompt. Raises ``ValueError`` if the engine aborted the request."""
        media: dict[str, Any] = {"image_data": prompt.images, "video_data": prompt.videos}
        if prompt.sounds:
            from lmms_eval.media.audio import wire_audio

            media["audio_data"] = [
                wire_audio({"array": sound.samples, "sampling_rate": sound.sampling_rate}).data_url
                for sound in prompt.sounds
            ]
        given = {name: values for name, values in media.items() if values}
        answer = await self._engine.async_generate(
            input_ids=prompt.token_ids, sampling_params=sampling, **given, **options
        )
        finish = answer["meta_info"].get("finish_reason") or {}
        if finish.get("type") == "abort":
            raise ValueError(f"the engine aborted the request: {finish.get('message', 'no reason given')}")
        return answer


class SGLang(OfflineModel):
    """SGLang; for the arguments see ``docs/models/sglang.md``."""

    engine = SglangEngine
