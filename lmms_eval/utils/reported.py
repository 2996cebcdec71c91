"""Totals that plugins report about their own work through the compatibility helpers, for the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

_REPORTS: dict[str, TotalsReporter] = {}


class TotalsReporter(Struct, frozen=True):
    """Functions for one kind of totals of this process."""

    read: Callable[[], Mapping[str, Any]]
    """Returns the totals; empty if nothing was reported."""
    reset: Callable[[], None]
    """Resets the totals, at the start of a run."""


def offer(name: str, report: TotalsReporter) -> None:
    """Register a kind of totals (``usage``, ``throughput``). The modules that plugins import call this."""
    _REPORTS[name] = report


def reported() -> dict[str, dict[str, Any]]:
    """Return all totals that are not empty."""
    return {name: dict(found) for name, report in _REPORTS.items() if (found := report.read())}


def forget_reported() -> None:
    """Reset all totals."""
    for report in _REPORTS.values():
        report.reset()
