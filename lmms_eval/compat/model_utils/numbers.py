"""Reading numbers that plugins report."""

from __future__ import annotations

import math
from typing import Any


def number_of(value: Any) -> float | None:
    """Return a value as a finite number, also from numpy and torch scalars; ``None`` for anything else."""
    if value is None or isinstance(value, str | bytes | bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
