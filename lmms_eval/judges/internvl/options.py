"""Arguments of the judge ``internvl:PATH``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from lmms_eval.errors import ModelError
from lmms_eval.models.chat_form.tiling import MAX_TILES
from lmms_eval.models.hf.converters import flag, positive_int

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
