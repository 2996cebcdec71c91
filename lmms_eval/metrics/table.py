"""The metrics and aggregations that a task's ``metric_list`` can name; functions are imported when used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from lmms_eval.utils.numbers import SHARES, ScoreRange

_HOME = "lmms_eval.metrics"


def _load(path: str) -> Callable[..., Any]:
    module, _, attribute = path.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function


class MetricEntry(Struct, frozen=True):
    """A per-document metric. ``functions`` maps an output type to ``module:attribute``.

    For ``generate_until`` a function takes ``references`` and ``predictions``; for ``multiple_choice`` a
    ``ChoiceItem``; for ``loglikelihood`` a ``LikelihoodItem``. ``aggregation`` is the default aggregation;
    ``score_range`` is the range of a document's value, and of the mean.
    """

    functions: tuple[tuple[str, str], ...]
    aggregation: str
    higher_is_better: bool
    score_range: ScoreRange | None = None

    @property
    def output_types(self) -> tuple[str, ...]:
        return tuple(output_type for output_type, _ in self.functions)

    def function(self, output_type: str) -> Callable[..., Any] | None:
        """Import the function for an output type; ``None`` if the metric is not defined for it."""
        path = dict(self.functions).get(output_type)
        return _load(path) if path else None


class AggregationEntry(Struct, frozen=True):
    """An aggregation over all documents.

    ``bootstrap_name`` is its name in ``lmms_eval.stats.bootstrap_stderr``; ``bootstrap_iterations`` is the number of
    draws (0: no bootstrap error); with ``is_mean`` the CLT error holds; ``score_range`` is the range of its values,
    whatever the documents.
    """

    path: str
    is_mean: bool = False
    bootstrap_iterations: int = 0
    bootstrap_name: str | None = None
    score_range: ScoreRange | None = None

    def function(self) -> Callable[..., Any]:
        return _load(self.path)


_PERCENT, _CORRELATION = ScoreRange(0.0, 100.0), ScoreRange(-1.0, 1.0)
_FROM_0, _FROM_1, _BRIER = ScoreRange(0.0), ScoreRange(1.0), ScoreRange(0.0, 2.0)


def _metric(aggregation: str, higher_is_better: bool, **functions: str) -> MetricEntry:
    paths = tuple((output_type, f"{_HOME}.{path}") for output_type, path in functions.items())
    in_shares = aggregation == "mean"  # of those here; others give pairs or lists; only the whole has a range
    return MetricEntry(paths, aggregation, higher_is_better, SHARES if in_shares else None)


METRICS: dict[str, MetricEntry] = {
    "acc": _metric("mean", True, multiple_choice="choice:acc", loglikelihood="choice:greedy"),
    "acc_all": _metric("acc_all", True),
    "acc_mutual_info": _metric("mean", True, multiple_choice="choice:acc_mutual_info"),
    "acc_norm": _metric("mean", True, multiple_choice="choice:acc_norm"),
    "anls": _metric("mean", True, generate_until="text:anls"),
    "bits_per_byte": _metric("bits_per_byte", False, loglikelihood="choice:byte_perplexity"),
    "bleu": _metric("bleu", True, generate_until="text:text_pair"),
    "brier_score": _metric("brier_score", False, multiple_choice="choice:brier_score"),
    "bypass": _metric("bypass", True, generate_until="text:bypass"),
    "byte_perplexity": _metric("weighted_perplexity", False, loglikelihood="choice:byte_perplexity"),
    "chrf": _metric("chrf", True, generate_until="text:text_pair"),
    "contains": _metric("mean", True, generate_until="answers:contains"),
    "exact_match": _metric("mean", True, generate_until="text:exact_match", multiple_choice="choice:exact_match"),
    "f1": _metric("f1", True, generate_until="text:label_pair", multiple_choice="choice:label_pair"),
    "math_verify": _metric("mean", True, generate_until="math_answers:math_verify"),
    "mcc": _metric("matthews_corrcoef", True, generate_until="text:label_pair", multiple_choice="choice:label_pair"),
    "mcq_match": _metric("mean", True, generate_until="answers:mcq_match"),
    "numeric": _metric("mean", True, generate_until="answers:numeric"),
    "perplexity": _metric("perplexity", False, loglikelihood="choice:perplexity"),
    "ter": _metric("ter", False, generate_until="text:text_pair"),
    "wer": _metric("wer", False, generate_until="speech:wer"),
    "word_perplexity": _metric("weighted_perplexity", False, loglikelihood="choice:word_perplexity"),
}

_DRAWS, _TEXT_DRAWS = 100_000, 100


def _aggregation(
    name: str, draws: int = 0, bootstrap_name: str | None = None, score_range: ScoreRange | None = None
) -> AggregationEntry:
    return AggregationEntry(f"{_HOME}.aggregations:{name}", name == "mean", draws, bootstrap_name, score_range)


AGGREGATIONS: dict[str, AggregationEntry] = {
    "acc_all": AggregationEntry(f"{_HOME}.choice:acc_all", score_range=SHARES),
    "bits_per_byte": _aggregation("bits_per_byte", score_range=_FROM_0),
    "bleu": _aggregation("bleu", _TEXT_DRAWS, score_range=_PERCENT),
    "brier_score": _aggregation("brier_score", score_range=_BRIER),
    "bypass": _aggregation("bypass"),
    "chrf": _aggregation("chrf", _TEXT_DRAWS, score_range=_PERCENT),
    "chrf++": AggregationEntry(f"{_HOME}.aggregations:chrf_plus_plus", False, _TEXT_DRAWS, score_range=_PERCENT),
    "f1": _aggregation("f1", _DRAWS, "f1", SHARES),
    "matthews_corrcoef": _aggregation("matthews_corrcoef", _DRAWS, "matthews_corrcoef", _CORRELATION),
    "mean": _aggregation("mean"),
    "median": _aggregation("median", _DRAWS, "median"),
    "nanmean": _aggregation("nanmean", _DRAWS),
    "perplexity": _aggregation("perplexity", _DRAWS, "perplexity", _FROM_1),
    "ter": _aggregation("ter", _TEXT_DRAWS, score_range=_FROM_0),
    "upper_median": _aggregation("upper_median", _DRAWS),
    "weighted_mean": _aggregation("weighted_mean"),
    "weighted_perplexity": _aggregation("weighted_perplexity", score_range=_FROM_1),
    "wer": _aggregation("wer", _TEXT_DRAWS, score_range=_FROM_0),
}
