"""Aggregates the scores of fields to the score of a query; -1 if all its fields are left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from lmms_eval.errors import TaskError

NO_SCORE = -1.0


def weighted_mean(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Mean of the scores that are 0 or more, -1 without one.

    Raises ``TaskError`` for a field without a weight or weights that sum to zero.
    """
    counted = _counted(scores)
    if not counted:
        return NO_SCORE
    missing = [name for name in counted if name not in weights]
    if missing:
        raise TaskError(f"field_weights has no weight for {', '.join(map(repr, missing))}")
    total = math.fsum(weights[name] for name in counted)
    if total == 0:
        raise TaskError(f"the weights of {', '.join(map(repr, counted))} sum to zero")
    return math.fsum(weights[name] * score for name, score in counted.items()) / total


def minimum(scores: Mapping[str, float], _weights: Mapping[str, float]) -> float:
    """The least score that is 0 or more, -1 without one."""
    return min(_counted(scores).values(), default=NO_SCORE)


def unsupported(_scores: Mapping[str, float], _weights: Mapping[str, float]) -> float:
    """Return -1: there is no aggregation."""
    return NO_SCORE


Aggregation = Callable[[Mapping[str, float], Mapping[str, float]], float]
AGGREGATIONS: Mapping[str, Aggregation] = MappingProxyType(
    {"mean": weighted_mean, "min": minimum, "unsupported": unsupported}
)
"""Aggregations by lower-case name."""


def _counted(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores without negative ones and NaN."""
    for name, score in scores.items():
        if not isinstance(score, int | float):
            raise TaskError(f"the score of field {name!r} must be a number, not {score!r}")
    return {name: score for name, score in scores.items() if score >= 0}
