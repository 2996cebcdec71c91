"""Mean absolute deviation of numbers (General-Bench specification §5.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def mean_absolute_error(pairs: Iterable[tuple[Any, Any]]) -> float:
    """Mean |prediction − reference| over the pairs that are numbers or numeric texts; 0 without one."""
    found: list[float] = []
    for prediction, reference in pairs:
        try:
            found.append(abs(float(prediction) - float(reference)))
        except (TypeError, ValueError, OverflowError):
            continue
    return math.fsum(found) / len(found) if found else 0.0
