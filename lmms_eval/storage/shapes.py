"""Shapes of JSON values that others may have written: which parts a reader goes through, and of what kind each is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EACH = "*"
"""In the shape of an object: of all keys that it does not name."""
NEEDS = ""
"""In the shape of an object: the keys that it must have."""
_LEAVES: Mapping[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    float: (int | float, "a number"),
    int: (int, "a whole number"),
    str: (str, "text"),
}


class MisshapenError(ValueError):
    """A value has not its shape."""


def shaped(value: Any, shape: Any, place: tuple[str, ...] = ()) -> Any:
    """Check the shape of a value, and return it without the objects and lists that are ``null``.

    Args:
        value: JSON.
        shape: a mapping of keys to shapes (of an object; further keys hold whatever they like), a list with the shape
            of all items, or a type of ``str``, ``bool``, ``int`` and ``float``, whose values may be ``null``.
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


def fits(value: Any, shape: Any) -> bool:
    """Return whether a value has a shape."""
    try:
        shaped(value, shape)
    except MisshapenError:
        return False
    return True


def _object(value: Any, shape: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _misshapen(value, "an object", place)
    lacks = [key for key in shape.get(NEEDS, ()) if value.get(key) is None]
    if lacks:
        raise _misshapen(value, f"an object with {', '.join(lacks)}", place)
    rest = shape.get(EACH)
    found = {}
    for key, item in value.items():
        inner = shape.get(key, rest) if key != NEEDS else rest
        if inner is None:
            found[key] = item
        elif item is not None or not isinstance(inner, Mapping | list):
            found[key] = shaped(item, inner, (*place, key))
    return found


def _misshapen(value: Any, wanted: str, place: tuple[str, ...]) -> MisshapenError:
    return MisshapenError(f"{'.'.join(place)!a} holds {value!a:.60}, not {wanted}")
