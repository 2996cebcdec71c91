"""Answer filters by name, and the pipelines that apply them; a filter is imported when used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from lmms_eval.filters.pipeline import FilterPipeline

if TYPE_CHECKING:
    from lmms_eval.api.filter import Filter

FILTERS: dict[str, str] = {
    "lowercase": "lmms_eval.filters.transformation:LowercaseFilter",
    "majority_vote": "lmms_eval.filters.selection:MajorityVote",
    "map": "lmms_eval.filters.transformation:MapFilter",
    "multi_choice_regex": "lmms_eval.filters.extraction:MultiChoiceRegexFilter",
    "regex": "lmms_eval.filters.extraction:RegexFilter",
    "remove_whitespace": "lmms_eval.filters.extraction:WhitespaceFilter",
    "strip_thinking": "lmms_eval.filters.transformation:StripThinkingFilter",
    "take_first": "lmms_eval.filters.selection:TakeFirst",
    "take_first_k": "lmms_eval.filters.selection:TakeFirstK",
    "uppercase": "lmms_eval.filters.transformation:UppercaseFilter",
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


__all__ = ["FILTERS", "FilterPipeline", "filter_class"]
