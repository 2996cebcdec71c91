"""Ranges of scores, the number of a score, and rounding of numbers for display."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_SLACK = 1e-9


class ScoreRange(Struct, frozen=True):
    """The least and the greatest value that a score can have; infinite without a bound."""

    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        """Return whether a value is in the range, up to rounding errors."""
        slack = _SLACK * max(1.0, abs(value))
        return self.low - slack <= value <= self.high + slack

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


SHARES = ScoreRange(0.0, 1.0)


def two_decimals(value: float) -> str:
    """Format with two decimals, or with one significant digit if these would show a value above 0 as 0."""
    return f"{value:.1g}" if 0 < value < 0.005 else f"{value:.2f}"


def item_number(item: Any, score_key: str = "score") -> float | None:
    """Return the number of a per-document value: the value itself, or its field ``score_key``; ``None`` if neither."""
    if not isinstance(item, int | float) and isinstance(item, Mapping):
        item = item.get(score_key)
    return item if isinstance(item, int | float) else None
