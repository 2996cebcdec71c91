"""Metrics of lm-eval's tasks: their functions, aggregations and directions."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.api.registry import AGGREGATIONS as ADDED_AGGREGATIONS
from lmms_eval.api.task import MetricDefinition
from lmms_eval.errors import FunctionError, TaskError, UnknownNameError
from lmms_eval.metrics.speech import word_error_rate
from lmms_eval.metrics.table import AGGREGATIONS, METRICS
from lmms_eval.tasks.lm_eval.config import LmEvalConfig
from lmms_eval.tasks.yaml.functions import named
from lmms_eval.tasks.yaml.metrics import BYPASS, TaskMetric

DEFAULTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "generate_until": ("exact_match",),
        "loglikelihood": ("perplexity", "acc"),
        "loglikelihood_rolling": ("word_perplexity", "byte_perplexity", "bits_per_byte"),
        "multiple_choice": ("acc", "acc_norm"),
    }
)
"""Metrics of a task without ``metric_list``, by output type."""
_RENAMED = {"median": "upper_median"}
"""Aggregations that lm-eval computes in another way than the one of that name here."""
_AGGREGATED = {
    "acc": "mean", "acc_bytes": "mean", "acc_mutual_info": "mean", "acc_norm": "mean", "bits_per_byte": "bits_per_byte",
    "bleu": "bleu", "brier_score": "brier_score", "bypass": "bypass", "byte_perplexity": "weighted_perplexity",
    "chrf": "chrf", "chrf++": "chrf++", "exact_match": "mean", "f1": "f1", "likelihood": "mean",
    "mcc": "matthews_corrcoef", "perplexity": "perplexity", "ter": "ter", "word_perplexity": "weighted_perplexity",
}  # fmt: skip
"""Aggregation of a metric whose entry states none."""
_LOWER_IS_BETTER = frozenset(
    {"bits_per_byte", "brier_score", "byte_perplexity", "perplexity", "ter", "wer", "word_perplexity"}
)
_OWN_KEYS = frozenset({"metric", "aggregation", "higher_is_better", "hf_evaluate"})
CORPUS = frozenset({"bleu", "chrf", "chrf++", "ter"})
"""Metrics whose value of a document is the pair of gold and answer."""


class LmEvalMetric(Struct, frozen=True):
    """A metric of a task, with the function that scores one answer and its arguments."""

    metric: TaskMetric
    function: Callable[..., Any] | None
    """Scores ``references`` and ``predictions``; ``None`` if the output type, or ``process_results``, gives values."""

    @property
    def name(self) -> str:
        return self.metric.name

    def score(self, gold: Any, answer: Any) -> Any:
        """Return the value of an answer: a number, or a mapping of several metrics."""
        assert self.function is not None
        try:
            return self.function(references=[gold], predictions=[answer], **self.metric.arguments)
        except (TypeError, FunctionError) as error:
            if not isinstance(error, TypeError) and not isinstance(error.__cause__, TypeError):
                raise
            return self.function([gold, answer])  # it takes pairs


def lm_eval_metrics(config: LmEvalConfig, predict_only: bool, where: str) -> list[LmEvalMetric]:
    """Return the metrics of a task, in order.

    Arguments of a metric that the task does not call with them are dropped. Raises ``TaskError`` if an entry has no
    metric, or its aggregation is neither registered nor a function.
    """
    if predict_only:
        return [_metric({"metric": BYPASS}, config, where)]
    entries = config.metric_list
    if entries is None:
        entries = [{"metric": name} for name in DEFAULTS.get(config.output_type, ())]
    return [_metric(entry, config, where) for entry in entries]


def _metric(entry: Mapping[str, Any], config: LmEvalConfig, where: str) -> LmEvalMetric:
    stated = entry.get("metric")
    name = getattr(stated, "__name__", "") if callable(stated) else stated
    if not isinstance(name, str) or not name:
        raise TaskError(f"{where}: key 'metric_list': an entry without 'metric': {dict(entry)!r:.120}")
    calls = config.output_type == "generate_until" and config.process_results is None and name != BYPASS
    arguments = {key: value for key, value in entry.items() if key not in _OWN_KEYS} if calls else {}
    direction = entry.get("higher_is_better")
    definition = definition_of(
        name, entry.get("aggregation"), name not in _LOWER_IS_BETTER if direction is None else bool(direction), where
    )
    known_here = _OF_EVALUATE if entry.get("hf_evaluate") is True else _FUNCTIONS
    function = named(stated, f"metric {name!r}") if callable(stated) else known_here.get(name)
    if calls and function is None:
        known = sorted(known_here)
        raise UnknownNameError("metric", name, known, f"({where}: key 'metric_list'); process_results may return it")
    return LmEvalMetric(TaskMetric(definition, arguments), function if calls else None)


def definition_of(name: str, aggregation: Any, higher_is_better: bool, where: str) -> MetricDefinition:
    """Return the definition of a metric.

    Args:
        name: name of the metric.
        aggregation: a registered name or a function, such as ``mean`` here; ``None``: that of the metric, or the mean.
        higher_is_better: direction.
        where: the task's file, for messages.

    Raises:
        UnknownNameError: there is no such aggregation.
    """
    stated = _AGGREGATED.get(name, "mean") if aggregation is None else aggregation
    stated = "mean" if stated is mean else stated  # lm-eval knows its own functions again
    if callable(stated):
        function, registered = named(stated, f"the aggregation of metric {name!r}"), None
    else:
        registered = _RENAMED.get(str(stated), str(stated))
        if registered not in AGGREGATIONS and registered not in ADDED_AGGREGATIONS:
            known = sorted({*AGGREGATIONS, *ADDED_AGGREGATIONS.names()})
            raise UnknownNameError("aggregation", str(stated), known, f"({where}: key 'metric_list')")
        is_ours = registered in AGGREGATIONS
        function = AGGREGATIONS[registered].function() if is_ours else ADDED_AGGREGATIONS.get(registered)
    within = METRICS[name].score_range if registered == "mean" and name in METRICS else None
    if registered == "mean" and name == "acc_bytes":
        within = METRICS["acc"].score_range
    if registered in AGGREGATIONS and registered != "mean":
        within = AGGREGATIONS[registered].score_range
    return MetricDefinition(name, function, registered, higher_is_better, within)


def mean(arr: Sequence[float]) -> float:
    """Arithmetic mean (``lm_eval.api.metrics.mean``); as an aggregation it has the standard error of ``mean``.

    Raises ``ZeroDivisionError`` without values.
    """
    return sum(arr) / len(arr)


def exact_match(
    references: Sequence[Any], predictions: Sequence[Any], regexes_to_ignore: Sequence[str] | None = None,
    ignore_case: Any = False, ignore_punctuation: Any = False, ignore_numbers: Any = False,
) -> dict[str, float]:  # fmt: skip
    """Share of predictions that equal their references (lm-eval's metric of that name).

    From both, in this order, what matches the regular expressions is removed, case is ignored, and ASCII punctuation
    and digits are removed.
    """

    def cleaned(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        for pattern in regexes_to_ignore or ():
            value = re.sub(pattern, "", value)
        value = value.lower() if ignore_case else value
        value = value.translate(_NO_PUNCTUATION) if ignore_punctuation else value
        return value.translate(_NO_DIGITS) if ignore_numbers else value

    pairs = list(zip(references, predictions, strict=False))
    equal = [cleaned(gold) == cleaned(answer) for gold, answer in pairs]
    return {"exact_match": math.fsum(equal) / len(equal) if equal else math.nan}


_NO_PUNCTUATION, _NO_DIGITS = str.maketrans("", "", string.punctuation), str.maketrans("", "", string.digits)


def _pair(references: Sequence[Any], predictions: Sequence[Any], **_arguments: Any) -> list[Any]:
    """Return gold and answer, which the aggregation compares."""
    return [references[0], predictions[0]]


def _accuracy(references: Sequence[Any], predictions: Sequence[Any], **arguments: Any) -> dict[str, float]:
    from sklearn.metrics import accuracy_score

    return {"accuracy": float(accuracy_score(references, predictions, **arguments))}


def _f1(references: Sequence[Any], predictions: Sequence[Any], **arguments: Any) -> dict[str, float]:
    from sklearn.metrics import f1_score

    return {"f1": float(f1_score(references, predictions, **arguments))}


_OF_EVALUATE: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"accuracy": _accuracy, "exact_match": exact_match, "f1": _f1, "wer": word_error_rate}
)
"""Metrics of an entry with ``hf_evaluate``, as the package ``evaluate`` computes them."""
_FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"exact_match": exact_match, "wer": word_error_rate, **dict.fromkeys((*CORPUS, "f1", "mcc", "acc"), _pair)}
)
