"""Filters that change each answer (harness specification §12.2)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from lmms_eval.api.filter import Filter
from lmms_eval.errors import ArgumentError
from lmms_eval.filters.reasoning import DEFAULT_TAGS, TagPairs, strip_reasoning_tags


class LowercaseFilter(Filter):
    """Lower case."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer.lower() for answer in answers] for answers in resps]


class UppercaseFilter(Filter):
    """Upper case."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer.upper() for answer in answers] for answers in resps]


class WhitespaceFilter(Filter):
    """Drops one leading space of each answer."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[("" if answer is None else str(answer)).removeprefix(" ") for answer in answers] for answers in resps]


class MapFilter(Filter):
    """Each answer becomes its value in ``mapping_dict``, or ``default_value`` where it is no key.

    Subclasses in task files read these attributes.

    Raises:
        ArgumentError: ``mapping_dict`` is no mapping.
    """

    def __init__(self, mapping_dict: Mapping[Hashable, Any] | None = None, default_value: Any = None) -> None:
        super().__init__()
        given = {} if mapping_dict is None else mapping_dict
        if not isinstance(given, Mapping):
            raise ArgumentError(f"filter map: mapping_dict is a {type(given).__name__}; give a mapping")
        self.mapping_dict, self.default_value = dict(given), default_value

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[self.mapping_dict.get(answer, self.default_value) for answer in answers] for answers in resps]


class StripThinkingFilter(Filter):
    """Removes the thoughts of reasoning models (``lmms_eval.filters.reasoning``)."""

    def __init__(self, tag_pairs: TagPairs | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tag_pairs = DEFAULT_TAGS if tag_pairs is None else tag_pairs
        strip_reasoning_tags("", self.tag_pairs)

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[strip_reasoning_tags(answer, self.tag_pairs) for answer in answers] for answers in resps]
