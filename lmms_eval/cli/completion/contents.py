"""The form of what completion suggests: JSON, so that it is read back as it was written."""

from __future__ import annotations

from typing import TypedDict

EVALUATION = "eval"


class Value(TypedDict):
    """Values of a flag, or of a word without a flag."""

    takes: bool
    optional: bool
    kind: str
    """``task``, ``model``, ``model_args``, ``choice``, ``file``, or nothing that could be suggested."""
    is_list: bool
    """Parts between commas."""
    choices: list[str]


class Node(TypedDict):
    """A command."""

    flags: dict[str, Value]
    spellings: dict[str, str]
    """Other spellings of the flags."""
    words: list[Value]


class Index(TypedDict):
    """All that is suggested."""

    nodes: dict[str, Node]
    """By the command's name, or both names of an action (``cache stats``)."""
    tasks: list[str]
    models: list[str]
    aliases: dict[str, str]
    model_args: dict[str, list[str]]
