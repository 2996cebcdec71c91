"""Records (Structs and dataclasses) as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec


def to_dict(record: object) -> dict[str, Any]:
    """Return the fields of a record, and of every record within it, as a dict of plain values that JSON can write.

    Raises ``TypeError`` if a value is neither a record nor a plain value.
    """
    return cast(dict[str, Any], msgspec.to_builtins(record, builtin_types=(bytes,), enc_hook=_plain))


def _plain(value: Any) -> Any:
    """Return a value that msgspec does not know, such as a number of numpy or a subclass of `str`, as a plain one."""
    if isinstance(value, Mapping):
        return dict(value)
    for kind in (str, float, int):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__} has no plain form: {value!r:.80}")
