"""Sums that plugins report of their own work, by calls of the family's helpers, on their way to the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    """Sums of this process."""

    read: Callable[[], Mapping[str, Any]]
    """Return them; empty where nothing was reported."""
    reset: Callable[[], None]
    """Forget them, at the start of a run."""


_REPORTS: dict[str, Report] = {}


def offer(name: str, report: Report) -> None:
    """Say where the sums of a kind (``usage``, ``throughput``) stand; called by the modules that plugins import."""
    _REPORTS[name] = report


def reported() -> dict[str, dict[str, Any]]:
    """Return all sums that are not empty."""
    return {name: dict(found) for name, report in _REPORTS.items() if (found := report.read())}


def forget_reported() -> None:
    """Forget all sums."""
    for report in _REPORTS.values():
        report.reset()
