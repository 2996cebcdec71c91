"""Filters of lm-eval's tasks that other tasks lack, or that have other rules here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lmms_eval.api.filter import Filter, FilterEnsemble
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.filters import get_filter
from lmms_eval.tasks.lm_eval.config import LmEvalConfig
from lmms_eval.tasks.yaml.scoring import ScoringPlan, scoring_plan


class CustomFilter(Filter):
    """Applies a function of the task to all answers and documents."""

    def __init__(self, filter_fn: Callable[[Any, Any], Any]) -> None:
        self._function = filter_fn

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> Iterable[Any]:
        made: Iterable[Any] = self._function(resps, docs)
        return made


class TrimFilter(Filter):
    """Removes white space at both ends of each answer."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[list[str]]:  # noqa: ARG002 - the interface
        return [[answer.strip() for answer in answers] for answers in resps]


class PairsFilter(Filter):
    """Replaces each answer by the second texts of all ``('...', '...')`` in it; an answer that is a list stays."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[list[Any]]:  # noqa: ARG002 - the interface
        return [[self._read(answer) for answer in answers] for answers in resps]

    def _read(self, answer: Any) -> Any:
        if not isinstance(answer, str):
            return answer
        return [second for _, second in re.findall(r"\('([^']*)', '([^']*)'\)", answer)] or ["invalid"]


_SPANS = (
    ("person", "PER"), ("location", "LOC"), ("organization", "ORG"), ("counties", "LOC"), ("places", "LOC"),
    ("people", "PER"), ("persons", "PER"), ("company", "ORG"), ("country", "LOC"), ("continent", "LOC"),
    ("time", "DATE"), ("date", "DATE"), ("per", "PER"), ("loc", "LOC"), ("org", "ORG"),
)  # fmt: skip
"""Words before a colon and the labels that they mean, in the order of their replacement."""


class SpanFilter(Filter):
    """Reads the named entities of each answer as ``label: value`` joined by ``$``."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[list[str]]:  # noqa: ARG002 - the interface
        return [[self._read(answer) for answer in answers] for answers in resps]

    def _read(self, answer: str) -> str:
        text = answer.lower()
        for word, label in _SPANS:
            text = re.sub(rf"\b{word}\s*:", f"{label}:", text)
        text = re.sub(r"\$+$", "", text.replace("$$", "$").rstrip()).replace("\n", "$")
        found = []
        for label, values in re.findall(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)", text):
            parts = (part.strip() for part in values.split(","))
            found += [f"{label.lower()}: {part}" for part in parts if part and part != "none"]
        return " $ ".join(found)


FILTERS: Mapping[str, type[Filter]] = MappingProxyType(
    {"custom": CustomFilter, "format_span": SpanFilter, "regex_pos": PairsFilter, "remove_whitespace": TrimFilter}
)


def lm_eval_plan(config: LmEvalConfig, options: TaskOptions, where: str) -> ScoringPlan:
    """Build the filters of a task. Without ``filter_list``, the first of several answers counts.

    Raises ``TaskError`` as ``scoring_plan`` does.
    """
    if config.filter_list is None:
        plan = scoring_plan(config, options, where)
        first = FilterEnsemble("none", (get_filter("take_first")(),))
        return ScoringPlan((first,), plan.tags, plan.first_tags, plan.thought_tags)
    entries = []
    for entry in config.filter_list:
        steps = entry.get("filter")
        if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
            raise TaskError(f"{where}: key 'filter_list': an entry needs name and filter (a list): {entry!r:.120}")
        entries.append({**entry, "filter": [_known(step) for step in steps]})
    return scoring_plan(config.model_copy(update={"filter_list": entries}), options, where)


def _known(step: Mapping[str, Any]) -> Mapping[str, Any]:
    function = step.get("function")
    found = FILTERS.get(function) if isinstance(function, str) else None
    return step if found is None else {**step, "function": found}
