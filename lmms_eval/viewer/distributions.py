"""Distributions of latencies and tokens over the samples of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.viewer.samples import TaskFacts

BINS = 32


def distributions(tasks: Sequence[TaskFacts]) -> dict[str, dict[str, Any] | None]:
    """Make the histograms of all samples of some tasks together."""
    return {
        "latency": histogram([value for task in tasks for value in task.latencies]),
        "tokens_in": histogram([value for task in tasks for value in task.tokens_in]),
        "tokens_out": histogram([value for task in tasks for value in task.tokens_out]),
    }


def histogram(values: Sequence[float | int | None]) -> dict[str, Any] | None:
    """Counts in bins of equal width up to the 99th percentile, with quantiles; ``None`` where nothing is known."""
    import numpy as np

    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return None
    middle, ninth, last = (float(number) for number in np.quantile(known, (0.5, 0.9, 0.99)))
    low, high = float(known.min()), float(known.max())
    upper = min(high, low + 1.2 * (last - low)) if last > low else high
    counts, edges = np.histogram(known[known <= upper], bins=min(BINS, max(1, len(set(known.tolist())))))
    return {
        "counts": counts.tolist(),
        "edges": [float(edge) for edge in edges],
        "beyond": int((known > upper).sum()),
        "n": len(known),
        "median": middle,
        "p90": ninth,
        "p99": last,
        "max": high,
    }
