"""Arguments of the ``hf`` back end."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lmms_eval.errors import ModelError

AUTO_BATCH_SIZE = 8
"""What ``batch_size=auto`` starts with; batches that do not fit are halved anyway."""
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
    system_prompt: str | None = None
    chat_template: str | None = None
    use_cache: bool = True

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> HFOptions:
        """Check names and values.

        Raises:
            ModelError: an unknown name (answered with the nearest valid one), a missing or an invalid value.
        """
        known = [field.name for field in fields(cls)]
        for name in arguments:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                nearest = f"did you mean {close[0]!r}? " if close else ""
                raise ModelError(f"hf: unknown model argument {name!r}; {nearest}Valid: {', '.join(known)}")
        given = {name: value for name, value in arguments.items() if value is not None}
        if not str(given.get("pretrained", "")).strip():
            raise ModelError("hf: give the model folder or hub name, as in --model_args pretrained=FOLDER")
        options = cls(**{name: _convert(name, value) for name, value in given.items()})
        if options.min_pixels and options.max_pixels and options.min_pixels > options.max_pixels:
            raise ModelError(f"hf: min_pixels={options.min_pixels} is larger than max_pixels={options.max_pixels}")
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


def _convert(name: str, value: Any) -> Any:
    try:
        return _CONVERTERS[name](value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"hf: {name}={value!r} is not valid: {error}") from error


def _positive_int(value: Any) -> int:
    if isinstance(value, bool) or float(value) != int(float(value)) or int(float(value)) < 1:
        raise ValueError("a whole number above 0 is needed")
    return int(float(value))


def _positive_float(value: Any) -> float:
    if isinstance(value, bool) or not 0 < float(value) < float("inf"):
        raise ValueError("a number above 0 is needed")
    return float(value)


def _flag(value: Any) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    text = str(value).strip().lower()
    if text not in known:
        raise ValueError("true or false is needed")
    return known[text]


def _batch_size(value: Any) -> int:
    return AUTO_BATCH_SIZE if str(value).split(":")[0] == "auto" else _positive_int(value)


def _dtype(value: Any) -> str:
    name = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}.get(str(value), str(value).removeprefix("torch."))
    if name not in _DTYPES:
        raise ValueError(f"one of {', '.join(_DTYPES)} is needed")
    return name


def _same(value: Any) -> Any:
    return value


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "pretrained": str,
    "revision": str,
    "dtype": _dtype,
    "device": str,
    "device_map": _same,
    "attn_implementation": str,
    "trust_remote_code": _flag,
    "batch_size": _batch_size,
    "max_batch_tokens": _positive_int,
    "max_num_frames": _positive_int,
    "fps": _positive_float,
    "min_pixels": _positive_int,
    "max_pixels": _positive_int,
    "system_prompt": str,
    "chat_template": str,
    "use_cache": _flag,
}
