"""Mean deviations of numbers (General-Bench specification §5.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def mean_absolute_error(pairs: Iterable[tuple[Any, Any]]) -> float:
    """Mean |prediction − reference| over the pairs that are numbers or numeric texts; 0 if there are none."""
    return _mean([abs(difference) for difference in _differences(pairs)])


def mean_squared_error(pairs: Iterable[tuple[Any, Any]]) -> float:
    """Mean squared difference over the pairs that are numbers or numeric texts; 0 if there are none."""
    return _mean([difference * difference for difference in _differences(pairs)])


def root_mean_squared_error(pairs: Iterable[tuple[Any, Any]]) -> float:
    """Root of ``mean_squared_error``."""
    return math.sqrt(mean_squared_error(pairs))


def _differences(pairs: Iterable[tuple[Any, Any]]) -> list[float]:
    found: list[float] = []
    for prediction, reference in pairs:
        try:
            found.append(float(prediction) - float(reference))
        except (TypeError, ValueError, OverflowError):
            continue
    return found


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
