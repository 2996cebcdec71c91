"""Converts texts and values to lists, sets and dictionaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal
from lmms_eval.tasks.megabench.conversions.structures import read_structure

_CLOSERS = {"(": ")", "{": "}", "[": "]"}


def str_to_list(text: Any) -> list[Any] | str:
    """Read a list from a Python literal or from comma-separated items; empty for anything that cannot be read.

    A set of lists, which Python refuses, cannot be read. The text ``None`` gives the empty *text*, which equals only
    itself.
    """
    items = _items(text)
    if items is None:
        return ""
    return list(items)


def str_to_set(text: Any) -> set[Any] | str:
    """Read a set as ``str_to_list`` does; items that cannot be hashed (nested lists) make the whole set empty."""
    items = _items(text)
    if items is None:
        return ""
    try:
        return set(items)
    except TypeError:
        return set()


def _items(text: Any) -> Iterable[Any] | None:
    """Read the items in a text; ``None`` for the literal ``None``."""
    if not isinstance(text, str):
        return []
    text = text.strip(" ")
    closer = _CLOSERS.get(text[:1])
    if not text or (closer is not None and text[-1] != closer):
        return []
    try:
        value = read_literal(text)
    except LiteralError as error:
        if error.problem == "unhashable":
            return []
        inner = text[1:-1] if closer is not None else text
        return [item.strip() for item in inner.split(",")]
    if value is None:
        return None
    if isinstance(value, int | float):
        return [value]
    return value if isinstance(value, Iterable) else []


def freeze(value: Any) -> Any:
    """Convert dictionaries, lists, tuples and sets to hashable values, recursively."""
    if isinstance(value, dict):
        return frozenset((key, freeze(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(value)
    return value


def to_set(value: Any) -> set[Any] | str:
    """Return the elements of a container (frozen), or the set in a text; any other value gives the empty set."""
    frozen = freeze(value)
    if isinstance(frozen, frozenset | tuple):
        return set(frozen)
    return str_to_set(frozen)


def to_frozen_set(value: Any) -> set[Any] | str:
    """Convert as ``to_set``, but freeze nested lists in a text to tuples instead of making the set empty."""
    if not isinstance(value, str):
        return to_set(value)
    items = _items(value)
    return "" if items is None else {freeze(item) for item in items}


def to_dict(value: Any) -> Any:
    """Read the dictionary (or list) in a text, and convert the values of a dictionary in the same way.

    A text without a readable structure, or with an empty one, is returned unchanged. Raises ``RecursionError`` for
    dictionaries nested a thousand deep, which no reader here produces.
    """
    if isinstance(value, dict):
        return {key: to_dict(item) for key, item in value.items()}
    if isinstance(value, str):
        structure = read_structure(value)
        return value if structure in ({}, []) else structure
    return value
