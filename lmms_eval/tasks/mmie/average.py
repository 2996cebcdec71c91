"""Means of scores, as the benchmark prints them and raw (MMIE specification §9)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lmms_eval.tasks.mmie.data.routing import QUESTIONS
from lmms_eval.tasks.mmie.scoring import HIGHEST


def mean(scores: Sequence[float]) -> float | None:
    """The plain mean; ``None`` of nothing."""
    return math.fsum(scores) / len(scores) if scores else None


def official_average(scores: Sequence[float]) -> float | None:
    """The mean rounded to three decimals by numpy's rule: times 1,000, to the nearest integer (ties to even), back.

    A mean of 0.0005 gives 0.0 so, where rounding of its exact decimal value gives 0.001.
    """
    found = mean(scores)
    return None if found is None else round(found * 1000) / 1000


def percent(value: float | None) -> float | None:
    """A mean of scores on the scale of the published tables: share of the highest score, times 100."""
    return None if value is None else value / HIGHEST * 100


def weighted_average(by_category: Mapping[str, float]) -> float:
    """The published AVG from the values of the three categories: the mean over all questions of the data set."""
    total = sum(QUESTIONS.values())
    return math.fsum(QUESTIONS[tag] * by_category[tag] for tag in QUESTIONS) / total
