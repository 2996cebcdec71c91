"""Models of realistic sizes with random weights, built from configurations alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from examples.build_tiny_model import build_tiny_vlm

PATCH = 14


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one decoder, and with ``vision`` those of its picture encoder."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    vision: Mapping[str, Any] | None = None
    dtype: str = "bfloat16"

    @property
    def sections(self) -> list[int]:
        """Return the rotary frequencies of time, height and width: 1/4, 3/8 and 3/8 of half a head."""
        half = self.hidden // self.heads // 2
        side = half * 3 // 8
        return [half - 2 * side, side, side]


_VISION = MappingProxyType({"depth": 32, "hidden_size": 1280, "num_heads": 16, "intermediate_size": 3420})
_SMALL = MappingProxyType({"depth": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32})
SHAPES: Mapping[str, Mapping[str, Shape]] = MappingProxyType(
    {
        "full": {
            "vlm-3b": Shape("vlm-3b", 2048, 36, 16, 2, 11008, 151_936, _VISION),
            "vlm-7b": Shape("vlm-7b", 3584, 28, 28, 4, 18944, 152_064, _VISION),
            "text-7b": Shape("text-7b", 3584, 28, 28, 4, 18944, 152_064),
        },
        "tiny": {
            "vlm-3b": Shape("vlm-3b", 32, 2, 2, 1, 64, 512, _SMALL, "float32"),
            "vlm-7b": Shape("vlm-7b", 32, 2, 2, 2, 64, 512, _SMALL, "float32"),
            "text-7b": Shape("text-7b", 32, 2, 2, 2, 64, 512, None, "float32"),
        },
    }
)
"""Shapes by size of the suite and model."""


def build(folder: Path, shape: Shape, device: str, most_pixels: int) -> None:
    """Write a model folder that ``hf`` loads.

    The weights are drawn on the device and the tokenizer is a small one: rows of the output layer beyond it are zero,
    so that every generated token can be decoded.

    Args:
        most_pixels: pixels of a picture; the processor shrinks larger ones.
    """
    import torch
    from transformers import AutoTokenizer

    build_tiny_vlm(folder, architecture="qwen2_vl")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if shape.vision is None:
        for name in ("preprocessor_config.json", "processor_config.json"):
            (folder / name).unlink()
    else:
        _write_processor(folder, most_pixels)
    torch.manual_seed(0)
    with torch.device(device):
        model = _model(shape, tokenizer, getattr(torch, shape.dtype))
    with torch.no_grad():
        model.get_output_embeddings().weight[len(tokenizer) :] = 0.0
    settings = model.generation_config
    settings.eos_token_id = None  # answers of equal length, since speed is compared
    settings.pad_token_id, settings.bos_token_id = tokenizer.pad_token_id, tokenizer.bos_token_id
    model.save_pretrained(folder)


def _model(shape: Shape, tokenizer: Any, dtype: Any) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, Qwen2_5_VLConfig, Qwen2Config

    token = tokenizer.convert_tokens_to_ids
    sizes = {
        "vocab_size": shape.vocabulary, "hidden_size": shape.hidden, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
        "intermediate_size": shape.intermediate, "max_position_embeddings": 131_072, "tie_word_embeddings": False,
        "bos_token_id": tokenizer.bos_token_id, "eos_token_id": None, "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    if shape.vision is None:
        return AutoModelForCausalLM.from_config(Qwen2Config(**sizes), dtype=dtype)
    rope = {"rope_type": "default", "mrope_section": shape.sections, "rope_theta": 1_000_000.0}
    vision = {**shape.vision, "out_hidden_size": shape.hidden, "patch_size": PATCH, "spatial_merge_size": 2}
    config = Qwen2_5_VLConfig(
        text_config={**sizes, "rope_parameters": rope},
        vision_config={**vision, "fullatt_block_indexes": [shape.vision["depth"] - 1]},
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=False,
    )
    return AutoModelForImageTextToText.from_config(config, dtype=dtype)


def _write_processor(folder: Path, most_pixels: int) -> None:
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings |= {"patch_size": PATCH, "min_pixels": (2 * PATCH) ** 2, "max_pixels": most_pixels}
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
