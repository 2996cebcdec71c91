"""Overlap of tokens and of sets of labels (General-Bench specification §5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SEPARATOR = "<p>"
"""Separator of the labels of a text."""


@dataclass(frozen=True, slots=True)
class Counts:
    """True positives, false positives and false negatives."""

    tp: int
    fp: int
    fn: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)


def token_f1(prediction: str, references: Sequence[str]) -> float:
    """The best F1 with a reference, of white-space tokens as they stand; 0 without references.

    The overlap counts *distinct* common tokens, the lengths count repeated tokens.
    """
    tokens = prediction.split()
    distinct = set(tokens)
    best = 0.0
    for wanted in map(str.split, references):
        if overlap := len(distinct.intersection(wanted)):
            precision, recall = overlap / len(tokens), overlap / len(wanted)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def labels(text: str) -> frozenset[str]:
    """The labels between ``<p>`` of the stripped text, as they stand; an empty text has one empty label."""
    return frozenset(text.strip().split(SEPARATOR))


def micro_f1_counts(prediction: str, reference: str) -> Counts:
    """Agreement of the sets of labels of two texts."""
    predicted, wanted = labels(prediction), labels(reference)
    common = len(predicted & wanted)
    return Counts(common, len(predicted) - common, len(wanted) - common)


def micro_f1(counts: Counts) -> float:
    """F1 of summed counts, 0 to 1; 0 without true positives."""
    if not counts.tp:
        return 0.0
    precision = counts.tp / (counts.tp + counts.fp)
    recall = counts.tp / (counts.tp + counts.fn)
    return 2 * precision * recall / (precision + recall)
