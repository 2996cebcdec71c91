"""A run as comparisons see it, whoever wrote it: named tasks of rows with an id, scores, a cluster and a status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmms_eval.api.outcome import Status
from lmms_eval.results.facts import EarlyStop
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Column:
    """The numbers of one metric through one filter pipeline, one for each row of the task."""

    metric: str
    filter: str
    scores: NDArray[float64]
    """NaN where the row has none: unscored, failed, or the metric is absent from it; in all rows where the metric's
    values are no numbers (what a task writes into a submission, states that its aggregation joins)."""
    score_range: ScoreRange | None = None
    """``None``: not stated."""
    higher_is_better: bool | None = None
    """``None``: not stated; higher is then taken for better."""
    reported: float | None = None
    """The number of the whole task in the run's own results, where they are at hand."""
    scale: float = 1.0
    """``reported`` is so many times the mean of the scores; 0: it is no such mean."""
    states_filter: bool = True
    """False: the run names no filter pipelines (``filter`` is then ``none``), so it may be compared with any."""

    def __str__(self) -> str:
        return f"{self.metric},{self.filter}"


@dataclass(frozen=True, slots=True)
class Answer:
    """Texts that a run holds of one document beside its scores; read from the file when they are asked for."""

    text: str
    target: str
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class TaskRows:
    """One task of a run. All sequences have one entry for each row, in the order of the file."""

    task: str
    ids: Sequence[str]
    statuses: Sequence[Status]
    columns: Mapping[str, Column]
    """By ``METRIC,FILTER``."""
    hashes: Sequence[str | None] | None = None
    """SHA-256 of the documents, where the run carries them."""
    clusters: Sequence[str | None] | None = None
    metadata: Callable[[], Mapping[str, Sequence[str | None]]] = field(default=dict)
    """Columns of text by which the documents can be divided; read when they are asked for."""
    answer: Callable[[int], Answer | None] = field(default=lambda _: None)
    """The answer of the row of that number."""
    raw: Callable[[str, int], Any] = field(default=lambda _column, _row: None)
    """The value of a column (``METRIC,FILTER``) in that row as the task gave it, for aggregations that need more than
    its number."""
    lines: Callable[[int], Sequence[Mapping[str, Any]]] = field(default=lambda _: ())
    """All that a run of ours or of the family holds of the row of that number, as lines of a samples file: one for each
    filter pipeline. Empty where a run is of another format."""
    early_stop: EarlyStop | None = None
    is_called_after_file: bool = False
    """Nothing but the name of the file says which task it is."""


@dataclass(frozen=True, slots=True)
class RunRows:
    """A run."""

    name: str
    """How tables call it: unique among the runs of a comparison."""
    source: str
    """The file or folder that was named."""
    kind: str
    """The format that was found: ``lmms_eval``, ``inspect_ai``, ..."""
    tasks: Mapping[str, TaskRows]
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Leaf tasks by group that has a number of its own, where the run's results say so."""
    results: Mapping[str, Any] | None = None
    """The results document of a run of ours."""
    notes: tuple[str, ...] = ()
    """Sentences about what was left out while reading."""
