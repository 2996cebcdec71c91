"""An InternVL checkpoint as a judge: loaded with its own code, or in the format of transformers."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.api.messages import ChatImageContent, ChatTextContent
from lmms_eval.api.request import Request
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.media import load_image
from lmms_eval.models.chat_form.checkpoints import layers_of
from lmms_eval.models.chat_form.internvl import MAX_TILES, PLACEHOLDER, InternVLForm, InternVLPrompt, cut
from lmms_eval.models.chat_form.loading import (
    CheckpointPlace,
    LoadOptions,
    check_trust,
    device_map,
    has_own_code,
    load_checkpoint,
    read_config,
)
from lmms_eval.models.chat_form.model import CheckpointModel
from lmms_eval.models.hf.model import checkpoint_identity
from lmms_eval.models.hf.options import converted, flag, positive_int
from lmms_eval.models.hf.settings import GenerationSettings

if TYPE_CHECKING:
    from lmms_eval.api.model import Model


log = logging.getLogger(__name__)
NATIVE = "internvl"
"""``model_type`` of checkpoints in the format of transformers."""
DTYPES = ("auto", "bfloat16", "float32", "float16")
DEFAULT_MAX_NEW_TOKENS = 1024
_GATED = "MMIE/MMIE-Score is gated: accept its terms on the hub and log in with hf auth login"


class InternVLOptions(Struct, frozen=True):
    """The checked ``--judge_args``, with one field for each argument."""

    pretrained: str
    """A folder, or a repository on the hub."""
    revision: str | None = None
    trust_remote_code: bool = False
    """Run the code that comes with the checkpoint. Read that code first."""
    dtype: str = "auto"
    """``auto``: bfloat16 if the device supports it, else float32."""
    device: str = "auto"
    spread: bool = False
    """Distribute the layers over all GPUs."""
    max_tiles: int = MAX_TILES
    """Maximum number of tiles of a picture, without the thumbnail."""

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> InternVLOptions:
        """Check and convert the arguments. Raises ``ModelError``, which suggests the nearest name to an unknown one."""
        known = cls.__struct_fields__
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                nearest = f"did you mean {close[0]!r}? " if close else ""
                raise ModelError(f"internvl: unknown argument {name!r}; {nearest}valid: {', '.join(known)}")
            values[name] = converted("internvl", name, value, _CONVERTERS.get(name, str))
        if not str(values.get("pretrained", "")).strip():
            raise ModelError("internvl: name the model folder or repository, as in --judge_model internvl:FOLDER")
        return cls(**values)


def _dtype(value: Any) -> str:
    name = str(value).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"use one of {', '.join(DTYPES)}")
    return name


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "trust_remote_code": flag,
    "spread": flag,
    "max_tiles": positive_int,
    "dtype": _dtype,
}


class ChatJudge(CheckpointModel):
    """Asks one question at a time, in the form that the judge's authors use: pictures as stored, texts unchanged.

    A placeholder in a text counts as the placeholder of a picture.
    """

    form: InternVLForm

    def __init__(self, form: InternVLForm, options: InternVLOptions) -> None:
        super().__init__(form)
        self._options = options

    def prepare(self, request: Request) -> Request:
        """Cut the pictures into tiles. Raises ``MediaError`` for an unreadable picture, and for videos and sounds."""
        texts: list[str] = []
        counts: list[int] = []
        tiles: list[Any] = []
        for message in request.build_messages().messages:
            text = ""
            for part in message.content:
                if isinstance(part, ChatTextContent):
                    text += part.text
                elif isinstance(part, ChatImageContent):
                    text += PLACEHOLDER
                    own = cut(load_image(part.url, rotate=False).convert("RGB"), self._options.max_tiles)
                    counts.append(len(own))
                    tiles += own
                else:
                    raise MediaError(f"internvl takes texts and pictures, not {part.type}")
            texts.append(text)
        prompt = InternVLPrompt("\n".join(texts), self.form.tensor(tiles), tuple(counts))
        return request.with_payload(prompt, prompt.nbytes)

    def read_settings(self, request: Request) -> GenerationSettings:
        options = generation_of(request.generation)
        return GenerationSettings("", options, (), options["do_sample"], skip_special_tokens=True)

    def identity(self) -> Mapping[str, Any]:
        model, options = self.form.model, self._options
        return {
            **checkpoint_identity(options.pretrained, options.revision, model),
            "class": type(model).__name__,
            "dtype": str(getattr(model, "dtype", None)),
            "max_tiles": options.max_tiles,
        }


def generation_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the options of a request to those of ``chat``. Sampling is off unless the request sets ``do_sample``."""
    options: dict[str, Any] = {"max_new_tokens": wanted.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)}
    options["do_sample"] = bool(wanted.get("do_sample"))
    if options["do_sample"]:
        options |= {key: wanted[key] for key in ("temperature", "top_p", "top_k") if wanted.get(key) is not None}
    return options


def build_internvl(arguments: Mapping[str, Any]) -> Model:
    """Build the judge ``internvl:PATH``. The arguments are the fields of ``InternVLOptions``.

    Raises:
        ModelError: an argument is wrong, the files are not available, or they hold another model.
    """
    options = InternVLOptions.from_arguments(arguments)
    place = CheckpointPlace("internvl", options.pretrained, options.revision)
    config = read_config(place, _GATED)
    if config.get("model_type") == NATIVE:
        return _native(options)
    if not has_own_code(config):
        raise ModelError(
            f"internvl: {options.pretrained} holds a model of type {config.get('model_type')!r}, which is neither "
            f"{NATIVE} nor a checkpoint with its own code; name another model as hf:{options.pretrained}"
        )
    check_trust(place, options.trust_remote_code, " (in a run: --judge_args trust_remote_code=true)")
    import torch

    from lmms_eval.models.hf.load import resolve_device

    device = resolve_device(options.device)
    devices: Any = None if device.type == "cpu" else {"": device}
    if options.spread:
        devices = device_map(torch.cuda.device_count(), layers_of(config))
    loading = LoadOptions(usable_dtype(device, options.dtype), devices, fast_tokenizer=False)
    model, tokenizer = load_checkpoint(place, config, loading)
    return ChatJudge(InternVLForm(model, tokenizer, config, {}), options)


def usable_dtype(device: Any, wanted: str = "auto") -> Any:
    """Return the wanted data type; for ``auto``, bfloat16 if the device can compute in it, else float32."""
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
    """Build the model ``internvl_hf`` of the ``hf`` back end, with the tiling of the authors' code."""
    from lmms_eval.models.building import BuildOptions, build_model
    from lmms_eval.models.hf.load import resolve_device
    from lmms_eval.models.registry import ModelRegistry

    if options.spread:
        raise ModelError(
            "internvl: spread applies to checkpoints with their own code; this one is in the format of transformers"
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
