"""Modules with just the public signatures of vLLM and SGLang that the adapters use, and a tokenizer for them."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

TEMPLATE = (
    "{{ '<s>' }}{% for m in messages %}[{{ m.role }}]{% for p in m.content %}"
    "{% if p.type == 'text' %}{{ p.text }}{% else %}<{{ p.type }}>{% endif %}{% endfor %}{% endfor %}"
    "{% if thinking %}[thinking]{% endif %}[assistant]"
)


TEXTS_TEMPLATE = (
    "{{ '<s>' }}{% for m in messages %}{{ '[' + m.role + ']' + m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
"""As text models have it: a content is a text."""


def write_tokenizer(folder: Path, template: str | None = TEMPLATE) -> str:
    """A tokenizer with one token a character, which puts ``<s>`` before each text when it is let."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    marks = ["<s>", "<unk>", "<image>", "<video>", "<audio>"]
    vocabulary = {token: number for number, token in enumerate([*marks, *map(chr, range(32, 127))])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", unk_token="<unk>", additional_special_tokens=marks[2:]
    )
    if template:
        tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return str(folder)


@dataclasses.dataclass
class Writer:
    """Writes a script as the engines do: token by token up to the limit, or to the first stop string of all text."""

    tokenizer: Any
    script: Callable[[str], str]
    """From the prompt to all that the model writes by itself."""

    def write(self, prompt: list[int], limit: int, stops: list[str], skip_special_tokens: bool) -> SimpleNamespace:
        """``text``, ``finish``, ``stop`` (the string that ended it) and ``ids``."""
        ids = self.tokenizer.encode(self.script(self.tokenizer.decode(prompt)), add_special_tokens=False)
        for count in range(1, min(limit, len(ids)) + 1):
            text = self.tokenizer.decode(ids[:count], skip_special_tokens=skip_special_tokens)
            places = [(text.find(stop), stop) for stop in stops if stop in text]
            if places:
                place, stop = min(places)
                return SimpleNamespace(text=text[:place], finish="stop", stop=stop, ids=ids[:count])
        text = self.tokenizer.decode(ids[:limit], skip_special_tokens=skip_special_tokens)
        return SimpleNamespace(text=text, finish="stop" if len(ids) < limit else "length", stop=None, ids=ids[:limit])


class Recorder:
    """What the fakes saw."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.open = self.peak = self.aborted = 0
        self.started: dict[str, Any] = {}
        self.environment: dict[str, str] = {}
        """Of the process, when the engine started."""
        self.closed = False
        self.delay = 0.0
        self.error: Exception | None = None
        self.finish = "stop"
        self.writer: Writer | None = None
        """Writes the answers; ``None``: they are numbered."""
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.logprobs: list[tuple[float, float]] = []
        """Of the last tokens of a prompt: the token's own, and the highest at its place."""
        self.scorer: Callable[[list[int]], list[tuple[float, float]]] | None = None
        """In place of ``logprobs``: from a prompt to those of all its tokens but the first."""
        self.context = 0
        """The length that the engine states for its model; 0: none."""

    def scores(self, prompt: list[int]) -> list[tuple[float, float]]:
        return self.logprobs if self.scorer is None else self.scorer(prompt)

    async def work(self) -> None:
        self.loops.add(asyncio.get_running_loop())
        self.open += 1
        self.peak = max(self.peak, self.open)
        try:
            await asyncio.sleep(self.delay)
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        finally:
            self.open -= 1
        if self.error is not None:
            raise self.error


def fake_vllm(seen: Recorder) -> ModuleType:
    module: Any = ModuleType("vllm")

    @dataclasses.dataclass
    class AsyncEngineArgs:
        model: str
        tensor_parallel_size: int = 1
        pipeline_parallel_size: int = 1
        data_parallel_size: int = 1
        gpu_memory_utilization: float = 0.9
        max_model_len: int | None = None
        trust_remote_code: bool = False
        enable_prefix_caching: bool | None = None
        disable_log_stats: bool = False
        limit_mm_per_prompt: dict[str, int] | None = None
        dtype: str = "auto"
        reasoning_parser: str = ""

    @dataclasses.dataclass
    class SamplingParams:
        max_tokens: int = 16
        temperature: float = 1.0
        top_p: float = 1.0
        top_k: int = 0
        seed: int | None = None
        stop: list[str] | None = None
        repetition_penalty: float = 1.0
        prompt_logprobs: int | None = None
        thinking_token_budget: int | None = None
        detokenize: bool = True
        skip_special_tokens: bool = True
        output_kind: Any = None

    class AsyncLLMEngine:
        @classmethod
        def from_engine_args(cls, engine_args: AsyncEngineArgs, usage_context: str) -> AsyncLLMEngine:
            seen.started = {**dataclasses.asdict(engine_args), "usage_context": usage_context}
            seen.environment = dict(os.environ)
            engine = cls()
            if seen.context:
                engine.model_config = SimpleNamespace(max_model_len=seen.context)
            return engine

        async def generate(self, prompt: Any, sampling_params: SamplingParams, request_id: str) -> AsyncIterator[Any]:
            seen.calls.append({"prompt": prompt, "sampling": dataclasses.asdict(sampling_params), "id": request_id})
            assert sampling_params.output_kind == "final only"
            await seen.work()
            output = SimpleNamespace(text=f"answer to {request_id}", finish_reason=seen.finish, token_ids=[1, 2, 3])
            tokens = prompt["prompt_token_ids"]
            if seen.writer is not None:
                stops, skip = sampling_params.stop or [], sampling_params.skip_special_tokens
                wrote = seen.writer.write(tokens, sampling_params.max_tokens, stops, skip)
                output = SimpleNamespace(
                    text=wrote.text, finish_reason=wrote.finish, token_ids=wrote.ids, stop_reason=wrote.stop
                )
            told = None if sampling_params.prompt_logprobs is None else vllm_logprobs(tokens, seen.scores(tokens))
            yield SimpleNamespace(outputs=[output], prompt_token_ids=tokens, prompt_logprobs=told)

        def shutdown(self) -> None:
            seen.closed = True

    module.AsyncEngineArgs, module.SamplingParams, module.AsyncLLMEngine = (
        AsyncEngineArgs,
        SamplingParams,
        AsyncLLMEngine,
    )
    module.sampling_params = SimpleNamespace(RequestOutputKind=SimpleNamespace(FINAL_ONLY="final only"))
    module.__version__ = "0.0-fake"
    return module


def vllm_logprobs(tokens: list[int], told: list[tuple[float, float]]) -> list[dict[int, Any] | None]:
    """As vLLM gives them: nothing for the first token; then the token's own, and the likeliest one's."""
    rows = [(-9.0, -8.0)] * (len(tokens) - 1 - len(told)) + told
    return [
        None,
        *(
            {token: SimpleNamespace(logprob=own)} | ({} if own == best else {-1: SimpleNamespace(logprob=best)})
            for token, (own, best) in zip(tokens[1:], rows, strict=True)
        ),
    ]


class EngineDeadError(Exception):
    """As the class of that name in vLLM: every request after the engine's death raises it."""


class RequestError(Exception):
    """As ``VLLMError``: none of Python's own errors, and may be without a message."""


def vllm_modules(seen: Recorder) -> dict[str, ModuleType]:
    """The modules of vLLM that are imported by name."""
    exceptions, engine = ModuleType("vllm.exceptions"), ModuleType("vllm.v1.engine.exceptions")
    exceptions.VLLMError = RequestError  # type: ignore[attr-defined]
    engine.EngineDeadError = EngineDeadError  # type: ignore[attr-defined]
    usage: Any = ModuleType("vllm.usage.usage_lib")
    usage.UsageContext = SimpleNamespace(LLM_CLASS="LLM class")
    packages = {name: ModuleType(name) for name in ("vllm.v1", "vllm.v1.engine", "vllm.usage")}
    modules = {"vllm.exceptions": exceptions, "vllm.v1.engine.exceptions": engine, "vllm.usage.usage_lib": usage}
    return {"vllm": fake_vllm(seen), **packages, **modules}


def fake_sglang(seen: Recorder) -> ModuleType:
    module: Any = ModuleType("sglang")

    class Engine:
        def __init__(self, model_path: str, **arguments: Any) -> None:
            seen.started = {"model_path": model_path, **arguments}
            seen.environment = dict(os.environ)

        async def async_generate(
            self,
            prompt: str | None = None,
            sampling_params: dict[str, Any] | None = None,
            input_ids: list[int] | None = None,
            image_data: list[Any] | None = None,
            audio_data: list[Any] | None = None,
            video_data: list[Any] | None = None,
            return_logprob: bool = False,
            logprob_start_len: int = -1,
            top_logprobs_num: int = 0,
        ) -> dict[str, Any]:
            media = (image_data, video_data, audio_data)
            seen.calls.append({"prompt": input_ids, "sampling": sampling_params, "media": media})
            number = len(seen.calls) - 1
            await seen.work()
            facts = {"finish_reason": {"type": seen.finish}, "prompt_tokens": 5, "completion_tokens": 3}
            if return_logprob and input_ids is not None:
                assert top_logprobs_num == 1
                scores = seen.scores(input_ids)
                count = min(len(input_ids) - logprob_start_len, len(scores))
                told = list(zip(input_ids[-count:], scores[-count:], strict=True))
                facts["input_token_logprobs"] = [(None, 0, None)] + [(own, token, None) for token, (own, _) in told]
                facts["input_top_logprobs"] = [None] + [[(best, 1, None)] for _, (_, best) in told]
            text = f"answer {number}"
            if seen.writer is not None:
                given = sampling_params or {}
                stops, skip = given.get("stop") or [], given.get("skip_special_tokens", True)
                wrote = seen.writer.write(input_ids or [], given["max_new_tokens"], stops, skip)
                text, facts["completion_tokens"] = wrote.text, len(wrote.ids)
                facts["finish_reason"] = {"type": wrote.finish, "matched": 2 if wrote.stop is None else wrote.stop}
            return {"text": text, "meta_info": facts}

        def shutdown(self) -> None:
            seen.closed = True

    module.Engine = Engine
    module.__version__ = "0.0-fake"
    return module


def stand_ins(monkeypatch: pytest.MonkeyPatch, seen: Recorder) -> None:
    """Put the modules in the engines' places."""
    for name, module in {**vllm_modules(seen), "sglang": fake_sglang(seen)}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("VLLM_ENGINE_READY_TIMEOUT_S", "60")
