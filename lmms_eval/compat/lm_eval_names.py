"""Functions and classes that task files of lm-eval import (``lm_eval.utils``, ``lm_eval.api``, ``lm_eval.filters``)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lmms_eval.filters.patterns import RegexFilter as _RegexFilter


def weighted_f1_score(items: Sequence[tuple[Any, Any]]) -> float:
    """Mean F1 of the labels, weighted by their frequency in the references, of (reference, prediction) pairs.

    Raises ``IndexError`` without pairs.
    """
    from sklearn.metrics import f1_score

    references, predictions = list(zip(*items, strict=True))[:2]
    return float(f1_score(references, predictions, average="weighted"))


def general_detokenize(text: str) -> str:
    """Join punctuation to the words before or after it."""
    for apart, joined in ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"')):
        text = text.replace(apart, joined)
    return re.sub(r" (['.,])", r"\1", text)


def metric_max_over_ground_truths(
    metric_fn: Callable[[Any, Any], Any], prediction: Any, ground_truths: Iterable[Any]
) -> Any:
    """Return the greatest value over the reference answers. Raises ``ValueError`` without any."""
    return max(metric_fn(prediction, ground_truth) for ground_truth in ground_truths)


def mean(arr: Sequence[float]) -> float:
    """Arithmetic mean. Raises ``ZeroDivisionError`` without values."""
    return sum(arr) / len(arr)


class RegexFilter(_RegexFilter):
    """The built-in filter; a match without the group that is asked for counts as no match."""


def normalize_answer(s: str) -> str:
    """Lower case without punctuation, articles and repeated white space (SQuAD)."""
    text = "".join(character for character in s.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def get_tokens(s: str) -> list[str]:
    """Return the words of a normalised answer."""
    return normalize_answer(s).split() if s else []


def compute_exact(a_gold: str, a_pred: str) -> int:
    """1 if both answers are equal after normalisation."""
    return int(normalize_answer(a_gold) == normalize_answer(a_pred))


def compute_f1(a_gold: str, a_pred: str) -> float:
    """F1 of the words of two answers; of two empty ones 1."""
    gold, predicted = get_tokens(a_gold), get_tokens(a_pred)
    common = sum((Counter(gold) & Counter(predicted)).values())
    if not gold or not predicted:
        return int(gold == predicted)
    if not common:
        return 0
    precision, recall = common / len(predicted), common / len(gold)
    return 2 * precision * recall / (precision + recall)


_PUNCTUATION = frozenset(string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
