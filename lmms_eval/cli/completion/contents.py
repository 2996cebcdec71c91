"""The types of the completion index. They are JSON types, so that the index is read back as it was written."""

from __future__ import annotations

from typing import TypedDict

EVALUATION = "eval"


class Value(TypedDict):
    """Possible values of a flag, or of a word without a flag."""

    takes: bool
    optional: bool
    kind: str
    """``task``, ``model``, ``model_args``, ``choice``, ``file``, or empty if nothing can be suggested."""
    is_list: bool
    """Whether the value is a comma list."""
    choices: list[str]


class Node(TypedDict):
    """A command."""

    flags: dict[str, Value]
    spellings: dict[str, str]
    """Other spellings of the flags."""
    words: list[Value]


class Index(TypedDict):
    """Everything that can be suggested."""

    nodes: dict[str, Node]
    """Commands by name; actions by both names (``cache stats``)."""
    tasks: list[str]
    models: list[str]
    aliases: dict[str, str]
    model_args: dict[str, list[str]]
