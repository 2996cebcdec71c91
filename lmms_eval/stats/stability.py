"""The stability of repeated answers (harness specification §6.5). Scores are lists of k numbers per question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval.stats.error import sample_stddev

Scores = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Stability:
    """Expected accuracy, consensus accuracy, internal variance and consistency rate of repeated answers."""

    expected_accuracy: float
    consensus_accuracy: float
    internal_variance: float
    consistency_rate: float


def expected_accuracy(scores: Scores) -> float:
    """Mean over all answers; NaN for none."""
    flat = [score for question in scores for score in question]
    return math.fsum(flat) / len(flat) if flat else math.nan


def consensus_accuracy(scores: Scores) -> float:
    """Share of questions where more than half of the answers are right; a tie or no answer counts as wrong."""
    if not scores:
        return math.nan
    return sum(bool(question) and math.fsum(question) > len(question) / 2 for question in scores) / len(scores)


def internal_variance(scores: Scores) -> float:
    """Mean over questions with two answers or more of the sample variance; NaN for none."""
    variances = [sample_stddev(question) ** 2 for question in scores if len(question) > 1]
    return math.fsum(variances) / len(variances) if variances else math.nan


def consistency_rate(scores: Scores) -> float:
    """Share of questions whose answers all have the same score (no answers do not); NaN for no questions."""
    if not scores:
        return math.nan
    return sum(len(set(question)) == 1 for question in scores) / len(scores)


def stability(scores: Scores) -> Stability:
    """All four; each answer must have been scored alone."""
    return Stability(
        expected_accuracy(scores), consensus_accuracy(scores), internal_variance(scores), consistency_rate(scores)
    )
