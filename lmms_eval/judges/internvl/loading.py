"""Loading of an InternVL checkpoint as a judge: by its own code, or in the form of transformers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import ModelError
from lmms_eval.judges.internvl.options import InternVLOptions
from lmms_eval.models.chat_form.checkpoints import layers_of
from lmms_eval.models.chat_form.loading import Place, Wish, check_trust, has_own_code, load_checkpoint, read_config
from lmms_eval.models.chat_form.placement import device_map

if TYPE_CHECKING:
    from lmms_eval.api.model import Model

log = logging.getLogger(__name__)
NATIVE = "internvl"
"""``model_type`` of checkpoints in the form of transformers."""
_GATED = "MMIE/MMIE-Score is gated: accept its terms on the hub and log in with hf auth login"


def build_internvl(arguments: Mapping[str, Any]) -> Model:
    """The judge ``internvl:PATH``; arguments are the fields of ``InternVLOptions``.

    Raises:
        ModelError: an argument is wrong, the files cannot be had, or they hold another model.
    """
    options = InternVLOptions.from_arguments(arguments)
    place = Place("internvl", options.pretrained, options.revision)
    config = read_config(place, _GATED)
    if config.get("model_type") == NATIVE:
        return _native(options)
    if not has_own_code(config):
        raise ModelError(
            f"internvl: {options.pretrained} holds a model of type {config.get('model_type')!r}, neither {NATIVE} nor "
            f"one with code of its own; name another model as hf:{options.pretrained}"
        )
    check_trust(place, options.trust_remote_code, " (in a run: --judge_args trust_remote_code=true)")
    from lmms_eval.judges.internvl.chat import ChatJudge

    return ChatJudge(load_checkpoint(place, config, _wish(options, config)), options)


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


def _wish(options: InternVLOptions, config: Mapping[str, Any]) -> Wish:
    import torch

    from lmms_eval.models.hf.load import resolve_device

    device = resolve_device(options.device)
    place: Any = None if device.type == "cpu" else {"": device}
    if options.spread:
        place = device_map(torch.cuda.device_count(), layers_of(config))
    return Wish(usable_dtype(device, options.dtype), place, fast_tokenizer=False)
