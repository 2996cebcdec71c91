"""Filters and scores of lm-eval's tasks: the values of filtered answers and of likelihoods."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.api.filter import Filter, FilterEnsemble
from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.filters import get_filter
from lmms_eval.tasks.data import Documents
from lmms_eval.tasks.lm_eval.config import LmEvalConfig
from lmms_eval.tasks.lm_eval.metrics import LmEvalMetric
from lmms_eval.tasks.lm_eval.prompts import is_number
from lmms_eval.tasks.yaml.metrics import BYPASS
from lmms_eval.tasks.yaml.prompts import Prompts
from lmms_eval.tasks.yaml.scoring import AnswerScorer, Doc, ScoringPlan, scoring_plan

log = logging.getLogger(__name__)
NO_GOLD = -100
"""Number of the right choice if the target is not a choice."""


class ChoiceLikelihoods(Struct, frozen=True):
    """The answers to a multiple-choice document. Likelihoods are natural logarithms: the greatest wins."""

    likelihoods: Sequence[float]
    is_greedy: Sequence[bool]
    choices: Sequence[str]
    gold: Sequence[int]
    """Numbers of the right choices."""
    alone: Sequence[float]
    """Likelihoods without the context; only with ``acc_mutual_info``."""

    def best(self, lengths: Sequence[int] | None = None) -> int:
        """Return the first of the likeliest choices, per unit of length if lengths are given; 0 units never win."""
        values = self.likelihoods
        if lengths is not None:
            pairs = zip(values, lengths, strict=True)
            values = [value / length if length else -math.inf for value, length in pairs]
        return max(range(len(values)), key=values.__getitem__)

    def is_right(self, choice: int) -> float:
        return float(choice in self.gold)

    def probabilities(self) -> list[float]:
        """Return the softmax of the likelihoods."""
        most = max(self.likelihoods)
        weights = [math.exp(value - most) for value in self.likelihoods]
        total = math.fsum(weights)
        return [weight / total for weight in weights]

    def mutual_information(self) -> float:
        gained = [value - alone for value, alone in zip(self.likelihoods, self.alone, strict=True)]
        return self.is_right(max(range(len(gained)), key=gained.__getitem__))


def _first(item: ChoiceLikelihoods) -> int:
    return item.gold[0] if item.gold else NO_GOLD


_OF_CHOICES: Mapping[str, Callable[[ChoiceLikelihoods], Any]] = MappingProxyType(
    {
        "acc": lambda item: item.is_right(item.best()),
        "acc_bytes": lambda item: item.is_right(item.best([len(choice.encode()) for choice in item.choices])),
        "acc_mutual_info": ChoiceLikelihoods.mutual_information,
        "acc_norm": lambda item: item.is_right(item.best([len(choice) for choice in item.choices])),
        "brier_score": lambda item: [_first(item), item.probabilities()],
        "exact_match": lambda item: int(any(item.is_greedy[number] for number in item.gold if number >= 0)),
        "f1": lambda item: [_first(item), item.best()],
        "likelihood": lambda item: [_first(item), list(item.likelihoods)],
        "mcc": lambda item: [_first(item), item.best()],
    }
)
_SPACE = re.compile(r"\s+")


class LmEvalScorer(AnswerScorer):
    """Scores answers as they are, untrimmed. Tasks get likelihoods as logarithms: greater is likelier."""

    config: LmEvalConfig
    refusal = ""
    """The reason why no sample is scored; empty if scoring is allowed."""

    def __init__(
        self, prompts: Prompts, metrics: Sequence[LmEvalMetric], plan: ScoringPlan, full_docs: Documents | None,
        may_draw: bool,
    ) -> None:  # fmt: skip
        super().__init__(prompts, [one.metric for one in metrics], plan, full_docs, may_draw)
        self._stated = metrics

    def evaluate(
        self, doc: Doc, filtered: Sequence[Any], verdicts: Mapping[str, Verdict] = MappingProxyType({})
    ) -> Mapping[str, Any]:
        if self.refusal:
            raise NotEvaluated(self.refusal)
        made = self._values(doc, filtered, verdicts)
        return {name: int(value) if _is_truth(value) else value for name, value in made.items()}

    def _values(self, doc: Doc, filtered: Sequence[Any], verdicts: Mapping[str, Verdict]) -> Mapping[str, Any]:
        kind, results = self.config.output_type, self._results(filtered)
        if self.config.process_results is not None or self.predict_only:
            return super().evaluate(doc, filtered, verdicts)
        if kind == "generate_until":
            return self._generated(doc, results[0])
        names = [metric.name for metric in self._stated]
        if kind == "multiple_choice":
            item = self._likelihoods(doc, results)
            return {name: _OF_CHOICES[name](item) for name in names if name in _OF_CHOICES}
        found = _rolling(self.prompts.answer_text(doc), results[0]) if kind == "loglikelihood_rolling" else {
            "perplexity": results[0][0], "acc": int(results[0][1]),
        }  # fmt: skip
        return {name: found[name] for name in names if name in found}

    def _results(self, filtered: Sequence[Any]) -> list[Any]:
        if self.config.output_type == "generate_until":
            return list(filtered)
        pairs = [(0.0 - loss, is_greedy) for loss, is_greedy in filtered]  # 0, not -0
        return [value for value, _ in pairs] if self.config.output_type == "loglikelihood_rolling" else pairs

    def _generated(self, doc: Doc, answer: Any) -> dict[str, Any]:
        """Score an answer against one or several targets. Several targets count 1 if one of them does."""
        target, choices = self.prompts.target(doc), self.prompts.choices(doc)
        several = isinstance(target, list)
        golds = [self._gold(one, choices, answer) for one in (target if several else [target])]
        made: dict[str, Any] = {}
        for metric in self._stated:
            if metric.name == BYPASS:
                made[BYPASS] = [golds[0], answer]
            elif not several:
                value = metric.score(golds[0], answer)
                made |= value if isinstance(value, Mapping) else {metric.name: value}
            else:
                values = [metric.score(gold, answer) for gold in golds]
                each = [one[metric.name] if isinstance(one, Mapping) else one for one in values]
                made[metric.name] = float(any(map(bool, each)))
        return made

    def _gold(self, value: Any, choices: Sequence[str] | None, answer: Any) -> Any:
        if is_number(value) and choices is not None and 0 <= int(value) < len(choices):
            return choices[int(value)]
        if isinstance(answer, list) or isinstance(value, type(answer) | str):
            return value
        try:
            return type(answer)(value)  # such as 7 for the answer "7"
        except (TypeError, ValueError):
            return value

    def _likelihoods(self, doc: Doc, results: Sequence[tuple[float, bool]]) -> ChoiceLikelihoods:
        choices = self.prompts.choices(doc) or []
        question = self.prompts.text(doc)
        target = question if is_number(question) else self.prompts.target(doc)
        each = target if isinstance(target, list | tuple) else [target]
        gold = [self._number(one, choices) for one in each]
        if all(number == NO_GOLD for number in gold):
            log.warning("%s: target %r is not one of the %d choices", self.prompts.where, target, len(choices))
        own, alone = results[: len(choices)], results[len(choices) :]
        return ChoiceLikelihoods(
            [value for value, _ in own], [is_greedy for _, is_greedy in own], choices, gold,
            [value for value, _ in alone],
        )  # fmt: skip

    def _number(self, value: Any, choices: Sequence[str]) -> int:
        if is_number(value):
            return int(value) if int(value) < len(choices) else NO_GOLD
        return choices.index(str(value)) if str(value) in choices else NO_GOLD


def _is_truth(value: Any) -> bool:
    """Return whether a value is true or false, also one of numpy; lm-eval averages these as numbers."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _rolling(text: str, likelihood: float) -> dict[str, Any]:
    """Return the likelihood of a text with its number of words and of bytes (specification of lm-eval's tasks §7)."""
    words, size = len(_SPACE.split(text)), len(text.encode())
    return {
        "word_perplexity": [likelihood, words],
        "byte_perplexity": [likelihood, size],
        "bits_per_byte": [likelihood, size],
    }


class CustomFilter(Filter):
    """Applies a function of the task to all answers and documents."""

    def __init__(self, filter_fn: Callable[[Any, Any], Any]) -> None:
        self._function = filter_fn

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        return list(self._function(resps, docs))


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


_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "person": "PER", "location": "LOC", "organization": "ORG", "counties": "LOC", "places": "LOC", "people": "PER",
        "persons": "PER", "company": "ORG", "country": "LOC", "continent": "LOC", "time": "DATE", "date": "DATE",
        "per": "PER", "loc": "LOC", "org": "ORG",
    }
)  # fmt: skip
"""Words before a colon and the labels that they mean."""
_LABELLED = re.compile(
    r"\b(person|location|organization|counties|places|people|persons|company|country|continent|time|date|per|loc|org)"
    r"\s*:"
)


class SpanFilter(Filter):
    """Reads the named entities of each answer as ``label: value`` joined by ``$``."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[list[str]]:  # noqa: ARG002 - the interface
        return [[self._read(answer) for answer in answers] for answers in resps]

    def _read(self, answer: str) -> str:
        text = _LABELLED.sub(lambda found: f"{_LABELS[found[1]]}:", answer.lower())
        text = text.replace("$$", "$").rstrip().rstrip("$").replace("\n", "$")
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
