"""Metrics of likelihood tasks (harness specification §2.5). Losses are negative log-probabilities: smallest wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.errors import UsageError


class ChoiceItem(Struct, frozen=True):
    """The answers to one multiple-choice document.

    ``gold`` holds the indices of the right choices; an index outside the choices is never right. ``unconditional``
    holds the losses without the context, for ``acc_mutual_info`` only.
    """

    losses: tuple[float, ...]
    is_greedy: tuple[bool, ...]
    choices: tuple[str, ...]
    gold: tuple[int, ...]
    unconditional: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(self.losses), len(self.is_greedy), len(self.choices)}
        if len(lengths) != 1 or not self.losses:
            raise UsageError(
                f"multiple choice: {len(self.losses)} losses and {len(self.is_greedy)} greedy flags"
                f" for {len(self.choices)} choices; give one each"
            )


class LikelihoodItem(Struct, frozen=True):
    """The answer to one likelihood request: natural log of the probability, and whether greedy decoding gives it."""

    log_probability: float
    is_greedy: bool
    n_words: int = 1
    n_bytes: int = 1


def _smallest(losses: Sequence[float]) -> int:
    return min(range(len(losses)), key=lambda index: losses[index])


def acc(item: ChoiceItem) -> float:
    """1 if the choice of the smallest loss (the first of equal ones) is a right one."""
    return float(_smallest(item.losses) in item.gold)


def acc_norm(item: ChoiceItem) -> float:
    """Score as ``acc`` does, each loss divided by the number of characters of its choice; an empty one never wins."""
    per_character = [
        loss / len(choice) if choice else math.inf for loss, choice in zip(item.losses, item.choices, strict=True)
    ]
    return float(_smallest(per_character) in item.gold)


def acc_mutual_info(item: ChoiceItem) -> float:
    """Score as ``acc`` does, with the loss without context subtracted.

    Raises ``UsageError`` unless there is one unconditional loss for each choice.
    """
    if len(item.unconditional) != len(item.losses):
        raise UsageError("metric 'acc_mutual_info': needs one unconditional loss for each choice")
    gained = [loss - bare for loss, bare in zip(item.losses, item.unconditional, strict=True)]
    return float(_smallest(gained) in item.gold)


def exact_match(item: ChoiceItem) -> float:
    """1 if greedy decoding gives a right choice."""
    return float(any(0 <= gold < len(item.is_greedy) and item.is_greedy[gold] for gold in item.gold))


def brier_score(item: ChoiceItem) -> tuple[int, list[float]]:
    """(gold index, probabilities by softmax of −loss) for the aggregation of that name."""
    least = min(item.losses)
    weights = [math.exp(least - loss) for loss in item.losses]
    total = math.fsum(weights)
    return item.gold[0] if item.gold else -1, [weight / total for weight in weights]


def label_pair(item: ChoiceItem) -> tuple[int, int]:
    """(gold index, predicted index) for the aggregations ``f1`` and ``matthews_corrcoef``."""
    return item.gold[0] if item.gold else -1, _smallest(item.losses)


def greedy(item: LikelihoodItem) -> float:
    """``acc`` of a likelihood task: 1 if greedy decoding gives the continuation."""
    return float(item.is_greedy)


def perplexity(item: LikelihoodItem) -> float:
    """The log-probability, for the aggregation of that name."""
    return item.log_probability


def word_perplexity(item: LikelihoodItem) -> tuple[float, int]:
    """(log-probability, number of words) for the aggregation ``weighted_perplexity``."""
    return item.log_probability, item.n_words


def byte_perplexity(item: LikelihoodItem) -> tuple[float, int]:
    """(log-probability, number of bytes) for ``weighted_perplexity`` and ``bits_per_byte``."""
    return item.log_probability, item.n_bytes


def all_right_by_question(items: Sequence[tuple[Any, Any]]) -> list[float]:
    """One value per question of pairs of document and predicted bool: 1 if all of its answers are judged right.

    A document names its question by ``idx.paragraph`` and ``idx.question`` and the truth by ``label`` (MultiRC). Either
    may come first in a pair: lm-eval has the prediction first. Raises ``UsageError`` if a document lacks one of these
    keys.
    """
    by_question: dict[tuple[Any, Any], bool] = {}
    for first, second in items:
        doc, predicted = (second, first) if isinstance(second, Mapping) else (first, second)
        try:
            key, truth = (doc["idx"]["paragraph"], doc["idx"]["question"]), doc["label"] == 1
        except (KeyError, TypeError) as error:
            raise UsageError(
                f"metric 'acc_all': a document lacks idx.paragraph, idx.question or label: {error}"
            ) from error
        by_question[key] = by_question.get(key, True) and bool(predicted) == truth
    return [float(value) for value in by_question.values()]


def acc_all(items: Sequence[tuple[Any, Any]]) -> float:
    """Share of questions all of whose answers are judged right; its error is taken over the questions."""
    values = all_right_by_question(items)
    if not values:
        raise UsageError("metric 'acc_all': no values to aggregate")
    return math.fsum(values) / len(values)
