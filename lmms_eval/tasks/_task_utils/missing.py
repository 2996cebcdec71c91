"""Bounds of a benchmark's numbers that hold whatever documents without a score would score.

A number that is a mean of parts, each of them a mean of scores within a known range, is least (greatest) if every
document without a score has the low (high) end of the range (Manski 1990). These are bounds of the number itself: they
have no sampling error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct


class NumberBounds(Struct, frozen=True):
    """The least and the greatest value of a number."""

    n: int
    """Documents without a score."""
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why there are no bounds."""


def filled_mean(mean: float, n: int, missing: int, end: float) -> float:
    """Return the mean over ``n`` scored documents and the missing ones, if each of these scores ``end``."""
    return (mean * n + missing * end) / (n + missing)


def bounds_lines(found: Mapping[str, NumberBounds], decimals: int = 4) -> str:
    """Return a line for each number, for the text of a report; empty without numbers."""
    return "\n".join(_line(name, one, decimals) for name, one in found.items())


def bounds_dict(found: Mapping[str, NumberBounds]) -> dict[str, Any]:
    """Return the bounds for the results file."""
    return {
        name: {"n": one.n, "reason": one.reason} if one.reason else {"n": one.n, "low": one.low, "high": one.high}
        for name, one in found.items()
    }


def without_bounds(names: Iterable[str], missing: int, reason: str) -> dict[str, NumberBounds]:
    """Return numbers that have no bounds, for one reason."""
    return {name: NumberBounds(missing, reason=reason) for name in names}


def documents(count: int) -> str:
    """Return ``1 document`` or ``N documents``."""
    return "1 document" if count == 1 else f"{count:,} documents"


def _line(name: str, found: NumberBounds, decimals: int) -> str:
    lack = f"{documents(found.n)} without a score"
    if found.low is None or found.high is None:
        return f"{name}: {lack}, no bounds: {found.reason}"
    return f"{name}: {lack}: {found.low:.{decimals}f} to {found.high:.{decimals}f} whatever they would score"
