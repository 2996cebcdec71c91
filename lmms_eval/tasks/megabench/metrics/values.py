"""Return values of metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scored:
    """A score with information for the result file: a text, or a dictionary of JSON values."""

    score: float
    info: Any = None


MetricValue = float | Scored


def unsupported(_response: object, _truth: object) -> float:
    """No metric: -1, which represents "no score". Inside a task such a field gives no entry at all."""
    return -1.0


def nli_entailment(_response: object, _truth: object) -> float:
    """Always 0, as in the official evaluator, whose guard lets no text reach its model."""
    return 0.0
