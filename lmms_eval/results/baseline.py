"""The numbers of a comparison with an earlier run's samples (``--baseline``), as results and table show them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: one metric through one filter pipeline."""

    metric: str
    filter: str

    def __str__(self) -> str:
        return f"{self.metric},{self.filter}"


@dataclass(frozen=True, slots=True)
class PairedScores:
    """A metric of this run against the baseline's, over the documents that both have."""

    baseline: str
    unit: str
    """``percent``, or empty: the metric's own, where its scores are no shares."""
    baseline_score: float
    difference: float
    """Mean of this run's scores less the baseline's."""
    ci_lower: float | None
    """``None`` with ``ci_upper`` where all differences are alike, and so say nothing of their spread."""
    ci_upper: float | None
    pvalue: float | None
    """``None`` where all differences are one number that is not 0, and of a task that has ended early."""
    n: int
