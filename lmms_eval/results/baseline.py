"""The numbers of a comparison with an earlier run's samples (``--baseline``), as results and table show them."""

from __future__ import annotations

from collections.abc import Mapping
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
    """As ``--baseline`` names it."""
    unit: str
    """``percent``, or empty: the metric's own, where its scores are no shares."""
    baseline_score: float
    """The baseline's mean over these documents."""
    difference: float
    """Mean of this run's scores less the baseline's."""
    ci_lower: float | None
    """``None`` with ``ci_upper`` where all differences are alike, and so say nothing of their spread."""
    ci_upper: float | None
    """Upper end of the 95 % interval."""
    pvalue: float | None
    """``None`` where all differences are one number that is not 0, and where this run or the baseline ended early."""
    n: int
    """Documents that both have."""
    baseline_early: str = ""
    """``stopped early: N of M`` of a baseline whose task ended before its documents did: these N alone are compared."""


def baseline_lines(paired: Mapping[str, Mapping[str, PairedScores]]) -> list[str]:
    """Lines below the table on baselines that ended early, by task and ``METRIC,FILTER``."""
    lines = []
    for task, rows in paired.items():
        for one in list(rows.values())[:1]:
            if one.baseline_early:
                lines.append(
                    f"{task}: the baseline {one.baseline} {one.baseline_early} documents: compared over these alone; "
                    "the interval is for all and holds whenever the baseline stopped, and there is no p-value"
                )
    return lines
