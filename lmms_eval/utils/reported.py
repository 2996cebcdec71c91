"""Totals that plugins report about their own work through the compatibility helpers, for the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_TOTALS: dict[str, tuple[Callable[[], Mapping[str, Any]], Callable[[], None]]] = {}


def offer(name: str, read: Callable[[], Mapping[str, Any]], reset: Callable[[], None]) -> None:
    """Register a kind of totals (``usage``, ``throughput``). The modules that plugins import call this.

    Args:
        name: the kind.
        read: returns the totals of this process; empty if nothing was reported.
        reset: resets the totals, at the start of a run.
    """
    _TOTALS[name] = read, reset


def reported() -> dict[str, dict[str, Any]]:
    """Return all totals that are not empty."""
    return {name: dict(found) for name, (read, _) in _TOTALS.items() if (found := read())}


def forget_reported() -> None:
    """Reset all totals."""
    for _, reset in _TOTALS.values():
        reset()
