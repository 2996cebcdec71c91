"""Return values of metrics."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class DetailedScore(Struct, frozen=True):
    """A score with information for the result file: a text, or a dictionary of JSON values."""

    score: float
    info: Any = None


MetricValue = float | DetailedScore


def unsupported(_response: object, _truth: object) -> float:
    """Return -1, which means "no score". Inside a task such a field has no entry at all."""
    return -1.0


def nli_entailment(_response: object, _truth: object) -> float:
    """Return 0, as the official evaluator does, whose guard lets no text reach its model."""
    return 0.0
