"""Ask vLLM the same questions in two ways: through lmms_eval, and by ``LLM.generate``."""

from __future__ import annotations

import importlib
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.workloads import Question, Scale, questions
from lmms_eval.config import build_config
from lmms_eval.evaluator import run
from lmms_eval.models.registry import ModelRegistry

ROUNDS = 3
ENGINE = {"gpu_memory_utilization": 0.4, "max_model_len": 4096, "enable_prefix_caching": False}
"""Arguments of both engines, which share the device. Answers must not come from a cache in later rounds."""


def against_vllm(folder: Path, tasks: Path, task: str, scale: Scale, **engine: Any) -> dict[str, Any]:
    """Return seconds of both, per round, and the median ratio of the throughputs.

    Both engines live in this process. Neither is busy while the other is measured.

    Args:
        folder: model.
        tasks, task: folder of tasks, name of a text task.
        scale: its size.
        engine: further arguments of both engines.
    """
    package = importlib.import_module("vllm")
    arguments = {**ENGINE, **engine}
    model = ModelRegistry().build("vllm", {"model": str(folder), **arguments})[0]
    bare = package.LLM(model=str(folder), **arguments)
    asked = questions(tasks, task)
    try:
        _ours(model, tasks, task), _bare(package, bare, folder, asked, scale)  # the first passes compile what they need
        pairs = [
            (_ours(model, tasks, task), _bare(package, bare, folder, asked, scale)) for _ in range(ROUNDS)
        ]  # fmt: skip
    finally:
        model.close()
        bare.llm_engine.engine_core.shutdown()
    return {
        "vllm": package.__version__,
        "questions": len(asked),
        "ours_s": [own for own, _ in pairs],
        "bare_s": [other for _, other in pairs],
        "ratio_wall": statistics.median(other / own for own, other in pairs),
    }


def _ours(model: Any, tasks: Path, task: str) -> float:
    values = {"model": "vllm", "tasks": task, "include_path": str(tasks), "output_path": "", "verbosity": "ERROR"}
    results = run(build_config(values), model).results
    assert not any(outcome.get("failed") for outcome in results["outcomes"].values()), results["outcomes"]
    return float(results["timing"]["first_request_to_last_response"])


def _bare(package: Any, engine: Any, folder: Path, asked: list[Question], scale: Scale) -> float:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    sampling = package.SamplingParams(max_tokens=scale.tokens, min_tokens=scale.tokens, temperature=0)
    began = time.perf_counter()
    texts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": question.text}], tokenize=False, add_generation_prompt=True
        )
        for question in asked
    ]
    prompts = [{"prompt_token_ids": tokens} for tokens in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    engine.generate(prompts, sampling, use_tqdm=False)
    return time.perf_counter() - began
