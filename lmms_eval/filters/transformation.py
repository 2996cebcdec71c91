"""Filters that change each answer (harness specification §12.2)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from lmms_eval.api.filter import Filter
from lmms_eval.errors import UsageError
from lmms_eval.filters.reasoning import DEFAULT_TAGS, TagPairs, strip_reasoning_tags


class LowercaseFilter(Filter):
    """Lower case."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer.lower() for answer in answers] for answers in resps]


class UppercaseFilter(Filter):
    """Upper case."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer.upper() for answer in answers] for answers in resps]


class MapFilter(Filter):
    """Each answer becomes its value in ``mapping_dict``, or ``default_value`` where it is no key."""

    def __init__(
        self, mapping_dict: Mapping[Hashable, Any] | None = None, default_value: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(mapping_dict or {}, Mapping):
            raise UsageError(f"filter map: mapping_dict is a {type(mapping_dict).__name__}; give a mapping")
        self.mapping, self.default = dict(mapping_dict or {}), default_value

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[self.mapping.get(answer, self.default) for answer in answers] for answers in resps]


class StripThinkingFilter(Filter):
    """Removes the thoughts of reasoning models (``lmms_eval.filters.reasoning``)."""

    def __init__(self, tag_pairs: TagPairs | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tag_pairs = DEFAULT_TAGS if tag_pairs is None else tag_pairs
        strip_reasoning_tags("", self.tag_pairs)

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[strip_reasoning_tags(answer, self.tag_pairs) for answer in answers] for answers in resps]
