"""Loading a model and its processor, with error messages that state the cause and the remedy."""

from __future__ import annotations

import copy
import importlib.util
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.errors import ModelError
from lmms_eval.models.hf.options import GENERAL, HFOptions, Profile, local_folder
from lmms_eval.models.remote.model import import_sdk
from lmms_eval.utils.launch import local_processes

log = logging.getLogger(__name__)
SPREADING = ("auto", "balanced", "balanced_low_0", "sequential")
"""Values of ``device_map`` that use all visible GPUs."""
_SHOWN_KEYS = 3
_PIXEL_LIMITS = ("min_pixels", "max_pixels")
_AUDIO_PARTS = ("feature_extractor", "audio_processor")
_PART_LOADERS = {
    "tokenizer": "AutoTokenizer",
    "image_processor": "AutoImageProcessor",
    "feature_extractor": "AutoFeatureExtractor",
    "audio_processor": "AutoFeatureExtractor",
}


class TextProcessor:
    """A tokenizer with the interface of a processor, for text-only models."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.chat_template = getattr(tokenizer, "chat_template", None)

    def __call__(self, text: list[str], **options: Any) -> Any:
        return self.tokenizer(text, **options)

    def apply_chat_template(self, messages: list[dict[str, Any]], **options: Any) -> Any:
        """Render messages with contents as plain texts, which templates of text models expect."""
        plain = [
            {"role": message["role"], "content": "\n".join(part["text"] for part in message["content"])}
            for message in messages
        ]
        options["chat_template"] = options.get("chat_template") or self.chat_template
        return self.tokenizer.apply_chat_template(plain, **options)


def location(options: HFOptions) -> dict[str, Any]:
    """Return keyword arguments for ``from_pretrained``. ``trust_remote_code`` is always set, to avoid a prompt."""
    where: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    if options.revision:
        where["revision"] = options.revision
    if options.gguf_file:
        where["gguf_file"] = options.gguf_file
    return where


def source(options: HFOptions) -> str:
    """Return the folder or repository."""
    return os.path.expanduser(options.pretrained)


def load_processor(options: HFOptions, profile: Profile) -> tuple[Any, frozenset[str], bool]:
    """Load the processor, and set left padding, a padding token, a chat template and the pixel limits.

    Returns the processor, its ``absent_parts`` and ``native_pixels`` (see ``Loaded``). Raises ``ModelError`` if a part
    or a chat template is missing.
    """
    processor, absent = _read(options, profile)
    needed = [part for part in profile.parts if part not in absent]
    lacking = [part for part in needed if getattr(processor, part, None) is None]
    if lacking:
        takes_videos_alone = lacking == ["image_processor"] and getattr(processor, "video_processor", None) is not None
        meaning = (
            "it takes whole videos only, and hf sends videos as pictures"
            if takes_videos_alone
            else f"it is not {profile.architecture}, or its files are incomplete; --model hf_text takes models of texts"
        )
        raise ModelError(
            f"hf: the processor of {options.pretrained} is a {type(processor).__name__}, which has no "
            f"{' and no '.join(lacking)}: {meaning}"
        )
    if profile.chat:
        _check_template(processor, options)
    tokenizer = processor.tokenizer
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ModelError(f"hf: the tokenizer of {options.pretrained} has neither a padding nor an end token")
        tokenizer.pad_token = tokenizer.eos_token
    native = "image_processor" in needed and _limit_pixels(processor, options)
    return processor, absent, native


def sampling_rate(processor: Any) -> int | None:
    """Return the sampling rate of a processor's sound part; ``None`` if it has no such part."""
    for name in _AUDIO_PARTS:
        part = getattr(processor, name, None)
        if part is not None and hasattr(part, "sampling_rate"):
            return int(part.sampling_rate)
    return None


def _read(options: HFOptions, profile: Profile) -> tuple[Any, frozenset[str]]:
    import transformers

    if profile.parts == ("tokenizer",):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source(options), **location(options))
        return TextProcessor(tokenizer), frozenset()
    try:
        return transformers.AutoProcessor.from_pretrained(source(options), **location(options)), frozenset()
    except (ImportError, ValueError) as error:
        if not _lacks_torchvision(error):
            raise
        return _from_parts(options, profile, error)


def _lacks_torchvision(error: Exception) -> bool:
    """Return whether transformers reports missing torchvision. The error's type depends on part and version."""
    from transformers.utils import is_torchvision_available

    return "torchvision" in str(error).lower() and not is_torchvision_available()


def _from_parts(options: HFOptions, profile: Profile, cause: Exception) -> tuple[Any, frozenset[str]]:
    """Build the family's processor without the parts that need torchvision, which include the video part.

    Raises:
        ModelError: a required part needs torchvision as well.
    """
    from transformers import AutoConfig
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    config = AutoConfig.from_pretrained(source(options), **location(options))
    if type(config) not in PROCESSOR_MAPPING:
        raise ModelError(f"hf: the processor of {options.pretrained} truly needs torchvision: {cause}") from cause
    family = PROCESSOR_MAPPING[type(config)]
    names = family.get_attributes() if hasattr(family, "get_attributes") else family.attributes
    parts: list[Any] = []
    absent = set()
    for name in names:
        part = _part(name, options, profile) if name in _PART_LOADERS else None
        if part is None:
            absent.add(name)
        parts.append(part)
    settings, _ = family.get_processor_dict(source(options), **location(options))
    return _allow_missing(family).from_args_and_dict(parts, settings), frozenset(absent)


def _part(name: str, options: HFOptions, profile: Profile) -> Any:
    import transformers

    try:
        return getattr(transformers, _PART_LOADERS[name]).from_pretrained(source(options), **location(options))
    except (ImportError, ValueError) as error:
        if not _lacks_torchvision(error):
            raise
        if name in profile.without_torchvision:
            return None
        label = name.replace("_", " ")
        raise ModelError(
            f"hf: the {label} of {options.pretrained} truly needs torchvision, which is not installed"
        ) from error


def _allow_missing(family: type[Any]) -> type[Any]:
    """Return a subclass of ``family`` with the same name that may be constructed with ``None`` for a part."""

    def check(self: Any, name: str, argument: Any) -> Any:
        if argument is None:
            return type(None)
        return family.check_argument_for_proper_class(self, name, argument)

    members: dict[str, Any] = {"check_argument_for_proper_class": check, "__module__": family.__module__}
    template = getattr(family.apply_chat_template, "__code__", None)
    if template is not None and "video_processor" in template.co_names:
        # SmolVLM uses its video part even for prompts without video. The method of its base class is enough.
        members["apply_chat_template"] = super(family, family).apply_chat_template
    return type(family.__name__, (family,), members)


def _check_template(processor: Any, options: HFOptions) -> None:
    if options.chat_template or getattr(processor, "chat_template", None):
        return
    template = getattr(processor.tokenizer, "chat_template", None)
    if not template:
        raise ModelError(
            f"hf: {options.pretrained} has no chat template (chat_template.jinja): give one with chat_template=FILE, "
            "or chat_template=none for the plain context of base models"
        )
    processor.chat_template = template


def _limit_pixels(processor: Any, options: HFOptions) -> bool:
    """Rebuild the image part with the pixel limits if it supports them. Returns whether it does."""
    part = processor.image_processor
    accepted: Mapping[str, Any] = getattr(getattr(type(part), "valid_kwargs", None), "__annotations__", {})
    native = all(name in accepted or hasattr(part, name) for name in _PIXEL_LIMITS)
    limits = {name: getattr(options, name) for name in _PIXEL_LIMITS if getattr(options, name)}
    if native and limits:
        processor.image_processor = type(part).from_pretrained(source(options), **location(options), **limits)
    return native


class Loaded(Struct, frozen=True):
    """A loaded model with its processor."""

    model: Any
    processor: Any
    tokenizer: Any
    device: Any
    """The device of the inputs (``torch.device``)."""
    dtype: str
    native_pixels: bool
    """Whether the processor applies ``min_pixels`` and ``max_pixels`` itself."""
    absent_parts: frozenset[str]
    """Parts of the processor that need torchvision, which is not installed."""
    sampling_rate: int | None
    """The sampling rate of sounds, if the model takes sounds."""
    flat_images: bool = False
    """Whether the processor takes the pictures of a batch as one list instead of one list per prompt."""


def load(options: HFOptions, profile: Profile = GENERAL) -> Loaded:
    """Load processor and model. Raises ``ModelError`` if a part is missing, or the files are not a working model."""
    _check_files(options, profile)
    absent = [name for name in profile.packages if importlib.util.find_spec(name) is None]
    if absent:
        raise ModelError(f"{profile.name} needs {' and '.join(absent)}: pip install {' '.join(absent)}")
    check_processes(options)
    log.info("loading %s; the first time after an installation takes longest", options.pretrained)
    device = resolve_device(options.device)
    _check_type(options, profile)
    try:
        processor, absent_parts, native_pixels = load_processor(options, profile)
    except ModelError:
        raise
    except Exception as error:  # transformers and a repository's own code may raise anything
        raise _explain(options, profile, "processor", error) from error
    model = _load_model(options, profile, device)
    if options.delta:
        _add_delta(model, options, profile)
    if options.peft:
        _add_adapter(model, options)
    model.eval()
    if options.torch_compile:
        import torch

        backend = {} if options.torch_compile is True else {"backend": options.torch_compile}
        try:
            model.forward = torch.compile(model.forward, **backend)
        except Exception as error:  # torch has its own exception for unknown backends
            raise ModelError(f"hf: torch_compile={options.torch_compile} is not possible: {error}") from error
    embedded_on = model.get_input_embeddings().weight.device  # may differ from the requested one with a ``device_map``
    return Loaded(
        model=model,
        processor=processor,
        tokenizer=processor.tokenizer,
        device=device if embedded_on.type == "meta" else embedded_on,
        dtype=str(model.dtype).removeprefix("torch."),
        native_pixels=native_pixels,
        absent_parts=absent_parts,
        sampling_rate=sampling_rate(processor),
    )


def copies(loaded: Loaded, count: int) -> list[Loaded]:
    """Return a copy for each encoding thread, with its own processor and tokenizer."""
    result = []
    for _ in range(count):
        processor = copy.deepcopy(loaded.processor)
        result.append(replace(loaded, processor=processor, tokenizer=processor.tokenizer))
    return result


def resolve_device(name: str) -> Any:
    """Return the device. ``auto`` selects an available accelerator; ``cuda`` under a launcher that of the process.

    Raises:
        ModelError: the device does not exist or is not available.
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
            raise ModelError(f"hf: device={name} is not available: torch {torch.__version__} finds no GPU")
        if device.index is None:
            rank = os.environ.get("LOCAL_RANK", "0")
            index = int(rank) % torch.cuda.device_count() if rank.isdigit() else 0
            device = torch.device("cuda", index)
    return device


def check_processes(options: HFOptions) -> None:
    """Raise ``ModelError`` if several processes would spread their models over the same GPUs."""
    import torch

    processes = local_processes(os.environ)
    if options.device_map in SPREADING and processes > 1 and torch.cuda.is_available():
        raise ModelError(
            f"hf: device_map={options.device_map} spreads one model over all GPUs, and each of the {processes} "
            "processes on this machine would do so: start one process (plain `python -m lmms_eval`), leave device_map "
            "out so that each process takes one GPU, or show each process its own GPUs (CUDA_VISIBLE_DEVICES)"
        )


def _check_type(options: HFOptions, profile: Profile) -> None:
    """Check that the checkpoint is of the named family, as others might be handled wrongly."""
    import transformers

    if not profile.model_types:
        return
    try:
        config = transformers.AutoConfig.from_pretrained(source(options), **location(options))
    except Exception as error:  # transformers and a repository's own code may raise anything
        raise _explain(options, profile, "configuration", error) from error
    classes = getattr(config, "architectures", None) or []
    if classes and not any(hasattr(transformers, name) for name in classes):
        raise ModelError(
            f"{profile.name}: {options.pretrained} is made for the code of its authors ({', '.join(classes)}), which "
            f"transformers does not contain; use the checkpoint that was converted for it, {_like(profile)}"
        )
    if config.model_type not in profile.model_types:
        raise ModelError(
            f"{profile.name}: {options.pretrained} holds a model of type {config.model_type!r}, "
            f"not {' or '.join(profile.model_types)}; use the wrapper of its family, or --model hf"
        )


def _like(profile: Profile) -> str:
    return f"as {profile.defaults['pretrained']} is" if "pretrained" in profile.defaults else "if there is one"


def _load_model(options: HFOptions, profile: Profile, device: Any) -> Any:
    import transformers

    arguments = {**location(options), dtype_keyword(): options.dtype}
    if options.attn_implementation:
        arguments["attn_implementation"] = options.attn_implementation
    if options.load_in_4bit or options.load_in_8bit:
        arguments["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=options.load_in_4bit, load_in_8bit=options.load_in_8bit
        )
    if options.device_map is not None or device.type != "cpu":
        arguments["device_map"] = options.device_map if options.device_map is not None else {"": device}
    try:
        model, report = getattr(transformers, profile.loader).from_pretrained(
            source(options), output_loading_info=True, **arguments
        )
    except Exception as error:  # transformers and a repository's own code may raise anything
        raise _explain(options, profile, "model", error) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelError(
            f"hf: {options.pretrained} lacks {len(missing)} of the weights that its config.json describes "
            f"({', '.join(missing[:_SHOWN_KEYS])}, ...); they would be random. Is the checkpoint complete?"
        )
    return model


def _check_files(options: HFOptions, profile: Profile) -> None:
    """Check the folders that the arguments name, and the packages that they need. Raises ``ModelError``."""
    if options.load_in_4bit or options.load_in_8bit:
        import_sdk("bitsandbytes", f"{profile.name} with load_in_4bit or load_in_8bit", "bitsandbytes")
    for name in ("peft", "delta"):
        folder = getattr(options, name)
        if folder and (Path(folder).is_absolute() or folder.startswith((".", "~"))) and not _folder(folder).is_dir():
            raise ModelError(f"hf: {name}={folder} does not exist: give a folder, or a repository on the hub")
    if options.peft:
        import_sdk("peft", f"{profile.name} with the argument peft", "hf")
        own = _folder(options.peft)
        if own.is_dir() and not (own / "adapter_config.json").is_file():
            raise ModelError(f"hf: peft={options.peft} holds no adapter: it lacks adapter_config.json")
    if not options.gguf_file:
        local_folder(options.pretrained, profile.parts)
        return
    if profile.parts != ("tokenizer",):
        raise ModelError(f"{profile.name}: gguf_file holds a model of texts: use --model hf_text")
    import_sdk("gguf", f"{profile.name} with the argument gguf_file", "hf")
    folder = _folder(options.pretrained)
    if folder.is_dir() and not (folder / options.gguf_file).is_file():
        found = ", ".join(sorted(file.name for file in folder.glob("*.gguf"))) or "no GGUF file"
        raise ModelError(f"hf: {folder} lacks gguf_file={options.gguf_file}; it holds {found}")


def _folder(name: str) -> Path:
    return Path(os.path.expanduser(name))


def _add_delta(model: Any, options: HFOptions, profile: Profile) -> None:
    """Add the weights of ``delta`` to those of the model. Raises ``ModelError`` if they do not fit."""
    import torch
    import transformers

    where = {"trust_remote_code": options.trust_remote_code, dtype_keyword(): options.dtype}
    try:
        other = getattr(transformers, profile.loader).from_pretrained(os.path.expanduser(str(options.delta)), **where)
    except Exception as error:  # transformers and a repository's own code may raise anything
        raise ModelError(f"hf: delta={options.delta} cannot be loaded: {_one_line(error)}") from error
    added, own = dict(other.named_parameters()), dict(model.named_parameters())
    differing = [name for name in own if name not in added or added[name].shape != own[name].shape]
    if differing or len(added) != len(own):
        shown = ", ".join([*differing, *(name for name in added if name not in own)][:_SHOWN_KEYS])
        raise ModelError(
            f"hf: delta={options.delta} does not fit {options.pretrained}: weights differ in name or shape ({shown})"
        )
    with torch.no_grad():
        for name, weight in own.items():
            weight += added[name].to(weight.device, weight.dtype)


def _add_adapter(model: Any, options: HFOptions) -> None:
    """Put the layers of ``peft`` into the model. Raises ``ModelError`` if they do not fit."""
    try:
        report = model.load_adapter(os.path.expanduser(str(options.peft)))
    except Exception as error:  # peft and transformers may raise anything
        raise ModelError(
            f"hf: peft={options.peft} cannot be used with {options.pretrained}: {_one_line(error)}"
        ) from error
    strange = sorted({*report.missing_keys, *report.unexpected_keys, *(key for key, *_ in report.mismatched_keys)})
    if strange:
        raise ModelError(
            f"hf: peft={options.peft} does not fit {options.pretrained}: {len(strange)} of the adapter's weights are "
            f"missing, strange or of another shape ({', '.join(strange[:_SHOWN_KEYS])}); is it made for this model?"
        )


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def dtype_keyword() -> str:
    """Return the name of the precision argument in the installed transformers."""
    import transformers
    from packaging.version import Version

    return "dtype" if Version(transformers.__version__) >= Version("4.56") else "torch_dtype"


def _explain(options: HFOptions, profile: Profile, part: str, error: Exception) -> ModelError:
    name, text = options.pretrained, f"{type(error).__name__}: {error}".strip()
    if "connect to" in text or "offline" in text.lower() or "LocalEntryNotFound" in text:
        hint = "is not a folder here, and the hub cannot be reached (or HF_HUB_OFFLINE is set) and its cache lacks it"
        return ModelError(f"hf: {name} {hint}. Give a local folder, or fetch it first with: hf download {name}")
    if "not a local folder and is not a valid model identifier" in text:
        return ModelError(f"hf: {name} is neither a folder here nor a repository of the hub that you may read")
    if "does not recognize this architecture" in text:
        return ModelError(
            f"{profile.name}: {name} holds a model of a type that transformers does not support; {profile.name} takes "
            f"{profile.architecture} in the form of transformers, {_like(profile)}: {text.splitlines()[0]}"
        )
    if "trust_remote_code" in text:
        return ModelError(
            f"hf: {name} ships code of its own, which is not run unless you give trust_remote_code=true; "
            "read that code first"
        )
    if "Unrecognized configuration class" in text:
        return ModelError(f"hf: {name} is not {profile.architecture} of transformers: {text.splitlines()[0]}")
    if isinstance(error, ImportError):
        return ModelError(f"hf: the {part} of {name} needs a package that is not installed: {' '.join(text.split())}")
    return ModelError(f"hf: the {part} of {name} cannot be loaded: {text}")
