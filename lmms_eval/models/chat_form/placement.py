"""Placement of layers on GPUs, by the rule of InternVL's authors (MMIE specification §5)."""

from __future__ import annotations

import math

from lmms_eval.errors import ModelError

_FIRST = (
    "vision_model",
    "mlp1",
    "language_model.model.tok_embeddings",
    "language_model.model.embed_tokens",
    "language_model.output",
    "language_model.model.norm",
    "language_model.lm_head",
)
"""Modules on the first GPU whatever the number of layers; names of several language models."""


def device_map(gpus: int, layers: int = 32) -> dict[str, int]:
    """Part of the model -> GPU. The first GPU counts as half of one, since it holds the vision tower.

    The last GPUs' share may name layers that the model does not have; such names do no harm.

    Raises:
        ModelError: there is no GPU.
    """
    if gpus < 1:
        raise ModelError("the layers of a model can be spread over GPUs only, and there is none")
    share = math.ceil(layers / (gpus - 0.5))
    counts = [math.ceil(share / 2), *[share] * (gpus - 1)]
    places = [gpu for gpu, count in enumerate(counts) for _ in range(count)]
    placed = {f"language_model.model.layers.{layer}": gpu for layer, gpu in enumerate(places)}
    placed[f"language_model.model.layers.{layers - 1}"] = 0
    return {**placed, **dict.fromkeys(_FIRST, 0)}
