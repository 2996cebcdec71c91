"""The arguments of the ``hf`` back end, checks of model folders, and profiles of families."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from lmms_eval.errors import ModelError
from lmms_eval.models import argument_names
from lmms_eval.models.argument_names import IGNORED, other_names
from lmms_eval.models.hf.batching import AUTO_BATCH_SIZE

_ALWAYS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("the model's configuration (config.json)", ("config.json",)),
    ("weights (*.safetensors or pytorch_model*.bin)", ("*.safetensors", "*.bin")),
)
_PREPROCESSOR = ("preprocessor_config.json", "processor_config.json", "image_processor_config.json")
_PARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tokenizer": (
        "a tokenizer (tokenizer.json, tokenizer.model or vocab.json)",
        ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json"),
    ),
    "image_processor": ("an image processor (preprocessor_config.json or processor_config.json)", _PREPROCESSOR),
    "feature_extractor": ("a feature extractor (preprocessor_config.json or processor_config.json)", _PREPROCESSOR),
    "audio_processor": ("an audio processor (preprocessor_config.json or processor_config.json)", _PREPROCESSOR),
}
VISION_PARTS = ("tokenizer", "image_processor")
EMBEDDED = "embedded"
"""The name of the model that the package contains."""
Converter = Callable[[Any], Any]
FRAMES = other_names("max_num_frames", argument_names.FRAMES)
"""Synonyms for the maximum number of frames of a video."""
COMMON = {
    "torch_dtype": "dtype",
    "attn_impl": "attn_implementation",
    "use_flash_attention_2": "attn_implementation",
    "parallelize": "device_map",
}
"""Synonyms that all families accept."""
_FLAGS = {"use_flash_attention_2": "flash_attention_2", "parallelize": "auto"}
"""Synonyms that are flags, with the value of the argument if they are true."""
_CONTRADICTIONS = (
    ("load_in_4bit", "load_in_8bit", "weights are loaded in one precision"),
    ("peft", "delta", "a model has an adapter or differences of weights"),
    ("delta", "load_in_4bit", "differences are added to weights that are not quantised"),
    ("delta", "load_in_8bit", "differences are added to weights that are not quantised"),
    ("gguf_file", "load_in_4bit", "a GGUF file has its own precision"),
    ("gguf_file", "load_in_8bit", "a GGUF file has its own precision"),
    ("gguf_file", "delta", "differences of weights apply to a checkpoint of transformers"),
)
VISUAL_OPTIONS = (
    "max_num_frames", "fps", "min_frames", "frame_rule", "min_pixels", "max_pixels", "total_pixels", "max_image_size",
    "interleave_visuals",
)  # fmt: skip
PROMPT_OPTIONS = (
    "system_prompt", "add_system_prompt", "chat_template", "enable_thinking", "add_generation_prompt",
    "reasoning_prompt", "max_length",
)  # fmt: skip
_DTYPES = ("auto", "float32", "bfloat16", "float16")


def positive_int(value: Any) -> int:
    """Convert an argument to a whole number above 0."""
    if isinstance(value, bool) or float(value) != int(float(value)) or int(float(value)) < 1:
        raise ValueError("give a whole number above 0")
    return int(float(value))


def flag(value: Any) -> bool:
    """Convert an argument to true or false."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    text = str(value).strip().lower()
    if text not in known:
        raise ValueError("give true or false")
    return known[text]


def model_location(pretrained: str) -> str:
    """Return the package's own folder for ``embedded``, and other names unchanged (also ``./embedded``)."""
    return str(Path(__file__).parents[1] / EMBEDDED) if pretrained == EMBEDDED else pretrained


def local_folder(pretrained: str, parts: Sequence[str] = VISION_PARTS) -> Path | None:
    """Return the folder that ``pretrained`` names, or ``None`` for a repository on the hub.

    Raises:
        ModelError: ``pretrained`` is a path that does not exist, or the folder lacks a part.
    """
    path = Path(pretrained).expanduser()
    if path.is_dir():
        check_folder(path, parts)
        return path
    if path.exists():
        raise ModelError(f"hf: pretrained={pretrained} is a file; give the folder that holds the model")
    if path.is_absolute() or pretrained.startswith((".", "~")) or pretrained.count("/") > 1:
        near = next((parent for parent in path.absolute().parents if parent.is_dir()), Path("/"))
        raise ModelError(
            f"hf: model folder {pretrained} does not exist (the nearest folder that does is {near}); "
            "give the folder that holds config.json and the weights with --model_args pretrained=DIR"
        )
    return None


def check_folder(folder: Path, parts: Sequence[str] = VISION_PARTS) -> None:
    """Raise ``ModelError`` with the missing parts of a model folder."""
    needed = [*_ALWAYS, *(_PARTS[part] for part in parts)]
    lacking = [part for part, patterns in needed if not any(any(folder.glob(pattern)) for pattern in patterns)]
    if not lacking:
        return
    message = f"hf: {folder} is not a complete model folder: it lacks {', '.join(lacking)}"
    if (folder / "adapter_config.json").is_file():
        message += ". It is an adapter: give its base model as pretrained, and this folder as peft"
    else:
        inner = sorted(found.parent.name for found in folder.glob("*/config.json"))
        if inner:
            message += f". Did you mean one of its folders: {', '.join(inner[:5])}?"
        elif len(lacking) == 1 and lacking[0] == _PARTS["image_processor"][0]:
            message += ". If it is a model of texts alone: --model hf_text"
    raise ModelError(message)


def stamps(folder: Path) -> list[dict[str, str | int]]:
    """Return name, size and modification time of all files that can change the answers, without hidden ones."""
    found: list[dict[str, str | int]] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            status = path.stat()
            found.append({"name": name.as_posix(), "size": status.st_size, "modified_ns": status.st_mtime_ns})
    return found


class Profile(Struct, frozen=True, eq=False):
    """A family of models. The defaults are for ``hf``, any image-text-to-text model."""

    name: str = "hf"
    loader: str = "AutoModelForImageTextToText"
    """The class of transformers that loads the model."""
    architecture: str = "an image-text-to-text architecture"
    """The kind of checkpoint, for messages."""
    parts: tuple[str, ...] = ("tokenizer", "image_processor")
    """Required attributes of the processor. ``tokenizer`` alone means that there is no processor."""
    without_torchvision: tuple[str, ...] = ()
    """Parts that may be missing without torchvision. Requests that need them are refused then."""
    packages: tuple[str, ...] = ()
    """Required packages that transformers reports late, or not by name."""
    media: frozenset[str] = frozenset({"image", "video"})
    """Supported message parts in addition to text: ``image``, ``video``, ``audio``."""
    most_pictures: int | None = None
    """The maximum number of pictures of a request; ``None`` means no limit."""
    model_types: tuple[str, ...] = ()
    """The ``model_type`` of supported checkpoints; empty means any."""
    chat: bool = True
    """Whether prompts are rendered with a chat template."""
    sounds_alone: bool = False
    """Prompts with sound share no batch, as padding would change the model's input."""
    aliases: Mapping[str, str] = field(default_factory=lambda: {**COMMON, **FRAMES})
    """Synonyms of fields of ``HFOptions`` for the family's users."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of fields of ``HFOptions`` that differ from those of ``hf``."""
    extra: Mapping[str, Converter] = field(default_factory=dict)
    """Additional arguments with their converters, for the image processor or the family's encoder."""
    without: tuple[str, ...] = ()
    """Fields of ``HFOptions`` that do not apply to this family. Setting one is an error."""

    def signature(self, options: type[Any]) -> inspect.Signature:
        """Return the signature of the model class: the fields of ``options``, then the family's own names."""
        known = list(inspect.signature(options).parameters.values())
        kept = [
            parameter.replace(default=self.defaults.get(parameter.name, parameter.default))
            for parameter in known
            if parameter.name not in ("extra", *self.without)
        ]
        own = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in (*self.aliases, *self.extra)
        ]
        return inspect.Signature([*kept, *own])


GENERAL = Profile()
"""The profile of ``hf`` itself."""


class HFOptions(Struct, frozen=True):
    """The checked ``model_args``, with one field for each argument."""

    pretrained: str
    """A folder, or a repository on the hub."""
    revision: str | None = None
    peft: str | None = None
    """An adapter for the model: a folder, or a repository on the hub."""
    delta: str | None = None
    """Weights to add to those of the model: a folder, or a repository on the hub."""
    gguf_file: str | None = None
    """The file of the folder or repository that holds the weights."""
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    dtype: str = "auto"
    device: str = "auto"
    device_map: Any = None
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    batch_size: int = 1
    max_batch_tokens: int | None = None
    """The limit of estimated tokens of a batch (rows times longest row)."""
    max_num_frames: int = 32
    fps: float | None = None
    min_frames: int | None = None
    """The least number of frames with ``fps``."""
    frame_rule: str | None = None
    """How frames are chosen and scaled (``media.frame_rules.RULES``)."""
    min_pixels: int | None = None
    max_pixels: int | None = None
    total_pixels: int | None = None
    """The limit for all frames of a video together."""
    max_image_size: int | None = None
    """The limit for the longer side of a picture or frame, in pixels."""
    system_prompt: str | None = None
    add_system_prompt: bool = False
    """Add the usual system message to conversations without one."""
    chat_template: str | None = None
    enable_thinking: bool | None = None
    """The value of the chat template's variable of this name."""
    add_generation_prompt: bool = True
    """End prompts with the chat template's beginning of an answer."""
    max_length: int | None = None
    """The limit of prompt tokens. Longer prompts fail."""
    use_cache: bool = True
    static_cache: bool = False
    """Keep keys and values in tensors of fixed size."""
    torch_compile: bool | str = False
    """Compile the forward pass. A name is the backend of ``torch.compile``."""
    preprocess_workers: int | None = None
    """The number of threads that encode the next batches during generation; 0: batches are encoded between forward
    passes. By default 0 for models on the CPU, and 2 for others."""
    preprocess_processes: bool = False
    """Whether each of these threads has a process that transforms pictures."""
    image_cache_mb: int = 256
    """Memory for processed pictures, which may be repeated."""
    think_end_token: str | None = None
    """The text, or the number, of the token after which the answer begins."""
    reasoning_prompt: str | None = None
    """A text to append to the last text of the user."""
    interleave_visuals: bool = False
    """Move pictures to the ``<image N>`` with their number in a text."""
    dry_requests: bool = True
    """Try requests with a text and pictures at load, to report at once what the model does not support."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The additional arguments of the family. Not an argument itself."""

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], profile: Profile = GENERAL) -> HFOptions:
        """Check names and values, and translate a family's own names.

        Raises:
            ModelError: a name is unknown (the message suggests the nearest one), or a value is missing or invalid.
        """
        own = [name for name in cls.__struct_fields__ if name not in ("extra", *profile.without)]
        known = [*own, *profile.aliases, *profile.extra]
        for name in arguments:
            if name not in known:
                close = difflib.get_close_matches(name, [*known, *IGNORED], n=1, cutoff=0.5)
                nearest = f"did you mean {close[0]!r}? " if close else ""
                raise ModelError(f"{profile.name}: unknown model argument {name!r}; {nearest}Valid: {', '.join(known)}")
        given = _translated({name: value for name, value in arguments.items() if value is not None}, profile)
        # If one pixel limit is given, there is no default for the other.
        limits = {"min_pixels", "max_pixels"}
        passed_over = limits if limits & set(given) else set()
        given = {**{name: value for name, value in profile.defaults.items() if name not in passed_over}, **given}
        if not str(given.get("pretrained", "")).strip():
            raise ModelError(f"{profile.name}: give the model folder or hub name, as in --model_args pretrained=FOLDER")
        converters = {**_CONVERTERS, **profile.extra}
        values = {name: converted(profile.name, name, value, converters[name]) for name, value in given.items()}
        extra = {name: values.pop(name) for name in profile.extra if name in values}
        options = cls(**values, extra=extra)
        if options.min_pixels and options.max_pixels and options.min_pixels > options.max_pixels:
            raise ModelError(
                f"{profile.name}: min_pixels={options.min_pixels} is larger than max_pixels={options.max_pixels}"
            )
        for one, other, reason in _CONTRADICTIONS:
            if getattr(options, one) and getattr(options, other):
                raise ModelError(f"{profile.name}: {one} and {other} exclude each other: {reason}; leave one out")
        return options


def _translated(given: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """Replace the family's names by those of ``HFOptions``. Synonyms must not have different values."""
    result = {name: value for name, value in given.items() if name not in profile.aliases}
    for name, target in profile.aliases.items():
        if name not in given:
            continue
        value = given[name]
        if name in _FLAGS:
            if not converted(profile.name, name, value, flag):
                continue
            value = _FLAGS[name]
        if target in result and result[target] != value:
            raise ModelError(f"{profile.name}: {name}={value!r} and {target}={result[target]!r} contradict each other")
        result[target] = value
    return result


def converted(model: str, name: str, value: Any, converter: Converter) -> Any:
    """Convert the value of an argument. Raises ``ModelError`` if it is not valid."""
    try:
        return converter(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{model}: {name}={value!r} is not valid: {error}") from error


def _count(value: Any) -> int:
    if isinstance(value, bool) or float(value) != int(float(value)) or int(float(value)) < 0:
        raise ValueError("give a whole number from 0 on")
    return int(float(value))


def _positive_float(value: Any) -> float:
    if isinstance(value, bool) or not 0 < float(value) < float("inf"):
        raise ValueError("give a number above 0")
    return float(value)


def _flag_or_name(value: Any) -> bool | str:
    try:
        return flag(value)
    except ValueError:
        return str(value)


def _frame_rule(value: Any) -> str:
    from lmms_eval.media.frame_rules import RULES

    if str(value) not in RULES:
        raise ValueError(f"use one of {', '.join(RULES)}")
    return str(value)


def _dtype(value: Any) -> str:
    name = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}.get(str(value), str(value).removeprefix("torch."))
    if name not in _DTYPES:
        raise ValueError(f"use one of {', '.join(_DTYPES)}")
    return name


_BY_TYPE: Mapping[str, Converter] = {
    "str": str,
    "bool": flag,
    "int": positive_int,
    "float": _positive_float,
    "bool | str": _flag_or_name,
    "Any": lambda value: value,
}
_CONVERTERS: Mapping[str, Converter] = {
    **{
        name: _BY_TYPE[annotation.removesuffix(" | None")]
        for name, annotation in HFOptions.__annotations__.items()
        if name != "extra"
    },
    "pretrained": lambda value: model_location(str(value)),
    "dtype": _dtype,
    "frame_rule": _frame_rule,
    "batch_size": lambda value: AUTO_BATCH_SIZE if str(value).split(":")[0] == "auto" else positive_int(value),
    "image_cache_mb": _count,
    "preprocess_workers": _count,
    "reasoning_prompt": lambda value: str(value).replace("\\n", "\n"),
}
"""The converter of each field of ``HFOptions``, by its type unless it has its own."""
