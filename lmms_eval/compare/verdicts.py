"""Options and findings of a comparison, for tables, files and plots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import UsageError
from lmms_eval.stats.interval import Estimand, Interval


class CompareOptions(Struct, frozen=True):
    """Subjects and rules of a comparison.

    Raises:
        UsageError: a number is out of range.
    """

    alpha: float = 0.05
    margin: float | None = None
    """Differences below it do not matter, in the units of the scores."""
    draws: int = 10_000
    seed: int = 0
    tasks: tuple[str, ...] = ()
    """Empty for all tasks that two runs have in common."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metrics, with the names that other runs use for them; empty for all metrics in common."""
    task_names: Mapping[str, str] = field(default_factory=dict)
    """Names that runs use for tasks, by the task's name in the comparison."""
    by: tuple[str, ...] = ()
    """Metadata columns for breakdowns."""
    reference: str = ""
    """Name or source of the run that all others are compared with; empty for all pairs."""
    anchors: tuple[RunRows, ...] = ()
    """Earlier runs whose scores narrow the difference between a run that stopped early and a whole one."""
    numbers: Collection[tuple[str, str]] = ()
    """Name and metric of the rows to make, which form the family of the correction, without ranks; empty for all."""

    def makes(self, name: str, metric: str) -> bool:
        """Return whether a row is one of ``numbers``."""
        return not self.numbers or (name, metric) in self.numbers

    def __post_init__(self) -> None:
        complaints = {
            f"--alpha {self.alpha:g}: give a probability between 0 and 1, such as 0.05": 0 < self.alpha < 1,
            f"--margin {self.margin}: give a difference above 0, in units of the scores (0.01: one percentage point)":
                self.margin is None or 0 < self.margin < float("inf"),
            f"--draws {self.draws}: give at least 100": self.draws >= 100,
            f"--seed {self.seed}: give a number of at least 0": self.seed >= 0,
        }  # fmt: skip
        for complaint, is_fine in complaints.items():
            if not is_fine:
                raise UsageError(complaint)


def metric_text(metric: str, pipeline: str) -> str:
    """Return a metric's name, with the filter pipeline if it has a name."""
    return metric if pipeline in ("", "none") else f"{metric},{pipeline}"


Verdict = Literal[
    "better",
    "worse",
    "equivalent",
    "ahead on this list",
    "behind on this list",
    "equivalent on this list",
    "cannot tell",
]
"""The first three are about questions like these, the next three only about the task's own list of documents."""
_ORDERS: tuple[Verdict, ...] = ("better", "worse", "ahead on this list", "behind on this list")
"""Verdicts that put one run before the other."""


class Sensitivity(Struct, frozen=True):
    """The difference if documents without a score in a run got the worst score of the range there."""

    difference: float
    n: int
    """Documents that both runs have, paired or not. Documents of only one run were not asked in the other."""
    low: float | None = None
    """The least difference whatever these documents would score; ``None`` if the range lacks an end."""
    high: float | None = None
    """The greatest such difference."""


class Reruns(Struct, frozen=True):
    """Variation of a difference over these documents if the runs are made again, with the same questions."""

    error: float
    """Standard deviation of the difference between two runs of one model with the same requests; from the mean of both
    runs' variances if both are known."""
    half_width: float
    """95 % of such differences are smaller."""
    half_width_high: float | None = None
    """The same for the upper ends of the variances' 95 % intervals; ``None`` if they are not known."""
    is_beyond: bool | None = None
    """Whether the difference is larger than ``half_width_high``."""
    interval: Interval | None = None
    """95 % interval of the difference if both were run again on this list; ``None`` if ``no_interval`` states why."""
    no_interval: str = ""


class Pairing(Struct, frozen=True):
    """Counts of documents of a pair of runs."""

    paired: int
    """Documents with a number in both runs."""
    only_first: int = 0
    only_second: int = 0
    unscored: tuple[int, int] = (0, 0)
    failed: tuple[int, int] = (0, 0)
    """Documents that both runs have, without a number in the first and in the second run."""


class Difference(Struct, frozen=True):
    """A number of the first run minus that of the second, over the documents that both scored."""

    name: str
    """Task, group, or benchmark's number."""
    metric: str
    filter: str
    first: float
    second: float
    value: float
    """``first - second``, in the units of the scores."""
    interval: Interval | None
    """Interval of this difference alone; ``None`` if ``no_interval`` states why it is missing."""
    p: float | None
    """Two-sided p-value; ``None`` if no test is defined. It is about questions like these, whatever the interval is
    about."""
    pairing: Pairing
    unit: Literal["percent", ""] = ""
    """``percent``: scores from 0 to 1, shown in percentage points. The numbers here are not multiplied."""
    no_interval: str = ""
    test: str = ""
    """Name of the test, such as ``mcnemar exact`` or ``permutation``."""
    p_holm: float | None = None
    p_bh: float | None = None
    """p-values adjusted over the family of the comparison."""
    p_list: float | None = None
    """If a run stopped early: p of the hypothesis that the runs are equal over all documents of this list."""
    detectable: float | None = None
    """The smallest difference that these documents show with a power of 80 %; ``None`` if scores cannot differ by so
    much, or the spread of the differences is not known."""
    needed: int | None = None
    """Documents needed to show a difference of the observed size (or settle the margin) with a power of 80 %."""
    needed_least: int | None = None
    """The same for the greatest difference that the interval contains: fewer do not suffice, more may be needed."""
    verdict: Verdict = "cannot tell"
    sensitivity: Sensitivity | None = None
    reruns: Reruns | None = None
    """``None`` if neither run knows how its answers vary."""
    notes: tuple[str, ...] = ()
    higher_is_better: bool = True
    changed: tuple[int, int] | None = None
    """Number of documents that the first run answers better, and worse."""
    cell: str = ""
    """In a breakdown, the value of the metadata column."""
    estimand: Estimand | None = None
    """What the interval is about: the difference over this list of documents, or over documents like these; ``None``
    without an interval."""
    own_settings: bool = False
    """Whether the runs had different recipes, so that the verdict is about each model under its settings."""

    @property
    def shown_verdict(self) -> str:
        """The verdict in words: ``better under its settings`` if the runs had different recipes."""
        return f"{self.verdict} under its settings" if self.own_settings and self.verdict in _ORDERS else self.verdict


class PromptDifference(Struct, frozen=True):
    """The mean over prompts of a number of the first run minus that of the second (``--prompt_variants``)."""

    name: str
    """Task."""
    metric: str
    filter: str
    first: float
    second: float
    value: float
    """``first - second``, in the units of the scores."""
    prompts: Mapping[str, float]
    """The difference with each prompt."""
    these: Interval | None
    """Interval for these prompts and questions like these; ``None`` if ``no_these`` states why it is missing."""
    no_these: str
    p_these: float | None
    like_these: Interval | None
    """Interval for prompts like these and questions like these; ``None`` if ``no_like_these`` states why."""
    no_like_these: str
    p_like_these: float | None
    """Two-sided p-value for prompts like these; ``None`` with fewer than three prompts."""
    spread: float | None
    """Standard deviation of the differences with the prompts."""
    ahead: tuple[str, ...]
    """Prompts under which the first run is ahead."""
    behind: tuple[str, ...]
    """Prompts under which it is behind; under the others, both runs are equal."""
    n: int
    """Documents with a number in both runs under all prompts."""
    missing: int = 0
    """Documents that lack one of these numbers."""
    unit: Literal["percent", ""] = ""
    higher_is_better: bool = True
    is_mean: bool = True
    """Whether the task's own number is the mean over documents."""

    @property
    def ranking(self) -> str:
        """The sentence about the order of the runs under the prompts."""
        count = len(self.prompts)
        most = max(self.ahead, self.behind, key=len)
        if len(most) == count:
            return f"ranking holds under all {count} prompts"
        others = [name for name in self.prompts if name not in most]
        return f"first ahead under {len(self.ahead)} of {count} prompts; ranking changes under: {', '.join(others)}"


class PairComparison(Struct, frozen=True):
    """The differences of two runs."""

    first: str
    second: str
    rows: Sequence[Difference]
    """Tasks first, then groups and benchmarks' own numbers."""
    cells: Mapping[str, Sequence[Difference]] = field(default_factory=dict)
    """By metadata column: a row for each value and task, adjusted over all cells of the column."""
    prompts: Sequence[PromptDifference] = ()
    """Tasks that both runs were asked with the same variants of the prompt."""
    recipes: str = ""
    """A sentence about the recipes of the runs and what differs with them; empty with the same recipe, or none."""


class Rank(Struct, frozen=True):
    """The rank of a run, and the best and worst ranks that it may have, simultaneously for all runs."""

    run: str
    score: float
    rank: int
    best: int
    worst: int


class Comparison(Struct, frozen=True):
    """A comparison of two or more runs."""

    runs: Sequence[str]
    pairs: Sequence[PairComparison]
    margin: float | None
    """Differences below it do not matter, in the units of the scores."""
    ranks: Mapping[str, Sequence[Rank]] = field(default_factory=dict)
    """By row (``NAME METRIC,FILTER``), for three or more runs."""
    notes: tuple[str, ...] = ()
    alpha: float = 0.05
    """Error rate of verdicts over the whole family; intervals have the level ``1 - alpha``."""
