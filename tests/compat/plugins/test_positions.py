"""The constructors of the base classes: names, order and defaults of the arguments that may be given by position."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from tests.cases import for_each

VLLM = {
    "model": "Qwen/Qwen2.5-VL-3B-Instruct",
    "tensor_parallel_size": 1,
    "data_parallel_size": 1,
    "gpu_memory_utilization": 0.8,
    "batch_size": 1,
    "max_frame_num": 32,
    "trust_remote_code": True,
    "chat_template": None,
}
LOCAL = {
    "device": "cuda",
    "device_map": "auto",
    "batch_size": 1,
    "use_cache": True,
    "attn_implementation": None,
    "min_pixels": 200704,
    "max_pixels": 1605632,
}
FRAMES = {"max_num_frames": 32, "fps": None}
PROMPTS = {"system_prompt": "You are a helpful assistant.", "interleave_visuals": False}
QWEN3 = {
    "pretrained": "Qwen/Qwen3-VL-4B-Instruct",
    **LOCAL,
    "total_pixels": None,
    **FRAMES,
    **PROMPTS,
    "enable_thinking": None,
    "reasoning_prompt": None,
}
QWEN35 = {
    "pretrained": "Qwen/Qwen3.5-4B",
    "min_pixels": 65536,
    "max_pixels": 131072,
    "total_pixels": 234881024,
    "max_num_frames": 768,
    "max_frames": None,
    "enable_thinking": True,
}
OPENAI = {
    "model_version": "grok-2-latest",
    "model": None,
    "base_url": None,
    "api_key": None,
    "timeout": 10,
    "retry_backoff_s": 1.0,
    "max_retries": 5,
    "max_size_in_mb": 20,
    "azure_openai": False,
    "max_frames_num": 10,
    "video_fps": None,
    "httpx_trust_env": True,
    "batch_size": 64,
    "num_concurrent": 32,
    "adaptive_concurrency": False,
    "adaptive_min_concurrency": 1,
    "adaptive_max_concurrency": 128,
    "adaptive_target_latency_s": 15.0,
    "adaptive_increase_step": 0.1,
    "adaptive_decrease_factor": 0.7,
    "adaptive_failure_threshold": 0.05,
    "prefix_aware_queue": True,
    "prefix_hash_chars": 256,
}
POSITIONS: dict[str, dict[str, Any]] = {
    "simple.vllm.VLLM": {
        **VLLM,
        "min_image_pixels": 28,
        "disable_log_stats": False,
        "image_first": False,
        "max_new_tokens": 1024,
    },
    "chat.vllm.VLLM": {
        **VLLM,
        "max_frame_num": 768,
        "max_pixels": 1605632,
        "min_image_pixels": 28,
        "fps": None,
        "nframes": 32,
        "max_new_tokens": 4096,
    },
    "simple.qwen2_5_vl.Qwen2_5_VL": {
        "pretrained": "Qwen/Qwen2.5-VL-3B-Instruct",
        **LOCAL,
        **FRAMES,
        **PROMPTS,
        "reasoning_prompt": None,
    },
    "simple.qwen3_vl.Qwen3_VL": QWEN3,
    "chat.qwen3_vl.Qwen3_VL": QWEN3,
    "simple.qwen3_5.Qwen3_5": QWEN35,
    "chat.qwen3_5.Qwen3_5": QWEN35,
    "simple.llava_hf.LlavaHf": {
        "pretrained": "llava-hf/llava-1.5-7b-hf",
        "revision": "main",
        "device": "cuda",
        "dtype": "auto",
        "batch_size": 1,
        "trust_remote_code": False,
        "attn_implementation": None,
        "device_map": "",
        "chat_template": None,
        "use_cache": True,
        "max_frames_num": 32,
    },
    "simple.openai.OpenAICompatible": OPENAI,
}


@for_each("path", POSITIONS)
def test_positions_and_defaults_are_the_familys(path: str) -> None:
    module, _, name = f"lmms_eval.models.{path}".rpartition(".")
    parameters = inspect.signature(getattr(importlib.import_module(module), name)).parameters.values()
    by_position = [item for item in parameters if item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert [(item.name, item.default) for item in by_position] == list(POSITIONS[path].items())
