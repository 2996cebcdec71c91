"""The cells of a breakdown: a task's documents with one value of a column, their mean and its interval.

Every breakdown is made here, of a run's page, of ``lmms-eval show`` and in part of ``compare``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmms_eval.engine.headline import STRATA, place_in
from lmms_eval.results.columns import metadata_of
from lmms_eval.results.facts import EarlyStop, metric_range, part_of
from lmms_eval.results.run import Run, RunTask
from lmms_eval.results.sample import Sample
from lmms_eval.results.tables import interval_text
from lmms_eval.stats import ANY_NUMBER, MANY, Interval, NoInterval, Sampled, score_interval
from lmms_eval.stats.cells import CellMean, cell_means
from lmms_eval.utils.markdown import Column, escaped, markdown_table
from lmms_eval.utils.numbers import SHARES, ScoreRange

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

    Values = NDArray[float64]
    Codes = NDArray[intp]

MOST_VALUES = 40
"""A column with more values divides no documents."""
MOST_COLUMNS = 24
LONGEST = 60
"""Characters of a value; longer ones are texts, not classes."""
_FILE = re.compile(
    r"\.(?:avi|bmp|flac|gif|jpe?g|m4a|mkv|mov|mp3|mp4|ogg|png|svg|tiff?|wav|webm|webp)['\"\])]{0,2}$", re.IGNORECASE
)
_DIGITS = re.compile("([0-9]+)")
FEW = MANY
"""Documents (clusters, where there are any) below which a number is marked: from there on the interval rests on the
normal quantile, and holds what it promises also for scores of which a few lie far from the others
(``docs/statistics.md``)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The mean of a metric over the documents with one value of a column."""

    by: str
    """The column; empty for all documents."""
    value: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    method: str = ""
    """Name of the interval."""
    no_interval: str = ""
    """Reason for which there is none."""
    is_few: bool = True


@dataclass(frozen=True, slots=True)
class Division:
    """The values of a column, in natural order, and by document the place of its value among them."""

    column: str
    values: tuple[str, ...]
    codes: Codes
    """−1: the document has none."""

    @classmethod
    def of(cls, column: str, values: Sequence[str | None]) -> Division:
        import numpy as np

        names = tuple(sorted({value for value in values if value is not None}, key=natural))
        places = {name: place for place, name in enumerate(names)}
        codes = (-1 if value is None else places[value] for value in values)
        return cls(column, names, np.fromiter(codes, np.intp, len(values)))


def natural(text: str) -> tuple[float, list[tuple[str, int]]]:
    """Order values: numbers by their size, then texts, in which runs of digits count as numbers."""
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    pieces = _DIGITS.split(text)
    words = [(word, int(digits)) for word, digits in zip(pieces[::2], [*pieces[1::2], "-1"], strict=True)]
    return (number if number < math.inf else math.inf, words)


def divisions(metadata: Mapping[str, Sequence[str | None]]) -> list[Division]:
    """Divide documents by the columns with a few short values."""
    found: list[Division] = []
    for column, values in metadata.items():
        names = {value for value in values if value is not None}
        if divides(names) and len(found) < MOST_COLUMNS:
            found.append(Division.of(column, values))
    return found


def divides(names: Collection[str]) -> bool:
    """Tell whether documents can be divided by these values of a column: they are a few short ones, no media files."""
    are_few = 2 <= len(names) <= MOST_VALUES and max(map(len, names)) <= LONGEST
    return are_few and not any(map(_FILE.search, names))


@dataclass(frozen=True, slots=True)
class Asked:
    """The documents of a task that stopped early."""

    rows: Codes
    """Rows of the documents that count, in the random order in which they were asked."""
    of: int
    """Documents of the task."""

    @classmethod
    def find(cls, stop: EarlyStop, task: str, ids: Sequence[str]) -> Asked | NoInterval:
        """Put the documents of a task into the order of asking."""
        import numpy as np

        if stop.order.startswith(STRATA):
            return NoInterval("stopped early, over strata")
        try:
            places = [place_in(stop.order, task, one) for one in ids]
        except ValueError:
            return NoInterval("stopped early, order not known")
        rows = sorted(range(len(ids)), key=places.__getitem__)[: stop.asked]
        if len(rows) < stop.asked or stop.asked > stop.of:
            return NoInterval("stopped early, and not all samples are here")
        return cls(np.array(rows, dtype=np.intp), stop.of)


@dataclass(frozen=True, slots=True)
class Documents:
    """The numbers of a metric by document, with all that an interval of a part of them depends on."""

    scores: Values
    """NaN where a document has none."""
    within: ScoreRange
    """Range of the scores; ``ANY_NUMBER`` where none is known."""
    clusters: Codes | NoInterval | None = None
    """Of each document the number of its cluster, where the task has any; a reason where they are not known."""
    asked: Asked | NoInterval | None = None
    """Of a task that stopped early; a reason where the order of its documents is not known."""

    @classmethod
    def of(
        cls,
        scores: Sequence[float] | Values,
        stated: ScoreRange | None,
        clusters: Sequence[str | None] | None = None,
        asked: Asked | NoInterval | None = None,
    ) -> Documents:
        """Take the numbers of a metric.

        Args:
            scores: one for each document, NaN where it has none.
            stated: the range that the metric states. One that does not hold the scores is that of the whole task's
                number; where none is stated, scores of 0 and 1 alone are right or wrong.
            clusters: names, where the task has clusters; documents without one are one cluster.
            asked: the way through the documents, where the task stopped early.
        """
        import numpy as np

        values = np.asarray(scores, dtype=np.float64)
        return cls(values, _range(values, stated), None if clusters is None else _numbered(clusters), asked)


def _numbered(clusters: Sequence[str | None]) -> Codes | NoInterval:
    import numpy as np

    numbers: dict[str | None, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in clusters]
    return np.array(codes, dtype=np.intp) if {None} != set(numbers) else NoInterval("clusters not known")


def _range(values: Values, stated: ScoreRange | None) -> ScoreRange:
    import numpy as np

    known = values[np.isfinite(values)]
    if not len(known):
        return ANY_NUMBER
    if stated is not None:
        return stated if float(known.min()) in stated and float(known.max()) in stated else ANY_NUMBER
    return SHARES if bool(np.isin(known, (0.0, 1.0)).all()) else ANY_NUMBER


def whole_cell(documents: Documents) -> Cell:
    """Make the cell of all documents."""
    import numpy as np

    everything = Division("", ("",), np.zeros(len(documents.scores), dtype=np.intp))
    return cells(documents, everything)[0]


def cells(documents: Documents, division: Division) -> list[Cell]:
    """Make a cell for each value of a column, in its order.

    The interval is that of the project's rule (``docs/statistics.md``); of a task that stopped early it is the one that
    holds at every look, for the number of the cell over all documents of the task.
    """
    import numpy as np

    counts = np.isfinite(documents.scores)
    if isinstance(documents.asked, Asked):
        counts &= _marked(documents.asked.rows, len(counts))
    clusters = documents.clusters
    clusters = None if clusters is None or isinstance(clusters, NoInterval) else clusters[counts]
    means = cell_means(
        documents.scores[counts], division.codes[counts], len(division.values), documents.within, clusters
    )
    if documents.asked is None:
        intervals = [_interval(one, documents) for one in means]
    else:
        intervals = _sampled(documents, documents.asked, division)
    return [
        _cell(division.column, value, one, found, documents)
        for value, one, found in zip(division.values, means, intervals, strict=True)
    ]


def _marked(rows: Codes, count: int) -> NDArray[bool_]:
    import numpy as np

    marks = np.zeros(count, dtype=bool)
    marks[rows] = True
    return marks


def _cell(by: str, value: str, one: CellMean, found: Interval | NoInterval, documents: Documents) -> Cell:
    if not one.n:
        return Cell(by, value, 0, None, None, None, no_interval="n = 0")
    units = one.n if documents.asked is not None else one.spread.size
    if isinstance(found, NoInterval):
        return Cell(by, value, one.n, one.mean, None, None, no_interval=found.reason, is_few=units < FEW)
    return Cell(by, value, one.n, one.mean, found.low, found.high, method=found.method, is_few=units < FEW)


def _interval(one: CellMean, documents: Documents) -> Interval | NoInterval:
    if isinstance(documents.clusters, NoInterval):
        return documents.clusters
    if one.n > 1 and one.spread.size < 2:
        return NoInterval("one cluster")
    return score_interval(one.mean, one.spread, documents.within)


def _sampled(documents: Documents, asked: Asked | NoInterval, division: Division) -> list[Interval | NoInterval]:
    """Intervals that hold at whatever look a task stopped; clusters do no harm to them."""
    import numpy as np

    within, count = documents.within, len(division.values)
    width = within.high - within.low
    if isinstance(asked, NoInterval):
        return [asked] * count
    if not 0 < width < math.inf:
        return [NoInterval("stopped early, no range known")] * count
    from lmms_eval.stats.cells import sampled_cells

    scores, codes = documents.scores[asked.rows], division.codes[asked.rows]
    known = np.isfinite(scores)
    if count == 1 and not codes.any():  # all documents: their number is known, and the run stated this interval
        sampled = Sampled(asked.of, within)
        lows, highs = np.where(known, scores, within.low), np.where(known, scores, within.high)
        sampled.after_each(lows.tolist(), highs.tolist())
        return [sampled.interval()]
    shares = np.clip((scores - within.low) / width, 0.0, 1.0)
    lows, highs = np.where(known, shares, 0.0), np.where(known, shares, 1.0)
    ends = sampled_cells(lows, highs, codes, count, asked.of)
    return [
        Interval(within.low + width * float(low), within.low + width * float(high), "betting")
        for low, high in zip(*ends, strict=True)
    ]


_LONGEST = 60
_FEW_MARK = "few"
"""Mark of numbers that rest on few documents."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A metric of a task through one filter pipeline."""

    task: str
    metric: str
    filter: str
    cells: tuple[Cell, ...]
    """All documents first, then value by value of each column."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Samples by outcome, those without a number too."""
    note: str = ""


def breakdown(run: Run, task: RunTask, metric: str = "") -> Breakdown:
    """Divide a task's documents by every column of metadata with few values.

    The number of a part is the mean of its documents' scores, with the interval of the project's rule; scores of the
    first filter pipeline count.

    Args:
        run: the run.
        task: one of its tasks.
        metric: the metric; the task's first one if it is empty.

    Raises:
        DataError: a sample cannot be read.
    """
    outcomes: Counter[str] = Counter()
    rows = _Rows()
    pipeline: str | None = None
    for sample in task.samples():
        if sample.status != "failed":
            pipeline = sample.filter if pipeline is None else pipeline
            if sample.filter != pipeline:
                continue
        outcomes[sample.outcome] += 1
        metric = metric or _first_metric(sample)
        rows.add(sample, metric)
    documents = rows.documents(run, task, metric)
    found = [whole_cell(documents)]
    for division in divisions(metadata_of(len(rows.ids), enumerate(rows.fields))):
        found += cells(documents, division)
    note = _note(run, task.name, f"{metric},{pipeline}", found[0].mean)
    return Breakdown(task.name, metric, pipeline or "", tuple(found), dict(outcomes), note)


@dataclass(slots=True)
class _Rows:
    """The samples of a pipeline, as columns."""

    ids: list[str] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    clusters: list[str | None] = field(default_factory=list)
    fields: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, sample: Sample, metric: str) -> None:
        number = sample.number(metric) if sample.status == "scored" else None
        self.ids.append(sample.doc_id)
        self.numbers.append(math.nan if number is None else number)
        self.clusters.append(sample.cluster)
        self.fields.append(sample.fields)

    def documents(self, run: Run, task: RunTask, metric: str) -> Documents:
        return Documents.of(
            self.numbers,
            metric_range(run.facts, task.name, metric),
            None if task.keys.cluster_key is None else self.clusters,
            None if task.early_stop is None else Asked.find(task.early_stop, task.name, self.ids),
        )


def _first_metric(sample: Sample) -> str:
    names = sample.keys.metrics or tuple(sample.metrics)
    return next((name for name in names if sample.number(name) is not None), "")


def _note(run: Run, task: str, column: str, mean: float | None) -> str:
    """Say where the task's own number is none of the mean of its documents."""
    reported = part_of(run.document, "results", task).get(column)
    if not isinstance(reported, int | float) or mean is None:
        return ""
    if any(math.isclose(reported, scale * mean, rel_tol=1e-6, abs_tol=1e-9) for scale in (1, 100)):
        return ""
    return f"the task's own number is {reported:.4f}, which is no mean over documents; below stand means"


def breakdown_text(found: Breakdown) -> str:
    """Write a breakdown as Markdown: n and interval beside every number, few documents marked."""
    lines = [f"{escaped(found.task)}: {escaped(found.metric)}, {escaped(found.filter)}"]
    lines += ["outcomes: " + ", ".join(f"{count} {name}" for name, count in found.outcomes.items())]
    lines += [found.note] if found.note else []
    return "\n".join(lines) + "\n\n" + markdown_table(list(_columns(found.cells))).rstrip("\n")


def _columns(cells: Sequence[Cell]) -> Iterable[Column]:
    yield Column("By", tuple(escaped(cell.by[:_LONGEST]) for cell in cells), is_text=True)
    yield Column("Value", tuple(escaped(cell.value[:_LONGEST]) for cell in cells), is_text=True)
    yield Column("N", tuple(str(cell.n) for cell in cells))
    yield Column("Mean", tuple("" if cell.mean is None else f"{cell.mean:.4f}" for cell in cells))
    yield Column("CI95", tuple(interval_text(cell.low, cell.high, cell.no_interval) for cell in cells), is_text=True)
    yield Column("", tuple(_FEW_MARK if cell.is_few else "" for cell in cells), is_text=True)
