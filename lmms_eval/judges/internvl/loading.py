"""Loading of an InternVL checkpoint as a judge: by its own code, or in the form of transformers."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lmms_eval.api.messages import ChatImageContent, ChatTextContent
from lmms_eval.api.request import Request
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.media import load_image
from lmms_eval.models.chat_form.checkpoints import checkpoint_identity, layers_of
from lmms_eval.models.chat_form.form import Checkpoint
from lmms_eval.models.chat_form.internvl import MAX_TILES, PLACEHOLDER, InternVLForm, InternVLPrompt, cut
from lmms_eval.models.chat_form.loading import (
    Place,
    Wish,
    check_trust,
    device_map,
    has_own_code,
    load_checkpoint,
    read_config,
)
from lmms_eval.models.chat_form.model import ChatModel
from lmms_eval.models.hf.options import flag, positive_int
from lmms_eval.models.hf.settings import Settings

if TYPE_CHECKING:
    from lmms_eval.api.model import Model


DTYPES = ("auto", "bfloat16", "float32", "float16")


@dataclass(frozen=True, slots=True)
class InternVLOptions:
    """``--judge_args`` after checking; one field for each argument."""

    pretrained: str
    """Folder, or repository on the hub."""
    revision: str | None = None
    trust_remote_code: bool = False
    """Run the code that the checkpoint ships: read it first."""
    dtype: str = "auto"
    """``auto``: bfloat16 where the device computes in it, else float32."""
    device: str = "auto"
    spread: bool = False
    """Lay the layers over all GPUs."""
    max_tiles: int = MAX_TILES
    """Tiles of a picture at most, the thumbnail not counted."""

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> InternVLOptions:
        """Read the arguments.

        Raises:
            ModelError: a name is unknown (the nearest one is named), or a value does not fit.
        """
        known = [field.name for field in fields(cls)]
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                nearest = f"did you mean {close[0]!r}? " if close else ""
                raise ModelError(f"internvl: unknown argument {name!r}; {nearest}valid: {', '.join(known)}")
            try:
                values[name] = _CONVERTERS.get(name, str)(value)
            except (TypeError, ValueError) as error:
                raise ModelError(f"internvl: {name}={value!r} is not valid: {error}") from error
        if not str(values.get("pretrained", "")).strip():
            raise ModelError("internvl: name the model folder or repository, as in --judge_model internvl:FOLDER")
        return cls(**values)


def _dtype(value: Any) -> str:
    name = str(value).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"one of {', '.join(DTYPES)} is needed")
    return name


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "trust_remote_code": flag,
    "spread": flag,
    "max_tiles": positive_int,
    "dtype": _dtype,
}


DEFAULT_MAX_NEW_TOKENS = 1024


class ChatJudge(ChatModel):
    """Asks one question at a time, written as the judge's authors do: pictures as they are stored, texts as they stand.

    A placeholder that a text holds is taken for a picture's.
    """

    form: InternVLForm

    def __init__(self, loaded: Checkpoint, options: InternVLOptions) -> None:
        super().__init__(InternVLForm(loaded, {}))
        self._options = options

    def prepare(self, request: Request) -> Request:
        """Cut the pictures into tiles. Raises ``MediaError`` for one that cannot be read, and for videos and sounds."""
        texts: list[str] = []
        counts: list[int] = []
        tiles: list[Any] = []
        for message in request.build_messages().messages:
            said = ""
            for part in message.content:
                if isinstance(part, ChatTextContent):
                    said += part.text
                elif isinstance(part, ChatImageContent):
                    said += PLACEHOLDER
                    own = cut(load_image(part.url, rotate=False).convert("RGB"), self._options.max_tiles)
                    counts.append(len(own))
                    tiles += own
                else:
                    raise MediaError(f"internvl takes texts and pictures, not {part.type}")
            texts.append(said)
        prompt = InternVLPrompt("\n".join(texts), self.form.tensor(tiles), tuple(counts))
        return request.with_payload(prompt, prompt.nbytes)

    def read_settings(self, request: Request) -> Settings:
        options = generation_of(request.generation)
        return Settings("", options, (), options["do_sample"], skip_special_tokens=True)

    def identity(self) -> Mapping[str, Any]:
        model, options = self.form.model, self._options
        return {
            **checkpoint_identity(options.pretrained, options.revision, model),
            "class": type(model).__name__,
            "dtype": str(getattr(model, "dtype", None)),
            "max_tiles": options.max_tiles,
        }


def generation_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``chat`` from those of a request: without sampling unless it is asked for."""
    options: dict[str, Any] = {"max_new_tokens": wanted.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)}
    options["do_sample"] = bool(wanted.get("do_sample"))
    if options["do_sample"]:
        options |= {key: wanted[key] for key in ("temperature", "top_p", "top_k") if wanted.get(key) is not None}
    return options


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
