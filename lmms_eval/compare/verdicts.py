"""Findings of a comparison, for tables, files and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lmms_eval.errors import UsageError


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """Selection of what is compared, and the rules.

    Raises:
        UsageError: a number is out of its range.
    """

    alpha: float = 0.05
    margin: float | None = None
    """Differences below it do not matter, in the units of the scores."""
    draws: int = 10_000
    seed: int = 0
    tasks: tuple[str, ...] = ()
    """Empty: all that two runs have in common."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metrics, and what runs call them that do not have them by this name; empty: all in common."""
    task_names: Mapping[str, str] = field(default_factory=dict)
    """Tasks that runs call otherwise, by their name in the comparison."""
    by: tuple[str, ...] = ()
    """Metadata columns."""
    reference: str = ""
    """Name or source of the run with which all others are compared; empty: all pairs."""

    def __post_init__(self) -> None:
        complaints = {
            f"--alpha {self.alpha:g}: give a probability between 0 and 1, such as 0.05": 0 < self.alpha < 1,
            f"--margin {self.margin}: give a difference above 0, in the units of the scores (0.01: one percent point)":
                self.margin is None or 0 < self.margin < float("inf"),
            f"--draws {self.draws}: give at least 100": self.draws >= 100,
            f"--seed {self.seed}: give a number of at least 0": self.seed >= 0,
        }  # fmt: skip
        for complaint, is_fine in complaints.items():
            if not is_fine:
                raise UsageError(complaint)


Verdict = Literal["better", "worse", "equivalent", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """An interval of a difference."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The difference if documents without a score on a side counted as wrong there: the worst score of the range."""

    difference: float
    n: int
    """Documents that both runs have, paired or not; those that only one has were not asked of the other."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Counts of the documents of a pair of runs."""

    paired: int
    """With a number on both sides."""
    only_first: int = 0
    only_second: int = 0
    unscored: tuple[int, int] = (0, 0)
    failed: tuple[int, int] = (0, 0)
    """Documents that both runs have, without a number on that side."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One number of the first run less that of the second, over the documents that both have scored."""

    name: str
    """Task, group or benchmark's number."""
    metric: str
    filter: str
    first: float
    second: float
    value: float
    """``first - second``, in the units of the scores."""
    interval: Bounds | None
    """Of this difference alone; ``None`` with ``no_interval``."""
    p: float | None
    """Two-sided; ``None`` where no test is defined."""
    pairing: Pairing
    unit: Literal["percent", ""] = ""
    """``percent``: scores from 0 to 1, shown in percent points; the numbers here are as they are."""
    no_interval: str = ""
    test: str = ""
    """Name of the test: ``mcnemar exact``, ``permutation``, ..."""
    p_holm: float | None = None
    p_bh: float | None = None
    """Adjusted over the family of the comparison."""
    detectable: float | None = None
    """The smallest difference that these documents would show with a power of 80 %; ``None``: none that scores can
    have, or the spread of the differences is not known."""
    needed: int | None = None
    """Documents that would show a difference of the size seen (or settle the margin) with a power of 80 %."""
    verdict: Verdict = "cannot tell"
    sensitivity: Sensitivity | None = None
    notes: tuple[str, ...] = ()
    higher_is_better: bool = True
    changed: tuple[int, int] | None = None
    """Documents on which the first run is better, and worse."""
    cell: str = ""
    """Of a breakdown: the value of the metadata column."""


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Two runs."""

    first: str
    second: str
    rows: Sequence[Difference]
    """Tasks first, then groups and the benchmarks' own numbers."""
    cells: Mapping[str, Sequence[Difference]] = field(default_factory=dict)
    """By metadata column: a row for each of its values and task; adjusted over all cells of the column."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Ranks that a run may have, with 95 % over all runs at once."""

    run: str
    score: float
    rank: int
    best: int
    worst: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two or more runs."""

    runs: Sequence[str]
    pairs: Sequence[PairComparison]
    margin: float | None
    """Differences below it do not matter, in the units of the scores."""
    ranks: Mapping[str, Sequence[Rank]] = field(default_factory=dict)
    """By row (``NAME METRIC,FILTER``), of three or more runs."""
    notes: tuple[str, ...] = ()
    alpha: float = 0.05
    """Verdicts are wrong so often at most, over the whole family; intervals have the level ``1 - alpha``."""
