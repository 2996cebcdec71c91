"""Loading a checkpoint with the code that it contains."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from lmms_eval.errors import ModelError

log = logging.getLogger(__name__)
_SHOWN_KEYS = 3
_FIRST = (
    "vision_model", "mlp1", "language_model.model.tok_embeddings", "language_model.model.embed_tokens",
    "language_model.output", "language_model.model.norm", "language_model.lm_head",
)  # fmt: skip
"""Modules that are always on the first GPU, with the names of several language models."""


def device_map(gpus: int, layers: int = 32) -> dict[str, int]:
    """Return the GPU of each part of the model. The first GPU gets half a share, as it holds the vision tower.

    The result may name layers that the model does not have, which has no effect. Raises ``ModelError`` if there is no
    GPU.
    """
    if gpus < 1:
        raise ModelError(
            "the layers of a model can be spread over GPUs only, but there is no GPU: leave out this option"
        )
    share = math.ceil(layers / (gpus - 0.5))
    counts = [math.ceil(share / 2), *[share] * (gpus - 1)]
    places = [gpu for gpu, count in enumerate(counts) for _ in range(count)]
    placed = {f"language_model.model.layers.{layer}": gpu for layer, gpu in enumerate(places)}
    placed[f"language_model.model.layers.{layers - 1}"] = 0
    return {**placed, **dict.fromkeys(_FIRST, 0)}


class CheckpointPlace(Struct, frozen=True):
    """The location of a checkpoint, and the back end that loads it."""

    backend: str
    """The name of the back end, for messages."""
    pretrained: str
    """A folder, or a repository on the hub."""
    revision: str | None = None

    @property
    def where(self) -> dict[str, Any]:
        """Keyword arguments for every ``from_pretrained``."""
        return {"revision": self.revision} if self.revision else {}


class LoadOptions(Struct, frozen=True, eq=False):
    """The options of loading a checkpoint."""

    dtype: Any = "auto"
    """A type of torch, its name, or ``auto`` for the type of the saved weights."""
    device_map: Any = None
    flash_attention: bool | None = None
    """The value of ``use_flash_attn`` if the checkpoint's class has it; ``None`` if it depends on the installation."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of ``from_pretrained``."""
    fast_tokenizer: bool = True


def read_config(place: CheckpointPlace, hint: str = "") -> Mapping[str, Any]:
    """Read ``config.json``, without running code. Raises ``ModelError``, with ``hint``, if it is not available."""
    from transformers import PretrainedConfig

    try:
        config, _ = PretrainedConfig.get_config_dict(place.pretrained, **place.where)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        remedy = "give a folder that holds config.json and the weights, or fetch it first: hf download NAME"
        raise ModelError(
            f"{place.backend}: {place.pretrained} cannot be read: {reason} ({remedy}{f'; {hint}' if hint else ''})"
        ) from error
    return dict(config)


def has_own_code(config: Mapping[str, Any]) -> bool:
    """Return whether the checkpoint contains the code of its model."""
    return "AutoModel" in (config.get("auto_map") or {})


def check_trust(place: CheckpointPlace, trusted: bool, where: str = "") -> None:
    """Raise ``ModelError`` if the user has not allowed the checkpoint's code. ``where`` is another way to do so."""
    if not trusted:
        raise ModelError(
            f"{place.backend}: {place.pretrained} ships code of its own, which is not run unless you give "
            f"--trust_remote_code{where}; read that code first"
        )


def load_checkpoint(place: CheckpointPlace, config: Mapping[str, Any], load_options: LoadOptions) -> tuple[Any, Any]:
    """Load model and tokenizer with the checkpoint's own code, which is run. Raises ``ModelError`` if that fails."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.dynamic_module_utils import get_class_from_dynamic_module
    from transformers.utils import is_flash_attn_2_available

    from lmms_eval.models.hf.load import dtype_keyword

    arguments: dict[str, Any] = {dtype_keyword(): load_options.dtype, "low_cpu_mem_usage": True, **place.where}
    arguments |= load_options.arguments
    if load_options.device_map is not None:
        arguments["device_map"] = load_options.device_map
    fast = {} if load_options.fast_tokenizer else {"use_fast": False}
    try:
        written = get_class_from_dynamic_module(config["auto_map"]["AutoModel"], place.pretrained, **place.where)
        if "use_flash_attn" in inspect.signature(written.__init__).parameters:
            flash = load_options.flash_attention
            arguments["use_flash_attn"] = is_flash_attn_2_available() if flash is None else flash
        model, report = AutoModel.from_pretrained(
            place.pretrained, trust_remote_code=True, output_loading_info=True, **arguments
        )
        tokenizer = AutoTokenizer.from_pretrained(place.pretrained, trust_remote_code=True, **fast, **place.where)
    except Exception as error:  # the checkpoint's own code may raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ModelError(f"{place.backend}: {place.pretrained} cannot be loaded by its own code: {reason}") from error
    if not callable(getattr(model, "chat", None)):
        raise ModelError(f"{place.backend}: {type(model).__name__} of {place.pretrained} has no method chat")
    missing = sorted(report["missing_keys"])
    if missing:  # the checkpoint's own code may tie them to others
        shown = ", ".join(missing[:_SHOWN_KEYS])
        log.warning(
            "%s: %s lacks %d weights of its model (%s, ...): unless its code ties them to others they are random",
            place.backend, place.pretrained, len(missing), shown,
        )  # fmt: skip
    return model.eval(), tokenizer
