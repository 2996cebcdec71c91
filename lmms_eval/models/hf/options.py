"""Arguments of the ``hf`` back end."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lmms_eval.api.media_form import MediaForm
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import IGNORED
from lmms_eval.models.hf.batching import AUTO_BATCH_SIZE
from lmms_eval.models.hf.converters import flag, positive_int
from lmms_eval.models.hf.folder import model_location
from lmms_eval.models.hf.profile import Profile
from lmms_eval.models.hf.settings import DEFAULT_MAX_NEW_TOKENS

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
