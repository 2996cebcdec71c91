"""Loading YAML that others wrote: aliases and nesting within bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

MAX_VALUES = 1_000_000
"""Values of a document with every alias written out: a few lines of them can stand for more than any memory holds."""
MAX_DEPTH = 100
_MANY_OPENED = 100
_DEEP_BLOCKS = re.compile(r"^(?: {100}|(?:[-?:] +){50})", re.MULTILINE)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_bounded(text: str, loader: Callable[[str], Any] = _LOADER) -> Any:
    """The one document of a text; ``None`` if it is empty.

    Args:
        text: the YAML.
        loader: makes a loader of PyYAML for the text.

    Raises:
        yaml.YAMLError: no YAML, more than one document, nested more than ``MAX_DEPTH`` deep, an alias within what it
            names, or more than ``MAX_VALUES`` values.
    """
    if text.count("[") + text.count("{") > _MANY_OPENED or _DEEP_BLOCKS.search(text):
        _check_depth(text)
    opened = loader(text)
    try:
        node = opened.get_single_node()
        if node is None:
            return None
        _Counter().count(node)
        return opened.construct_document(node)
    finally:
        opened.dispose()


def _check_depth(text: str) -> None:
    """Nesting is checked before nodes are made: the C library goes one call deeper for each, until the stack ends."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _problem(f"values are nested more than {MAX_DEPTH} deep", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Counter:
    """Counts values with every alias written out; each node is visited once."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def count(self, node: yaml.Node) -> int:
        key = id(node)
        known = self._counts.get(key)
        if known == 0:
            raise _problem("an alias stands within what it names", node.start_mark)
        if known is not None:
            return known
        self._counts[key] = 0
        total = 1
        if isinstance(node, yaml.MappingNode):
            total += sum(self.count(name) + self.count(value) for name, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            total += sum(map(self.count, node.value))
        if total > MAX_VALUES:
            raise _problem(f"with its aliases written out it has more than {MAX_VALUES:,} values", node.start_mark)
        self._counts[key] = total
        return total


def _problem(text: str, mark: Any) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=mark)
