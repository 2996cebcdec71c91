"""Texts and values to lists, sets and dictionaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal
from lmms_eval.tasks.megabench.conversions.structures import read_structure

_CLOSERS = {"(": ")", "{": "}", "[": "]"}


def str_to_list(text: Any) -> list[Any] | str:
    """A list from a Python literal or from comma-separated items; empty for what is not a text or cannot be read.

    The literal of a set of lists, which Python refuses, cannot be read.

    The text ``None`` gives the empty *text*, which equals no list but itself.
    """
    items = _items(text)
    if items is None:
        return ""
    return list(items)


def str_to_set(text: Any) -> set[Any] | str:
    """As ``str_to_list``, for a set; items that cannot be hashed (nested lists) make the whole set empty."""
    items = _items(text)
    if items is None:
        return ""
    try:
        return set(items)
    except TypeError:
        return set()


def _items(text: Any) -> Iterable[Any] | None:
    """The items in a text; ``None`` for the literal ``None``."""
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
    """Dictionaries, lists, tuples and sets as hashable values, recursively."""
    if isinstance(value, dict):
        return frozenset((key, freeze(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(value)
    return value


def to_set(value: Any) -> set[Any] | str:
    """The elements of a container (frozen), or the set that a text holds; any other value gives the empty set."""
    frozen = freeze(value)
    if isinstance(frozen, frozenset | tuple):
        return set(frozen)
    return str_to_set(frozen)


def to_frozen_set(value: Any) -> set[Any] | str:
    """As ``to_set``, but nested lists in a text are frozen to tuples instead of making the set empty."""
    if not isinstance(value, str):
        return to_set(value)
    items = _items(value)
    return "" if items is None else {freeze(item) for item in items}


def to_dict(value: Any) -> Any:
    """The dictionary (or list) that a text holds, the values of a dictionary converted likewise.

    A text without a readable or with an empty structure stays as it is. Raises ``RecursionError`` for dictionaries
    nested a thousand deep, which no reader here produces.
    """
    if isinstance(value, dict):
        return {key: to_dict(item) for key, item in value.items()}
    if isinstance(value, str):
        structure = read_structure(value)
        return value if structure in ({}, []) else structure
    return value
