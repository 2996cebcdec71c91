"""JSON encoding of journal records, and checks of their shape.

Tuples, sets, non-finite floats and bytes are wrapped in tagged objects; numpy values become plain ones. Any other type
raises ``VolatileValue``: such a value is only kept in memory and is computed again on resume.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson
from msgspec import Struct

EACH = "*"
"""Key in the shape of an object: the shape of all keys that are not listed."""
_LEAVES: Mapping[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    float: (int | float, "a number"),
    int: (int, "a whole number"),
    str: (str, "text"),
}


class MisshapenError(ValueError):
    """A value does not have the expected shape."""


def shaped(value: Any, shape: Any, place: tuple[str, ...] = ()) -> Any:
    """Check the shape of a JSON value, and return it without keys for an object or list that are ``null``.

    Args:
        value: the JSON value.
        shape: for an object a mapping of keys to shapes (other keys may hold anything), for a list a list with the
            shape of its items, else one of ``str``, ``bool``, ``int`` and ``float`` (``null`` is accepted too).
        place: keys that lead to the value.

    Raises:
        MisshapenError: the message names the place.
    """
    if isinstance(shape, Mapping):
        return _object(value, shape, place)
    if isinstance(shape, list):
        if not isinstance(value, list | tuple):
            raise _misshapen(value, "a list", place)
        return [shaped(item, shape[0], (*place, str(number))) for number, item in enumerate(value)]
    kind, words = _LEAVES[shape]
    if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and shape is not bool)):
        raise _misshapen(value, words, place)
    return value


def is_record(value: Any, kind: type[Struct]) -> bool:
    """Return whether a decoded value is a record of the given kind; further keys are allowed."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _object(value: Any, shape: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _misshapen(value, "an object", place)
    rest = shape.get(EACH)
    found = {}
    for key, item in value.items():
        inner = shape.get(key, rest)
        if inner is None:
            found[key] = item
        elif item is not None or not isinstance(inner, Mapping | list):
            found[key] = shaped(item, inner, (*place, key))
    return found


def _misshapen(value: Any, wanted: str, place: tuple[str, ...]) -> MisshapenError:
    return MisshapenError(f"{'.'.join(place)!a} holds {value!a:.60}, not {wanted}")


_TAGS = frozenset({"__tuple__", "__set__", "__float__", "__bytes__", "__pairs__"})
_PLAIN: dict[type, Callable[[Any], Any]] = {str: str.__str__, int: int, float: float, list: list}
_TAG_BEGINS = b'"__'
"""Bytes in every line that holds a tag."""
_OPTIONS = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


class VolatileValue(TypeError):
    """A value cannot be written to a journal."""


def dumps(value: Any) -> bytes:
    """Encode a value as one line of JSON without a newline. Raises ``VolatileValue``."""
    try:  # as ``plain_json``, since almost every record is plain
        line = orjson.dumps(value, option=_OPTIONS)
        if _TAG_BEGINS not in line and orjson.loads(line) == value:
            return line
    except (TypeError, ValueError):
        pass
    return orjson.dumps(encode(value), option=_OPTIONS)


def loads(data: bytes) -> Any:
    """Decode a line that ``dumps`` encoded. Raises ``ValueError`` for anything else."""
    value = orjson.loads(data)
    try:
        return decode(value) if _TAG_BEGINS in data else value
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no value of ours: {error}") from error


def load_record(data: bytes) -> dict[str, Any] | None:
    """Decode a record that ``dumps`` encoded; ``None`` if the data hold no record."""
    try:
        record = orjson.loads(data)
        if _TAG_BEGINS in data:
            record = decode(record)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(record, dict) or (_TAG_BEGINS in data and not all(type(key) is str for key in record)):
        return None
    return record


def plain_json(value: Any) -> bytes | None:
    """Encode a value as plain JSON if that loses nothing; ``None`` otherwise.

    The encoded line is decoded and compared with the value, which finds tuples, non-finite floats and anything else
    that orjson converts. That takes a quarter of the time of a walk through the value.
    """
    try:
        line = orjson.dumps(value, option=_OPTIONS)
        return line if orjson.loads(line) == value else None
    except (TypeError, ValueError):  # a type that orjson cannot encode, or an array, whose comparison is ambiguous
        return None


def encode(value: Any) -> Any:
    """Convert a value to plain JSON types. Raises ``VolatileValue``."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return _text(value) if kind is str else value
    if kind is int:
        return value if -(2**63) <= value < 2**64 else {"__float__": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"__float__": repr(value)}
    if kind is list:
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value) and not _TAGS.intersection(value):
            return {_text(str(key)): encode(item) for key, item in value.items()}
        return {"__pairs__": [[encode(key), encode(item)] for key, item in value.items()]}
    return _encode_rare(value)


def _text(value: str) -> str:
    # A lone surrogate (cut by a tokenizer) cannot be encoded as UTF-8: it would make the whole record unwritable.
    return value if value.isascii() else value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _encode_rare(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"__tuple__": [encode(item) for item in value]}
    if isinstance(value, set | frozenset):
        return {"__set__": sorted((encode(item) for item in value), key=repr)}
    if isinstance(value, bytes):
        return {"__bytes__": base64.b64encode(value).decode("ascii")}
    for kind, plain in _PLAIN.items():  # subclasses: enumerations, numpy.float64, ...
        if isinstance(value, kind):
            return encode(plain(value))
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # numpy scalars and arrays, torch tensors
        return encode(value.tolist())
    raise VolatileValue(f"a {type(value).__name__} cannot be written to a journal")


_NESTED = frozenset({list, dict})
"""Types of JSON with values in them: most are texts and numbers, which need no call."""


def decode(value: Any) -> Any:
    """Undo ``encode``."""
    if isinstance(value, list):
        return [decode(item) if type(item) in _NESTED else item for item in value]
    if not isinstance(value, dict):
        return value
    only: tuple[str, Any] = next(iter(value.items())) if len(value) == 1 else ("", None)
    tag, content = only
    match tag:
        case "__float__":
            return float(content) if not content.lstrip("-").isdigit() else int(content)
        case "__bytes__":
            return base64.b64decode(content)
        case "__pairs__":
            return {_hashable(decode(key)): decode(item) for key, item in content}
        case "__tuple__":
            return tuple(decode(item) for item in content)
        case "__set__":
            return {_hashable(decode(item)) for item in content}
    return {key: decode(item) if type(item) in _NESTED else item for key, item in value.items()}


def _hashable(value: Any) -> Any:
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value
