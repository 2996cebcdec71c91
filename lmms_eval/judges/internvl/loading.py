"""Loading of an InternVL checkpoint as a judge: by its own code, or in the form of transformers."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import ModelError
from lmms_eval.judges.internvl.options import InternVLOptions
from lmms_eval.judges.internvl.placement import device_map

if TYPE_CHECKING:
    from lmms_eval.api.model import Model

log = logging.getLogger(__name__)
NATIVE = "internvl"
"""``model_type`` of checkpoints in the form of transformers."""


def build_internvl(arguments: Mapping[str, Any]) -> Model:
    """The judge ``internvl:PATH``; arguments are the fields of ``InternVLOptions``.

    Raises:
        ModelError: an argument is wrong, the files cannot be had, or they hold another model.
    """
    options = InternVLOptions.from_arguments(arguments)
    from transformers import PretrainedConfig

    try:  # the content of ``config.json`` alone: no code is run
        config, _ = PretrainedConfig.get_config_dict(options.pretrained, revision=options.revision)
    except (OSError, ValueError) as error:
        hint = "give a folder that holds config.json and the weights, or fetch it first: hf download NAME"
        gated = "; MMIE/MMIE-Score is gated: accept its terms on the hub and log in with hf auth login"
        reason = " ".join(str(error).split())
        raise ModelError(f"internvl: {options.pretrained} cannot be read: {reason} ({hint}{gated})") from error
    if config.get("model_type") == NATIVE:
        return _native(options)
    if "AutoModel" not in (config.get("auto_map") or {}):
        raise ModelError(
            f"internvl: {options.pretrained} holds a model of type {config.get('model_type')!r}, neither {NATIVE} nor "
            f"one with code of its own; name another model as hf:{options.pretrained}"
        )
    if not options.trust_remote_code:
        raise ModelError(
            f"internvl: {options.pretrained} ships code of its own, which is not run unless you give "
            "--trust_remote_code (in a run: --judge_args trust_remote_code=true); read that code first"
        )
    from lmms_eval.judges.internvl.chat import ChatJudge, ChatModel

    return ChatJudge(ChatModel(*_remote(options, config)), options)


def usable_dtype(device: Any, wanted: str = "auto") -> Any:
    """bfloat16 if the device convolves and multiplies in it, else float32; another wish is granted as it is."""
    import torch

    if wanted != "auto":
        return getattr(torch, wanted)
    try:
        picture = torch.ones(1, 1, 2, 2, dtype=torch.bfloat16, device=device)
        torch.nn.functional.conv2d(picture, picture)
        torch.matmul(picture, picture)
    except RuntimeError as error:
        log.warning("the judge computes in float32: %s has no bfloat16 (%s)", device, error)
        return torch.float32
    return torch.bfloat16


def _native(options: InternVLOptions) -> Model:
    """The named family of the ``hf`` back end, tiling as the authors' code does."""
    from lmms_eval.models.building import BuildOptions, build_model
    from lmms_eval.models.hf.load import resolve_device
    from lmms_eval.models.registry import ModelRegistry

    if options.spread:
        raise ModelError(
            "internvl: spread is for checkpoints with code of their own; this one is in transformers' form"
        )
    arguments = {
        "pretrained": options.pretrained,
        "revision": options.revision,
        "device": options.device,
        "dtype": str(usable_dtype(resolve_device(options.device), options.dtype)).removeprefix("torch."),
        "crop_to_patches": True,
        "min_patches": 1,
        "max_patches": options.max_tiles,
    }
    return build_model(ModelRegistry().resolve("internvl_hf"), arguments, BuildOptions())


def _remote(options: InternVLOptions, config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Model and tokenizer by the checkpoint's own code."""
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.dynamic_module_utils import get_class_from_dynamic_module
    from transformers.utils import is_flash_attn_2_available

    from lmms_eval.models.hf.load import resolve_device

    device = resolve_device(options.device)
    place: Any = {"": device}
    if options.spread:
        language = config.get("llm_config") or config.get("text_config") or config
        place = device_map(torch.cuda.device_count(), int(language.get("num_hidden_layers", 32)))
    where = {"revision": options.revision} if options.revision else {}
    arguments: dict[str, Any] = {"dtype": usable_dtype(device, options.dtype), "low_cpu_mem_usage": True, **where}
    if device.type != "cpu" or options.spread:
        arguments["device_map"] = place
    try:
        written = get_class_from_dynamic_module(config["auto_map"]["AutoModel"], options.pretrained, **where)
        if "use_flash_attn" in inspect.signature(written.__init__).parameters:
            arguments["use_flash_attn"] = is_flash_attn_2_available()
        model = AutoModel.from_pretrained(options.pretrained, trust_remote_code=True, **arguments).eval()
        tokenizer = AutoTokenizer.from_pretrained(options.pretrained, trust_remote_code=True, use_fast=False, **where)
    except Exception as error:  # the checkpoint's own code may raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ModelError(f"internvl: {options.pretrained} cannot be loaded by its own code: {reason}") from error
    if not callable(getattr(model, "chat", None)):
        raise ModelError(f"internvl: {type(model).__name__} of {options.pretrained} has no method chat")
    return model, tokenizer
