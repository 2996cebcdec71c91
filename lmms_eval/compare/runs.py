"""A run in the form that comparisons use, whatever its format: tasks of rows with id, scores, cluster and status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from lmms_eval.api.outcome import Status
from lmms_eval.results.facts import EarlyStop
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


class MetricColumn(Struct, frozen=True):
    """The numbers of one metric through one filter pipeline, one for each row of the task."""

    metric: str
    filter: str
    scores: NDArray[float64]
    """NaN for rows without a score: unscored, failed, or without this metric. All values are NaN if the metric's values
    are not numbers (entries of a submission, states that an aggregation joins)."""
    score_range: ScoreRange | None = None
    """``None`` if it is not stated."""
    higher_is_better: bool | None = None
    """``None`` if it is not stated; higher then counts as better."""
    reported: float | None = None
    """The task's number in the run's own results, if they are available."""
    scale: float = 1.0
    """``reported`` divided by the mean of the scores; 0 if it is not a multiple of the mean."""
    states_filter: bool = True
    """Whether the run names filter pipelines. If not, ``filter`` is ``none``, and any pipeline may be compared."""

    def __str__(self) -> str:
        return f"{self.metric},{self.filter}"


@dataclass(frozen=True, slots=True)
class DocumentTexts:
    """Texts of one document in a run, read from the file when needed."""

    text: str
    target: str
    prompt: str = ""


class TaskRows(Struct, frozen=True):
    """One task of a run. All sequences have one entry per row, in the order of the file."""

    task: str
    ids: Sequence[str]
    statuses: Sequence[Status]
    columns: Mapping[str, MetricColumn]
    """By ``METRIC,FILTER``."""
    hashes: Sequence[str | None] | None = None
    """SHA-256 of the documents, if the run has them."""
    clusters: Sequence[str | None] | None = None
    metadata: Callable[[], Mapping[str, Sequence[str | None]]] = field(default=dict)
    """Text columns that divide the documents, read when needed."""
    answer: Callable[[int], DocumentTexts | None] = field(default=lambda _: None)
    """The answer of a row, by index."""
    raw: Callable[[str, int], Any] = field(default=lambda _column, _row: None)
    """The value of a column (``METRIC,FILTER``) in a row, as the task returned it, for aggregations that need more than
    its number."""
    lines: Callable[[int], Sequence[Mapping[str, Any]]] = field(default=lambda _: ())
    """The lines of a samples file for a row, one per filter pipeline. Empty for runs of other formats."""
    early_stop: EarlyStop | None = None
    is_called_after_file: bool = False
    """Whether the task's name is only known from the file's name."""


class RunRows(Struct, frozen=True):
    """A run in the form that comparisons use."""

    name: str
    """Name in tables, unique among the runs of a comparison."""
    source: str
    """The named file or folder."""
    kind: str
    """The format: ``lmms_eval``, ``inspect_ai``, ..."""
    tasks: Mapping[str, TaskRows]
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Leaf tasks of each group that has a number in the run's results."""
    results: Mapping[str, Any] | None = None
    """The results document, for runs of this project."""
    notes: tuple[str, ...] = ()
    """Sentences about what the reader left out."""
