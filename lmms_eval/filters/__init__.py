"""Answer filters by name, and the pipelines that apply them. A built-in filter is imported when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.filter import Filter, FilterEnsemble
from lmms_eval.api.registry import FILTERS as ADDED_FILTERS
from lmms_eval.errors import UnknownNameError, UsageError

FILTERS: dict[str, str] = {
    "lowercase": "lmms_eval.filters.patterns:LowercaseFilter",
    "majority_vote": "lmms_eval.filters.patterns:MajorityVote",
    "map": "lmms_eval.filters.patterns:MapFilter",
    "marked_answer": "lmms_eval.filters.patterns:MarkedAnswerFilter",
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


def run_filters(
    pipeline: FilterEnsemble, answers: Sequence[Sequence[Any]], docs: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Return the filtered value of each document, from the raw answers of each document.

    Raises ``UsageError`` if the numbers of answers, documents or results differ, or if a filter refuses its input.
    """
    if len(answers) != len(docs):
        raise UsageError(
            f"filter pipeline {pipeline.name!r}: {len(answers)} lists of answers for {len(docs)} documents"
        )
    values: list[Any] = [list(of_document) for of_document in answers]
    for step in pipeline.filters:
        values = list(step.apply(values, docs))  # a plugin may return a lazy map
        if len(values) != len(docs):
            raise UsageError(
                f"filter pipeline {pipeline.name!r}: {type(step).__name__} returned {len(values)} values"
                f" for {len(docs)} documents; return one for each"
            )
    return values


def get_filter(name: str) -> type[Filter]:
    """Return the class of a registered or built-in filter. Raises ``UnknownNameError`` if there is no such filter."""
    if name not in ADDED_FILTERS and name not in FILTERS:
        raise UnknownNameError("filter", name, FILTERS)
    if name in ADDED_FILTERS:
        return ADDED_FILTERS.get(name)  # type: ignore[no-any-return]
    module, _, attribute = FILTERS[name].partition(":")
    found: type[Filter] = getattr(importlib.import_module(module), attribute)
    return found


def build_filter_ensemble(filter_name: str, components: Sequence[Sequence[Any]]) -> FilterEnsemble:
    """Build filters that are applied in sequence. Raises ``UnknownNameError`` if there is no such filter.

    A component is the name or class of a filter, and its arguments (``None`` or a mapping). ``filter_name`` is the name
    of the result in each request.
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
    "build_filter_ensemble",
    "get_filter",
    "run_filters",
]
