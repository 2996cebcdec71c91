"""Tiny networks with random weights, and items to score with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from PIL import Image

from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Form, Item, MediaInput

WORDS = ("a", "red", "car", "blue", "dog", "cat", "oil", "painting")
PLAIN = "Text-based E-commerce Product Image Generation"


def item(folder: Path, task: str = PLAIN, form: Form = "image", **more: Any) -> Item:
    """An item of a task, with predictions in ``folder/out``; ``more`` replaces its fields."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "out").mkdir(exist_ok=True)
    plain = Item(
        id=7,
        facts=find_task(task),
        form=form,
        prompt="a red car",
        media=(),
        reference=None,
        folder=folder / "data",
        prediction_folder=folder / "out",
        raw={"id": 7, "input": {}, "output": {}},
    )
    return structs.replace(plain, **more)


def picture(seed: int, size: tuple[int, int] = (40, 48)) -> Image.Image:
    """Smooth coloured noise, ``(width, height)``."""
    small = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)


def save(image: Image.Image, path: Path) -> str:
    """The file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return path.name


def video(folder: Path, frames: int, seed: int = 0) -> str:
    """A folder of frames; its name."""
    for number in range(frames):
        save(picture(seed + number), folder / f"{number}.png")
    return folder.name


def array(path: Path, rows: Any) -> str:
    """A ``.npy`` file; its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.asarray(rows))
    return path.name


def input_picture(path: Path) -> tuple[MediaInput, ...]:
    return (MediaInput("image", (path,)),)


def save_clip(folder: Path, dimensions: int = 8) -> Path:
    """A tiny CLIP with a tokenizer of ``WORDS`` and letters."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    folder.mkdir(parents=True)
    letters = "abcdefghijklmnopqrstuvwxyz"
    merges, pieces = [], []
    for word in WORDS:
        built = word[0] if len(word) > 1 else ""
        for letter in word[1:]:
            last = letter + "</w>" if len(built) + 1 == len(word) else letter
            if (pair := f"{built} {last}") not in merges:
                merges.append(pair)
                pieces.append(built + last)
            built += letter
    vocabulary = [*letters, *(letter + "</w>" for letter in letters), *pieces, "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(vocabulary)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CLIPTokenizer"}))
    shape: dict[str, Any] = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    }  # fmt: skip
    last_token = len(vocabulary) - 1
    config = CLIPConfig(
        text_config={
            **shape, "vocab_size": len(vocabulary), "max_position_embeddings": 12, "eos_token_id": last_token,
            "bos_token_id": last_token - 1, "pad_token_id": last_token,
        },
        vision_config={**shape, "image_size": 32, "patch_size": 8},
        projection_dim=dimensions,
    )  # fmt: skip
    torch.manual_seed(3)
    model = CLIPModel(config)
    _spread(model)
    model.save_pretrained(folder)
    return folder


def save_dino(folder: Path) -> Path:
    """A tiny ViT without a head."""
    import torch
    from transformers import ViTModel

    torch.manual_seed(4)
    model = ViTModel(_vit_config(), add_pooling_layer=False)
    _spread(model)
    model.save_pretrained(folder)
    return folder


def save_classifier(folder: Path, names: Mapping[int, str]) -> Path:
    """A tiny ViT with a class for each name."""
    import torch
    from transformers import ViTForImageClassification

    torch.manual_seed(5)
    model = ViTForImageClassification(_vit_config(id2label=dict(names), label2id={v: k for k, v in names.items()}))
    _spread(model)
    model.save_pretrained(folder)
    return folder


def _vit_config(**more: Any) -> Any:
    from transformers import ViTConfig

    return ViTConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8,
        **more,
    )  # fmt: skip


def _spread(model: Any) -> None:
    """Weights so large that different inputs give clearly different outputs."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.3)
