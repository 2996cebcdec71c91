"""Loading of untrusted YAML, with limits for aliases and nesting."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Any

import yaml

MAX_VALUES = 1_000_000
"""Values of a document with all aliases expanded. A few lines of aliases can expand to more than fits into memory."""
MAX_DEPTH = 100
_MANY_OPENED = 100
_DEEP_BLOCKS = re.compile(r"^(?: {100}|(?:[-?:] +){50})", re.MULTILINE)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UniqueKeyLoader(yaml.SafeLoader):
    """YAML loader that refuses duplicate keys. YAML would silently keep the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base class refuses it
            if key in seen:
                raise _problem(f"the key {key!r} occurs twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_bounded(text: str, loader: Callable[[str], Any] = _LOADER) -> Any:
    """Load the single document of a text; ``None`` if it is empty.

    Args:
        text: the YAML.
        loader: creates a loader of PyYAML for the text.

    Raises:
        yaml.YAMLError: the text is not YAML, has more than one document, is nested more than ``MAX_DEPTH`` deep, has an
            alias inside the value that it names, has more than ``MAX_VALUES`` values, or what ``loader`` refuses.
    """
    if text.count("[") + text.count("{") > _MANY_OPENED or _DEEP_BLOCKS.search(text):
        # This comes before nodes are built: the C library recurses for each level until the stack ends.
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise _problem(f"values are nested more than {MAX_DEPTH} deep", event.start_mark)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    opened = loader(text)
    try:
        node = opened.get_single_node()
        if node is None:
            return None
        _Counter().count(node)
        return opened.construct_document(node)
    finally:
        opened.dispose()


def yaml_mistake(error: yaml.YAMLError) -> str:
    """Return the place and the kind of a mistake, without the text there, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return place + (getattr(error, "problem", None) or type(error).__name__)


class _Counter:
    """Counts values with all aliases expanded. Each node is visited once."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def count(self, node: yaml.Node) -> int:
        key = id(node)
        known = self._counts.get(key)
        if known == 0:
            raise _problem("an alias is inside the value that it names", node.start_mark)
        if known is not None:
            return known
        self._counts[key] = 0
        total = 1
        if isinstance(node, yaml.MappingNode):
            total += sum(self.count(name) + self.count(value) for name, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            total += sum(map(self.count, node.value))
        if total > MAX_VALUES:
            raise _problem(f"with its aliases expanded it has more than {MAX_VALUES:,} values", node.start_mark)
        self._counts[key] = total
        return total


def _problem(text: str, mark: Any) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=mark)
