"""Answer filters by name, and the pipelines that apply them: a built-in one is imported when it is used."""

from __future__ import annotations

import importlib

from lmms_eval.api.filter import Filter
from lmms_eval.filters.pipeline import FilterPipeline

FILTERS: dict[str, str] = {
    "lowercase": "lmms_eval.filters.transformation:LowercaseFilter",
    "majority_vote": "lmms_eval.filters.selection:MajorityVote",
    "map": "lmms_eval.filters.transformation:MapFilter",
    "multi_choice_regex": "lmms_eval.filters.patterns:MultiChoiceRegexFilter",
    "option_letter": "lmms_eval.filters.patterns:OptionLetterFilter",
    "regex": "lmms_eval.filters.patterns:RegexFilter",
    "remove_whitespace": "lmms_eval.filters.transformation:WhitespaceFilter",
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


__all__ = ["FILTERS", "Filter", "FilterPipeline", "filter_class"]
