"""Arguments of the ``hf`` back end."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lmms_eval.api.generation import MediaForm
from lmms_eval.errors import ModelError
from lmms_eval.models import argument_names
from lmms_eval.models.argument_names import IGNORED, other_names
from lmms_eval.models.hf.batching import AUTO_BATCH_SIZE
from lmms_eval.models.hf.settings import DEFAULT_MAX_NEW_TOKENS


def positive_int(value: Any) -> int:
    """Converter of an argument: a whole number above 0."""
    if isinstance(value, bool) or float(value) != int(float(value)) or int(float(value)) < 1:
        raise ValueError("a whole number above 0 is needed")
    return int(float(value))


def flag(value: Any) -> bool:
    """Converter of an argument: true or false."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    text = str(value).strip().lower()
    if text not in known:
        raise ValueError("true or false is needed")
    return known[text]


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
"""Names the model that the package ships."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Identity of one file of a model folder."""

    name: str
    size: int
    modified_ns: int


def model_location(pretrained: str) -> str:
    """The package's own folder for ``embedded``; any other name stands for itself (``./embedded`` for a local one)."""
    return str(Path(__file__).parents[1] / EMBEDDED) if pretrained == EMBEDDED else pretrained


def local_folder(pretrained: str, parts: Sequence[str] = VISION_PARTS) -> Path | None:
    """The folder that ``pretrained`` names, or ``None`` where it is the name of a repository on the hub.

    Raises:
        ModelError: it is written like a path and there is no such folder, or the folder lacks a part.
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
    """Raises ``ModelError`` naming the folder and every part that it lacks."""
    needed = [*_ALWAYS, *(_PARTS[part] for part in parts)]
    lacking = [part for part, patterns in needed if not any(any(folder.glob(pattern)) for pattern in patterns)]
    if not lacking:
        return
    message = f"hf: {folder} is not a complete model folder: it lacks {', '.join(lacking)}"
    if (folder / "adapter_config.json").is_file():
        message += ". It is an adapter: merge it into its base model first"
    else:
        inner = sorted(found.parent.name for found in folder.glob("*/config.json"))
        if inner:
            message += f". Did you mean one of its folders: {', '.join(inner[:5])}?"
    raise ModelError(message)


def stamps(folder: Path) -> tuple[FileStamp, ...]:
    """All files that can change the answers, by name; hidden ones are left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            status = path.stat()
            found.append(FileStamp(name.as_posix(), status.st_size, status.st_mtime_ns))
    return tuple(found)


Converter = Callable[[Any], Any]
FRAMES = other_names("max_num_frames", argument_names.FRAMES)
"""Names by which families call the most frames of a video."""
COMMON = {"torch_dtype": "dtype", "attn_impl": "attn_implementation", "use_flash_attention_2": "attn_implementation"}
"""Names that every family's users may type; ``use_flash_attention_2`` is a flag."""
VISUAL_OPTIONS = (
    "max_num_frames",
    "fps",
    "min_pixels",
    "max_pixels",
    "total_pixels",
    "max_image_size",
    "interleave_visuals",
)
PROMPT_OPTIONS = (
    "system_prompt",
    "add_system_prompt",
    "chat_template",
    "enable_thinking",
    "add_generation_prompt",
    "reasoning_prompt",
    "max_length",
)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One family. The defaults are those of ``hf``: any image-text-to-text model."""

    name: str = "hf"
    loader: str = "AutoModelForImageTextToText"
    """Class of transformers whose ``from_pretrained`` gives the model."""
    architecture: str = "an image-text-to-text architecture"
    """Kind of checkpoint that it takes, for messages."""
    parts: tuple[str, ...] = ("tokenizer", "image_processor")
    """Attributes that the processor must have; ``tokenizer`` alone means that there is no processor at all."""
    without_torchvision: tuple[str, ...] = ()
    """Parts that may be left out where only torchvision is lacking; requests that need them are then refused."""
    packages: tuple[str, ...] = ()
    """Packages that it needs and of which transformers says so only when a picture comes, or not by their names."""
    media: frozenset[str] = frozenset({"image", "video"})
    """Message parts beside text: ``image``, ``video``, ``audio``."""
    most_pictures: int | None = None
    """Pictures of a request at most; ``None``: any number."""
    model_types: tuple[str, ...] = ()
    """``model_type`` of the checkpoints that this family takes; empty: any."""
    chat: bool = True
    """Prompts go through a chat template."""
    sounds_alone: bool = False
    """Padding a sound changes what the model hears: prompts with sound share no batch."""
    aliases: Mapping[str, str] = field(default_factory=lambda: {**COMMON, **FRAMES})
    """Argument names that the family's users know, to fields of ``HFOptions``."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields of ``HFOptions`` where the family's users leave them out, if others than ``hf``'s."""
    extra: Mapping[str, Converter] = field(default_factory=dict)
    """Further arguments with their converters; they go to the image processor, or where the family's encoder says."""

    without: tuple[str, ...] = ()
    """Fields of ``HFOptions`` that mean nothing to this family; giving one is an error."""

    def signature(self, options: type[Any]) -> inspect.Signature:
        """Of the model class: the fields of ``options``, then the family's own names."""
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


_DTYPES = ("auto", "float32", "bfloat16", "float16")
_TEXT_FILE_MAX_NAME = 4096


@dataclass(frozen=True, slots=True)
class HFOptions:
    """``model_args`` after checking; one field for each argument."""

    pretrained: str
    """Folder, or repository on the hub."""
    revision: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    device_map: Any = None
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    batch_size: int = 1
    max_batch_tokens: int | None = None
    """Estimated tokens (rows times longest row) of a batch at most."""
    max_num_frames: int = 32
    fps: float | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    total_pixels: int | None = None
    """Of all frames of a video together."""
    max_image_size: int | None = None
    """Of the longer side of a picture or frame, in pixels."""
    system_prompt: str | None = None
    add_system_prompt: bool = False
    """A conversation without a system message gets the usual one."""
    chat_template: str | None = None
    enable_thinking: bool | None = None
    """Value of the chat template's variable of this name."""
    add_generation_prompt: bool = True
    """The prompt ends with the chat template's beginning of an answer."""
    max_length: int | None = None
    """Tokens of a prompt at most; a longer one fails."""
    use_cache: bool = True
    static_cache: bool = False
    """Keys and values in tensors of fixed size."""
    torch_compile: bool | str = False
    """Compile the forward pass; a name is the backend of ``torch.compile``."""
    preprocess_workers: int = 2
    """Threads that tokenise and transform the next batches while one generates."""
    image_cache_mb: int = 256
    """Memory for processed pictures, in case they come again."""
    reasoning_prompt: str | None = None
    """Put behind the last text of the user."""
    interleave_visuals: bool = False
    """Pictures move to the ``<image N>`` that name them in a text."""
    dry_requests: bool = True
    """Ask a word and a picture at load, to say at once what the model cannot do."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the family alone; no argument itself."""

    @property
    def media_form(self) -> MediaForm:
        """Form in which videos are looked at."""
        return MediaForm(self.max_num_frames, self.fps, max_new_tokens=DEFAULT_MAX_NEW_TOKENS)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], profile: Profile | None = None) -> HFOptions:
        """Check names and values; a family's own names are translated.

        Raises:
            ModelError: an unknown name (answered with the nearest valid one), a missing or an invalid value.
        """
        profile = profile or Profile()
        own = [field.name for field in fields(cls) if field.name not in ("extra", *profile.without)]
        known = [*own, *profile.aliases, *profile.extra]
        for name in arguments:
            if name not in known:
                close = difflib.get_close_matches(name, [*known, *IGNORED], n=1, cutoff=0.5)
                nearest = f"did you mean {close[0]!r}? " if close else ""
                raise ModelError(f"{profile.name}: unknown model argument {name!r}; {nearest}Valid: {', '.join(known)}")
        given = _translated({name: value for name, value in arguments.items() if value is not None}, profile)
        given = {**_defaults(profile, given), **given}
        if not str(given.get("pretrained", "")).strip():
            raise ModelError(f"{profile.name}: give the model folder or hub name, as in --model_args pretrained=FOLDER")
        converters = {**_CONVERTERS, **profile.extra}
        values = {name: _convert(profile.name, name, value, converters[name]) for name, value in given.items()}
        extra = {name: values.pop(name) for name in profile.extra if name in values}
        options = cls(**values, extra=extra)
        if options.min_pixels and options.max_pixels and options.min_pixels > options.max_pixels:
            raise ModelError(
                f"{profile.name}: min_pixels={options.min_pixels} is larger than max_pixels={options.max_pixels}"
            )
        return options


def text_or_file(value: str | None) -> str | None:
    """The content of the file that ``value`` names, else ``value`` itself.

    Raises:
        ModelError: the file cannot be read as text.
    """
    if not value or len(value) > _TEXT_FILE_MAX_NAME or "\n" in value or "\0" in value:
        return value
    try:
        return Path(value).read_text(encoding="utf-8") if Path(value).is_file() else value
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"hf: cannot read {value}: {error}") from error


def _translated(given: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """The family's names replaced by ours; two names for one thing must not say different things."""
    result = {name: value for name, value in given.items() if name not in profile.aliases}
    for name, target in profile.aliases.items():
        if name not in given:
            continue
        value = given[name]
        if name == "use_flash_attention_2":
            if not _convert(profile.name, name, value, flag):
                continue
            value = "flash_attention_2"
        if target in result and result[target] != value:
            raise ModelError(f"{profile.name}: {name}={value!r} and {target}={result[target]!r} contradict each other")
        result[target] = value
    return result


def _defaults(profile: Profile, given: Mapping[str, Any]) -> dict[str, Any]:
    """The family's own values of what is not given. Of a range of pixels that is given by one end it has no other."""
    limits = {"min_pixels", "max_pixels"}
    passed_over = limits if limits & set(given) else set()
    return {name: value for name, value in profile.defaults.items() if name not in passed_over}


def _convert(model: str, name: str, value: Any, converter: Callable[[Any], Any]) -> Any:
    try:
        return converter(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{model}: {name}={value!r} is not valid: {error}") from error


def _positive_float(value: Any) -> float:
    if isinstance(value, bool) or not 0 < float(value) < float("inf"):
        raise ValueError("a number above 0 is needed")
    return float(value)


def _flag_or_name(value: Any) -> bool | str:
    try:
        return flag(value)
    except ValueError:
        return str(value)


def _dtype(value: Any) -> str:
    name = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}.get(str(value), str(value).removeprefix("torch."))
    if name not in _DTYPES:
        raise ValueError(f"one of {', '.join(_DTYPES)} is needed")
    return name


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "pretrained": lambda value: model_location(str(value)),
    "revision": str,
    "dtype": _dtype,
    "device": str,
    "device_map": lambda value: value,
    "attn_implementation": str,
    "trust_remote_code": flag,
    "batch_size": lambda value: AUTO_BATCH_SIZE if str(value).split(":")[0] == "auto" else positive_int(value),
    "max_batch_tokens": positive_int,
    "max_num_frames": positive_int,
    "fps": _positive_float,
    "min_pixels": positive_int,
    "max_pixels": positive_int,
    "total_pixels": positive_int,
    "max_image_size": positive_int,
    "system_prompt": str,
    "add_system_prompt": flag,
    "chat_template": str,
    "enable_thinking": flag,
    "add_generation_prompt": flag,
    "max_length": positive_int,
    "use_cache": flag,
    "static_cache": flag,
    "torch_compile": _flag_or_name,
    "preprocess_workers": positive_int,
    "image_cache_mb": lambda value: 0 if str(value) == "0" else positive_int(value),
    "reasoning_prompt": lambda value: str(value).replace("\\n", "\n"),
    "interleave_visuals": flag,
    "dry_requests": flag,
}
