"""Aggregations, which make one number of all per-document values of a metric (harness specification §2.6)."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from lmms_eval.errors import UsageError

BYPASS_VALUE = 999


def _need_items(items: Sequence[Any], name: str) -> None:
    if not items:
        raise UsageError(f"aggregation {name!r}: no values to aggregate")


def mean(items: Sequence[float]) -> float:
    """Arithmetic mean of an exactly rounded sum.

    Raises ``UsageError`` without values, as all aggregations of this module except ``bypass`` do.
    """
    _need_items(items, "mean")
    return math.fsum(items) / len(items)


def median(items: Sequence[float]) -> float:
    """Middle of the sorted values, or the mean of the middle two."""
    _need_items(items, "median")
    return float(statistics.median(items))


def upper_median(items: Sequence[float]) -> float:
    """Middle of the sorted values, or the upper one of the middle two: the median of lm-eval."""
    _need_items(items, "upper_median")
    return float(statistics.median_high(items))


def nanmean(items: Sequence[float]) -> float:
    """Arithmetic mean of the values that are numbers; NaN if none is."""
    known = [item for item in items if not math.isnan(item)]
    return mean(known) if known else math.nan


def perplexity(items: Sequence[float]) -> float:
    """exp(−mean) of log-probabilities."""
    _need_items(items, "perplexity")
    return math.exp(-mean(items))


def weighted_mean(items: Sequence[tuple[float, float]]) -> float:
    """Σ value / Σ weight of (value, weight) pairs: the values are sums over their weight already."""
    return _ratio(items, "weighted_mean")


def _ratio(items: Sequence[tuple[float, float]], name: str) -> float:
    _need_items(items, name)
    total = math.fsum(weight for _, weight in items)
    if total == 0:
        raise UsageError(f"aggregation {name!r}: all weights are 0")
    return math.fsum(value for value, _ in items) / total


def weighted_perplexity(items: Sequence[tuple[float, float]]) -> float:
    """exp(−Σ log-probability / Σ units) of (log-probability, number of units) pairs."""
    return math.exp(-_ratio(items, "weighted_perplexity"))


def wer(items: Sequence[tuple[int, int]]) -> float:
    """Word error rate of a corpus, a ratio: Σ edits / Σ words of the references, of (edits, words) pairs."""
    return _ratio(items, "wer")


def bits_per_byte(items: Sequence[tuple[float, float]]) -> float:
    """−Σ log-probability / Σ bytes / ln 2 of (log-probability, number of bytes) pairs."""
    return 0.0 - _ratio(items, "bits_per_byte") / math.log(2)  # 0, not -0, if the text is certain


def f1(items: Sequence[tuple[Any, Any]]) -> float:
    """Binary F1 of (gold, prediction) pairs with 1 as the positive class; 0 if no label is 1.

    Raises ``UsageError`` if a label is neither 0 nor 1.
    """
    _need_items(items, "f1")
    for pair in items:
        for label in pair:
            if label not in (0, 1):
                raise UsageError(f"aggregation 'f1': label {label!r}; it takes (gold, prediction) pairs of 0 and 1")
    both = sum(bool(gold) and bool(predicted) for gold, predicted in items)
    either = sum(bool(gold) + bool(predicted) for gold, predicted in items)
    return 2 * both / either if either else 0.0


def matthews_corrcoef(items: Sequence[tuple[Hashable, Hashable]]) -> float:
    """Matthews correlation of (gold, prediction) pairs over any number of classes (Gorodkin 2004).

    0 if all gold labels or all predictions are equal.
    """
    _need_items(items, "matthews_corrcoef")
    n, right = len(items), sum(gold == predicted for gold, predicted in items)
    golds, predictions = Counter(gold for gold, _ in items), Counter(predicted for _, predicted in items)
    above = right * n - sum(count * predictions[label] for label, count in golds.items())
    below = math.sqrt(n * n - sum(c * c for c in predictions.values()))
    below *= math.sqrt(n * n - sum(c * c for c in golds.values()))
    return above / below if below else 0.0


def brier_score(items: Sequence[tuple[int, Sequence[float]]]) -> float:
    """Mean over (gold index, probabilities) of Σ_k (p_k − [k is gold])² (Brier 1950): 0 is best, 2 worst."""
    _need_items(items, "brier_score")
    return mean(
        [math.fsum((p - (k == gold)) ** 2 for k, p in enumerate(probabilities)) for gold, probabilities in items]
    )


def bypass(items: Sequence[Any]) -> int:  # noqa: ARG001 - the interface of aggregations
    """Return the constant that replaces a score when nothing was scored (``--predict_only``)."""
    return BYPASS_VALUE


def bleu(items: Sequence[tuple[str | Sequence[str], str]]) -> float:
    """Corpus BLEU, 0 … 100, of (reference or references, prediction) pairs (sacrebleu's defaults; Post 2018)."""
    return _corpus_score(items, "bleu")


def chrf(items: Sequence[tuple[str | Sequence[str], str]]) -> float:
    """Corpus chrF2, 0 … 100, of (reference or references, prediction) pairs (Popović 2015)."""
    return _corpus_score(items, "chrf")


def chrf_plus_plus(items: Sequence[tuple[str | Sequence[str], str]]) -> float:
    """Corpus chrF++, 0 … 100: chrF with words and pairs of words (Popović 2017)."""
    return _corpus_score(items, "chrf", word_order=2)


def ter(items: Sequence[tuple[str | Sequence[str], str]]) -> float:
    """Corpus translation edit rate in percent (lower is better) of (reference or references, prediction) pairs."""
    return _corpus_score(items, "ter")


def _corpus_score(items: Sequence[tuple[str | Sequence[str], str]], name: str, **options: Any) -> float:
    import sacrebleu

    _need_items(items, name)
    each = [[reference] if isinstance(reference, str) else list(reference) for reference, _ in items]
    # sacrebleu's layout: one list per reference position, None for an item with fewer references
    width = max(len(texts) for texts in each)
    streams = [[texts[k] if k < len(texts) else None for texts in each] for k in range(width)]
    predictions: list[Any] = [one for _, one in items]
    # Tasks of lm-eval may give a prediction as a list of one.
    predictions = [one[0] if isinstance(one, list | tuple) and len(one) == 1 else one for one in predictions]
    return float(getattr(sacrebleu, f"corpus_{name}")(predictions, streams, **options).score)
