"""Answer filters by name, and the pipelines that apply them: a built-in one is imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.filter import Filter, FilterEnsemble
from lmms_eval.api.registry import FILTERS as ADDED_FILTERS
from lmms_eval.filters.pipeline import FilterPipeline

FILTERS: dict[str, str] = {
    "lowercase": "lmms_eval.filters.patterns:LowercaseFilter",
    "majority_vote": "lmms_eval.filters.patterns:MajorityVote",
    "map": "lmms_eval.filters.patterns:MapFilter",
    "multi_choice_regex": "lmms_eval.filters.patterns:MultiChoiceRegexFilter",
    "option_letter": "lmms_eval.filters.patterns:OptionLetterFilter",
    "regex": "lmms_eval.filters.patterns:RegexFilter",
    "remove_whitespace": "lmms_eval.filters.patterns:WhitespaceFilter",
    "strip_thinking": "lmms_eval.filters.patterns:StripThinkingFilter",
    "take_first": "lmms_eval.filters.patterns:TakeFirst",
    "take_first_k": "lmms_eval.filters.patterns:TakeFirstK",
    "uppercase": "lmms_eval.filters.patterns:UppercaseFilter",
}
"""Name in a ``filter_list`` → ``module:class``."""


def filter_class(name: str) -> type[Filter]:
    """Import a built-in filter.

    Raises:
        UnknownNameError: no filter of that name.
    """
    from lmms_eval.errors import UnknownNameError

    if name not in FILTERS:
        raise UnknownNameError("filter", name, FILTERS)
    module, _, attribute = FILTERS[name].partition(":")
    found: type[Filter] = getattr(importlib.import_module(module), attribute)
    return found


def get_filter(name: str) -> type[Filter]:
    """Return a filter's class by its name: one that was registered, or a built-in one.

    Raises:
        UnknownNameError: no filter of that name.
    """
    found: type[Filter] = ADDED_FILTERS.get(name) if name in ADDED_FILTERS else filter_class(name)
    return found


def build_filter_ensemble(filter_name: str, components: Sequence[Sequence[Any]]) -> FilterEnsemble:
    """Build filters that are applied one after the other.

    Args:
        filter_name: the name under which requests get their result.
        components: name or class of each filter and its arguments (``None`` or a mapping).

    Raises:
        UnknownNameError: no filter of that name.
    """
    made = []
    for named, *arguments in components:
        given: Mapping[str, Any] = (arguments[0] if arguments else None) or {}
        made.append((get_filter(named) if isinstance(named, str) else named)(**given))
    return FilterEnsemble(filter_name, made)


__all__ = [
    "FILTERS",
    "Filter",
    "FilterEnsemble",
    "FilterPipeline",
    "build_filter_ensemble",
    "filter_class",
    "get_filter",
]
