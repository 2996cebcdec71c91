"""From options to a model and its processor, with messages that say what is wrong and what to do."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from lmms_eval.errors import ModelError
from lmms_eval.models.hf.folder import local_folder
from lmms_eval.models.hf.options import HFOptions

_PIXEL_LIMITS = ("min_pixels", "max_pixels")
_SHOWN_KEYS = 3


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that is ready to answer."""

    model: Any
    processor: Any
    tokenizer: Any
    device: Any
    """Where inputs go (``torch.device``)."""
    dtype: str
    native_pixels: bool
    """The processor takes ``min_pixels`` and ``max_pixels`` itself."""
    image_only: bool
    """The processor was built without its video part, because torchvision is absent."""


def load(options: HFOptions) -> Loaded:
    """Load processor and model.

    Raises:
        ModelError: a folder or package is missing, or the files do not make a working model.
    """
    local_folder(options.pretrained)
    device = resolve_device(options.device)
    processor, image_only = _load_processor(options)
    tokenizer = _left_padding(processor, options)
    native = _limit_pixels(processor, options)
    model = _load_model(options, device)
    model.eval()
    return Loaded(
        model=model,
        processor=processor,
        tokenizer=tokenizer,
        device=_input_device(model, device),
        dtype=str(model.dtype).removeprefix("torch."),
        native_pixels=native,
        image_only=image_only,
    )


def resolve_device(name: str) -> Any:
    """``auto`` takes the accelerator that is there; ``cuda`` under a launcher takes the process's own one.

    Raises:
        ModelError: no such device, or it is not available.
    """
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ModelError(f"hf: device={name!r} is not a device of torch: {error}") from error
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ModelError(f"hf: device={name} was asked for, but torch {torch.__version__} finds none")
        if device.index is None:
            rank = os.environ.get("LOCAL_RANK", "0")
            index = int(rank) % torch.cuda.device_count() if rank.isdigit() else 0
            device = torch.device("cuda", index)
    return device


def _location(options: HFOptions) -> dict[str, Any]:
    """Keyword arguments that every ``from_pretrained`` gets. ``trust_remote_code`` is never left to a prompt."""
    where: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    if options.revision:
        where["revision"] = options.revision
    return where


def _source(options: HFOptions) -> str:
    return os.path.expanduser(options.pretrained)


def _load_processor(options: HFOptions) -> tuple[Any, bool]:
    from transformers import AutoProcessor

    image_only = False
    try:
        try:
            processor = AutoProcessor.from_pretrained(_source(options), **_location(options))
        except ImportError as error:
            if "torchvision" not in str(error).lower():
                raise
            processor, image_only = _without_video_part(options, error), True
    except ModelError:
        raise
    except Exception as error:  # whatever transformers or a repository's own code raises
        raise _explain(options, "processor", error) from error
    lacking = [part for part in ("tokenizer", "image_processor") if getattr(processor, part, None) is None]
    if lacking:
        raise ModelError(
            f"hf: the processor of {options.pretrained} is a {type(processor).__name__}, which has no "
            f"{' and no '.join(lacking)}: it is no image-text-to-text model, or its processor files are incomplete"
        )
    _check_template(processor, options)
    return processor, image_only


def _without_video_part(options: HFOptions, cause: ImportError) -> Any:
    """The family's processor from tokenizer and image part alone: its video part needs torchvision.

    Raises:
        ModelError: the image part needs torchvision as well.
    """
    from transformers import AutoConfig, AutoImageProcessor, AutoTokenizer
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    source, where = _source(options), _location(options)
    config = AutoConfig.from_pretrained(source, **where)
    if type(config) not in PROCESSOR_MAPPING:
        raise ModelError(f"hf: the processor of {options.pretrained} truly needs torchvision: {cause}") from cause
    family = PROCESSOR_MAPPING[type(config)]
    loaders = {"tokenizer": AutoTokenizer, "image_processor": AutoImageProcessor}
    names = family.get_attributes() if hasattr(family, "get_attributes") else family.attributes
    try:
        parts = [loaders[name].from_pretrained(source, **where) if name in loaders else None for name in names]
    except ImportError as error:
        raise ModelError(
            f"hf: the image processor of {options.pretrained} truly needs torchvision, which is not installed"
        ) from error
    settings, _ = family.get_processor_dict(source, **where)
    return _allow_missing_video(family).from_args_and_dict(parts, settings)


def _allow_missing_video(family: type[Any]) -> type[Any]:
    """``family`` whose constructor takes ``None`` for its video part; name and module stay."""

    def check(self: Any, name: str, argument: Any) -> Any:
        if argument is None and "video" in name:
            return type(None)
        return family.check_argument_for_proper_class(self, name, argument)

    members = {"check_argument_for_proper_class": check, "__module__": family.__module__}
    return type(family.__name__, (family,), members)


def _check_template(processor: Any, options: HFOptions) -> None:
    if options.chat_template or getattr(processor, "chat_template", None):
        return
    template = getattr(processor.tokenizer, "chat_template", None)
    if not template:
        raise ModelError(
            f"hf: {options.pretrained} has no chat template (chat_template.jinja): give one with chat_template=FILE"
        )
    processor.chat_template = template


def _left_padding(processor: Any, options: HFOptions) -> Any:
    tokenizer = processor.tokenizer
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ModelError(f"hf: the tokenizer of {options.pretrained} has neither a padding nor an end token")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _limit_pixels(processor: Any, options: HFOptions) -> bool:
    """Rebuild the image part with the pixel limits where its family has them; whether it does."""
    part = processor.image_processor
    accepted = getattr(getattr(type(part), "valid_kwargs", None), "__annotations__", {})
    native = all(name in accepted or hasattr(part, name) for name in _PIXEL_LIMITS)
    limits = {name: getattr(options, name) for name in _PIXEL_LIMITS if getattr(options, name)}
    if not native and options.min_pixels:
        raise ModelError(f"hf: {type(part).__name__} has no min_pixels; leave the argument out")
    if native and limits:
        processor.image_processor = type(part).from_pretrained(_source(options), **_location(options), **limits)
    return native


def _load_model(options: HFOptions, device: Any) -> Any:
    import transformers
    from packaging.version import Version

    new_name = Version(transformers.__version__) >= Version("4.56")
    arguments = {**_location(options), "dtype" if new_name else "torch_dtype": options.dtype}
    if options.attn_implementation:
        arguments["attn_implementation"] = options.attn_implementation
    if options.device_map is not None or device.type != "cpu":
        arguments["device_map"] = options.device_map if options.device_map is not None else {"": device}
    try:
        model, report = transformers.AutoModelForImageTextToText.from_pretrained(
            _source(options), output_loading_info=True, **arguments
        )
    except Exception as error:  # whatever transformers or a repository's own code raises
        raise _explain(options, "model", error) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelError(
            f"hf: {options.pretrained} lacks {len(missing)} of the weights that its config.json describes "
            f"({', '.join(missing[:_SHOWN_KEYS])}, ...); they would be random. Is the checkpoint complete?"
        )
    return model


def _input_device(model: Any, device: Any) -> Any:
    """Where the embedding lies: with a ``device_map`` that need not be the device that was asked for."""
    weight = model.get_input_embeddings().weight
    return device if weight.device.type == "meta" else weight.device


def _explain(options: HFOptions, part: str, error: Exception) -> ModelError:
    name, text = options.pretrained, f"{type(error).__name__}: {error}".strip()
    if "connect to" in text or "offline" in text.lower() or "LocalEntryNotFound" in text:
        hint = "is no folder here, and the hub cannot be reached (or HF_HUB_OFFLINE is set) and its cache lacks it"
        return ModelError(f"hf: {name} {hint}. Give a local folder, or fetch it first with: hf download {name}")
    if "not a local folder and is not a valid model identifier" in text:
        return ModelError(f"hf: {name} is neither a folder here nor a repository of the hub that you may read")
    if "trust_remote_code" in text:
        return ModelError(
            f"hf: {name} ships code of its own, which is not run unless you give trust_remote_code=true; "
            "read that code first"
        )
    if "Unrecognized configuration class" in text:
        return ModelError(
            f"hf: {name} is not an image-text-to-text architecture of transformers: {text.splitlines()[0]}"
        )
    if isinstance(error, ImportError):
        return ModelError(f"hf: the {part} of {name} needs a package that is not installed: {' '.join(text.split())}")
    return ModelError(f"hf: the {part} of {name} cannot be loaded: {text}")
