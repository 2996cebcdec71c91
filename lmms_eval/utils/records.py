"""Records (Structs and dataclasses) as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

T = TypeVar("T")


def to_dict(record: object) -> dict[str, Any]:
    """Return the fields of a record, and of every record within it, as a dict of plain values that JSON can write.

    Raises:
        TypeError: a value is neither a record nor a plain value.
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


class PlainRecord(Struct, frozen=True, kw_only=True):
    """A record with no values but texts, numbers, lists and other plain records."""


def as_record(record: Struct) -> dict[str, Any]:
    """Return the fields of a record that are set, by their keys in the file, and those of the records within it.

    Unlike ``to_dict`` it leaves a value that a task made (a tuple, a set) as it is, unless the record is a plain one.
    """
    if isinstance(record, PlainRecord):
        return cast(dict[str, Any], msgspec.to_builtins(record, enc_hook=_plain))
    found = {name: value for name, value in structs.asdict(record).items() if value is not UNSET}
    for name, value in found.items():
        if type(value) is list:
            found[name] = [as_record(item) if isinstance(item, Struct) else item for item in value]
        elif isinstance(value, Struct):
            found[name] = as_record(value)
    return found


def unset_if_none(value: T | None) -> T | UnsetType:
    """Return the value, or ``UNSET`` if it is ``None``."""
    return UNSET if value is None else value


def if_set(value: T | UnsetType) -> T | None:
    """Return the value, or ``None`` if it is ``UNSET``: the reverse of ``unset_if_none``."""
    return None if isinstance(value, UnsetType) else value
