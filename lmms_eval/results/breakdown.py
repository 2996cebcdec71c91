"""Breakdowns of a metric: the mean and its interval over the documents that share a value of a column.

A run's page, ``lmms-eval show`` and ``lmms-eval compare`` use them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.config.rules import control_name
from lmms_eval.engine.headline import STRATA, place_in
from lmms_eval.engine.uncertainty import MissingBounds, filled_means, is_bounded
from lmms_eval.results.certainty import MissingInterval, NeedsMediaCell, NeedsMediaEntry, StatedInterval
from lmms_eval.results.columns import metadata_of
from lmms_eval.results.controls import document_scores
from lmms_eval.results.facts import EarlyStop, metric_range, part_of
from lmms_eval.results.run import Run, RunTask
from lmms_eval.results.sample import SampleClusters
from lmms_eval.results.tables import interval_text
from lmms_eval.stats import MANY, Interval, MeanSpread, NoInterval, Sampled, score_interval
from lmms_eval.stats.cells import cell_means
from lmms_eval.stats.interval import range_of_scores
from lmms_eval.utils.numbers import SHARES, ScoreRange
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.terminal import escaped, named_table

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

    from lmms_eval.engine.aggregate import TaskResult
    from lmms_eval.engine.store import RunStore

    Values = NDArray[float64]
    Codes = NDArray[intp]

MOST_VALUES = 40
"""Columns with more values do not divide documents."""
MOST_COLUMNS = 24
LONGEST = 60
"""Characters of a value. Longer values are texts, not classes."""
_FILE = re.compile(
    r"\.(?:avi|bmp|flac|gif|jpe?g|m4a|mkv|mov|mp3|mp4|ogg|png|svg|tiff?|wav|webm|webp)['\"\])]{0,2}$", re.IGNORECASE
)
_DIGITS = re.compile("([0-9]+)")
FEW = MANY
"""A number over fewer documents (or clusters, if the task has them) is marked. From this number on, the interval uses
the normal quantile and keeps its coverage even if a few scores lie far from the others (``docs/statistics.md``)."""


class Cell(Struct, frozen=True):
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
    """Why the cell has no interval."""
    is_few: bool = True
    missing: MissingBounds | None = None
    """What the interval would be with the documents without a score; ``None`` without any. Those whose value in
    the column is not known count in every cell."""

    def missing_text(self, scale: float = 1.0) -> str:
        """Return a text such as ``3 missing: 0.4100 to 0.6300``, with ``scale`` times the cell's numbers."""
        found = self.missing
        if found is None:
            return ""
        if found.low is None or found.high is None:
            return f"{found.n} missing: no bounds ({found.reason})"
        return f"{found.n} missing: {scale * found.low:.4f} to {scale * found.high:.4f}"


class Division(Struct, frozen=True):
    """A column's values in natural order, and the index of each document's value among them."""

    column: str
    values: tuple[str, ...]
    codes: Codes
    """−1 for documents without a value."""

    @classmethod
    def of(cls, column: str, values: Sequence[str | None]) -> Division:
        import numpy as np

        names = tuple(sorted({value for value in values if value is not None}, key=natural))
        places = {name: place for place, name in enumerate(names)}
        codes = (-1 if value is None else places[value] for value in values)
        return cls(column, names, np.fromiter(codes, np.intp, len(values)))


def natural(text: str) -> tuple[float, list[tuple[str, int]]]:
    """Return a sort key: numbers by size, then texts, where runs of digits compare as numbers."""
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    pieces = _DIGITS.split(text)
    words = [(word, int(digits)) for word, digits in zip(pieces[::2], [*pieces[1::2], "-1"], strict=True)]
    return (number if number < math.inf else math.inf, words)


def divisions(
    metadata: Mapping[str, Sequence[str | None]], scores: Sequence[Sequence[float] | Values] = ()
) -> list[Division]:
    """Divide documents by each column that has a few short values and does not repeat one of the ``scores``."""
    found: list[Division] = []
    for column, values in metadata.items():
        names = {value for value in values if value is not None}
        if divides(names) and len(found) < MOST_COLUMNS and not any(_repeats(values, one) for one in scores):
            found.append(Division.of(column, values))
    return found


_TRUTH: Mapping[str, float] = {"true": 1.0, "false": 0.0}


def _repeats(values: Sequence[str | None], scores: Sequence[float] | Values) -> bool:
    """Return whether a column holds the scores themselves, as numbers or truth values."""
    is_met = False
    for value, score in zip(values, scores, strict=True):
        if value is None or math.isnan(score):
            continue
        try:
            number = _TRUTH[value.lower()] if value.lower() in _TRUTH else float(value)
        except ValueError:
            return False
        if not math.isclose(number, score, abs_tol=1e-6):
            return False
        is_met = True
    return is_met


def divides(names: Collection[str]) -> bool:
    """Return whether a column with these values divides documents: a few short values, not names of media files."""
    are_few = 2 <= len(names) <= MOST_VALUES and max(map(len, names)) <= LONGEST
    return are_few and not any(map(_FILE.search, names))


class AskedDocuments(Struct, frozen=True):
    """The documents that count in a task that stopped early."""

    rows: Codes
    """Their rows, in the random order of the run."""
    of: int
    """Number of documents in the task."""

    @classmethod
    def find(cls, stop: EarlyStop, task: str, ids: Sequence[str]) -> AskedDocuments | NoInterval:
        """Sort a task's documents by the run's order, or explain why that is not possible."""
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


class MetricDocuments(Struct, frozen=True):
    """A metric's numbers by document, with everything that the interval of a part of them depends on."""

    scores: Values
    """NaN for documents without a number."""
    within: ScoreRange
    """Range of the scores; ``ANY_NUMBER`` if it is not known."""
    clusters: Codes | NoInterval | None = None
    """Index of each document's cluster, if the task has clusters; a reason if they are not known."""
    asked: AskedDocuments | NoInterval | None = None
    """For a task that stopped early; a reason if the order of its documents is not known."""
    missing: NDArray[bool_] | None = None
    """Marks the documents that failed or could not be scored; ``None`` without any."""

    @classmethod
    def of(
        cls,
        scores: Sequence[float] | Values,
        stated: ScoreRange | None,
        clusters: Sequence[str | None] | None = None,
        asked: AskedDocuments | NoInterval | None = None,
        missing: Sequence[bool] = (),
    ) -> MetricDocuments:
        """Collect the numbers of a metric.

        Args:
            scores: one for each document; NaN if it has none.
            stated: the range that the metric states. It is ignored if scores lie outside of it, since it is then the
                range of the whole task's number. Without a range, scores that are all 0 or 1 count as shares.
            clusters: cluster names, if the task has clusters. All documents without a name form one cluster.
            asked: the documents that count, if the task stopped early.
            missing: marks the documents that failed or could not be scored.
        """
        import numpy as np

        values = np.asarray(scores, dtype=np.float64)
        within = range_of_scores(values[np.isfinite(values)].tolist(), stated)
        lost = np.asarray(missing, dtype=bool) if any(missing) else None
        if clusters is None:
            return cls(values, within, None, asked, lost)
        numbers: dict[str | None, int] = {}
        codes = np.array([numbers.setdefault(name, len(numbers)) for name in clusters], dtype=np.intp)
        return cls(values, within, codes if {None} != set(numbers) else NoInterval("clusters not known"), asked, lost)


def whole_cell(documents: MetricDocuments) -> Cell:
    """Return the cell of all documents."""
    import numpy as np

    everything = Division("", ("",), np.zeros(len(documents.scores), dtype=np.intp))
    return cells(documents, everything)[0]


def cells(documents: MetricDocuments, division: Division) -> list[Cell]:
    """Return a cell for each value of a column, in the column's order.

    Intervals follow the project's rule (``docs/statistics.md``). If the task stopped early, the interval holds at every
    look and is for the cell's number over all documents of the task.
    """
    import numpy as np

    counts = np.isfinite(documents.scores)
    if isinstance(documents.asked, AskedDocuments):
        counts &= np.isin(np.arange(len(counts)), documents.asked.rows)
    clusters = documents.clusters
    clusters = None if clusters is None or isinstance(clusters, NoInterval) else clusters[counts]
    means = cell_means(
        documents.scores[counts], division.codes[counts], len(division.values), documents.within, clusters
    )
    intervals = _sampled(documents, division)
    lost = _missing_in(documents, division)
    found = []
    for number, (value, (n, mean, spread)) in enumerate(zip(division.values, means, strict=True)):
        if not n:
            unknown = MissingBounds(lost[number], reason="n = 0") if lost[number] else None
            found.append(Cell(division.column, value, 0, None, None, None, no_interval="n = 0", missing=unknown))
            continue
        interval: Interval | NoInterval
        if intervals is not None:
            interval = intervals[number]
        elif isinstance(documents.clusters, NoInterval):
            interval = documents.clusters
        elif n > 1 and spread.size < 2:
            interval = NoInterval("one cluster")
        else:
            interval = score_interval(mean, spread, documents.within)
        is_few = (n if documents.asked is not None else spread.size) < FEW
        if isinstance(interval, NoInterval):
            cell = Cell(division.column, value, n, mean, None, None, "", interval.reason, is_few)
        else:
            low, high, method = interval.low, interval.high, interval.method
            cell = Cell(division.column, value, n, mean, low, high, method, is_few=is_few)
        if lost[number]:
            inside = division.codes == number
            scores = documents.scores[counts & inside].tolist()
            cell = replace(cell, missing=_bounds(cell, lost[number], documents, (scores, spread)))
        found.append(cell)
    return found


def _missing_in(documents: MetricDocuments, division: Division) -> list[int]:
    """Count, for each cell, the documents without a score that belong to it or may belong to it."""
    import numpy as np

    if documents.missing is None:
        return [0] * len(division.values)
    lost = documents.missing & ~np.isfinite(documents.scores)
    if isinstance(documents.asked, AskedDocuments):
        lost &= np.isin(np.arange(len(lost)), documents.asked.rows)
    codes = division.codes[lost]
    unknown = int((codes < 0).sum())
    return [int((codes == number).sum()) + unknown for number in range(len(division.values))]


def _bounds(
    cell: Cell, missing: int, documents: MetricDocuments, known: tuple[Sequence[float], MeanSpread]
) -> MissingBounds:
    """Return the bounds of a cell whatever its missing documents would score.

    Of a task that stopped early, the interval of all documents has taken them into account. That of a part lacks those
    whose part is not known.
    """
    scores, spread = known
    if cell.no_interval:
        return MissingBounds(missing, reason=cell.no_interval)
    if documents.asked is not None:
        if cell.by:
            return MissingBounds(missing, reason="stopped early")
        return MissingBounds(missing, cell.low, cell.high)
    if not is_bounded(scores, documents.within):
        return MissingBounds(missing, reason="no range with two ends")
    ends = filled_means(scores, missing, documents.within, spread)
    return MissingBounds.of(missing, ends, documents.within)


def _sampled(documents: MetricDocuments, division: Division) -> Sequence[Interval | NoInterval] | None:
    """Return intervals that hold at whatever look a task stopped; ``None`` if it did not stop early.

    Clusters do not affect them.
    """
    import numpy as np

    asked, within, count = documents.asked, documents.within, len(division.values)
    width = within.high - within.low
    if asked is None:
        return None
    if isinstance(asked, NoInterval):
        return [asked] * count
    if not 0 < width < math.inf:
        return [NoInterval("stopped early, no range known")] * count
    from lmms_eval.stats.cells import sampled_cells

    scores, codes = documents.scores[asked.rows], division.codes[asked.rows]
    known = np.isfinite(scores)
    if count == 1 and not codes.any():  # all documents: the run reported the same interval
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


class BlindAnswers(Struct, frozen=True):
    """The part of a score that needs no media, from the controls of the run (``--ablate``)."""

    controls: tuple[str, ...]
    """The controls without media that count; each has a number for every document that counts here."""
    explained: tuple[Cell, ...]
    """Of the documents that the run answers, the share that a control answers too; cells as in ``Breakdown``."""
    rest: tuple[Cell, ...]
    """The score over the documents that no control answers; cells as in ``Breakdown``."""
    documents: tuple[str, ...]
    """Ids of the documents that the run and a control answer."""

    @classmethod
    def of(
        cls, ids: Sequence[str], plain: MetricDocuments, controls: Mapping[str, Sequence[float]], by: Sequence[Division]
    ) -> BlindAnswers | None:
        """Compare the numbers of documents with those of the controls that show no media.

        A document counts as answered if its score is the greatest of the range. ``None`` if there is no such control,
        if the range has no greatest score, or if the task stopped early.
        """
        import numpy as np

        controls = {name: controls[name] for name in BLIND if name in controls}
        if not controls or not math.isfinite(plain.within.high) or plain.asked is not None:
            return None
        blind = np.array(list(controls.values()), dtype=np.float64)
        counts = np.isfinite(plain.scores) & np.isfinite(blind).all(axis=0)
        right, right_blind = plain.scores >= plain.within.high, (blind >= plain.within.high).any(axis=0)
        explained = replace(plain, scores=np.where(counts & right, right_blind * 1.0, np.nan), within=SHARES)
        rest = replace(plain, scores=np.where(counts & ~right_blind, plain.scores, np.nan))
        both = np.flatnonzero(counts & right & right_blind).tolist()
        documents = tuple(ids[row] for row in both)
        return cls(tuple(controls), tuple(_cells(explained, by)), tuple(_cells(rest, by)), documents)


BLIND = ("no-media", "blank-media", "choices-only")
"""Controls that show no content of the media."""
BLIND_REST = (
    "the documents that no run without the media answers; their score is a lower bound for the documents that need the "
    "media, if those that such a run answers by chance are not the harder ones"
)


class Breakdown(Struct, frozen=True):
    """A task's metric through one filter pipeline, by the values of each column."""

    task: str
    metric: str
    filter: str
    cells: tuple[Cell, ...]
    """The cell of all documents, then the cells of each column."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Number of samples by outcome, including those without a number."""
    note: str = ""
    blind: BlindAnswers | None = None
    """For a task that the run also asked without its media."""


def breakdown(run: Run, task: RunTask, metric: str = "") -> Breakdown:
    """Divide a task's documents by every metadata column that has few values; by default for its first metric.

    The number of a part is the mean score of its documents through the first filter pipeline. Raises ``DataError`` if
    a sample cannot be read.
    """
    rows = _Rows.read(task, metric)
    documents = rows.documents(run, task, rows.numbers, rows.missing)
    divided = divisions(metadata_of(len(rows.ids), enumerate(rows.fields)), [rows.numbers])
    found = _cells(documents, divided)
    note, mean = "", found[0].mean
    reported = part_of(run.document, "results", task.name).get(f"{rows.metric},{rows.pipeline}")
    if isinstance(reported, int | float) and mean is not None:
        is_mean = any(math.isclose(reported, scale * mean, rel_tol=1e-6, abs_tol=1e-9) for scale in (1, 100))
        text = f"the task's own number is {reported:.4f}, which is not a mean over documents; the table shows means"
        note = "" if is_mean else text
    blind = _blind_answers(run, task, rows, (documents, divided))
    return Breakdown(task.name, rows.metric, rows.pipeline or "", tuple(found), dict(rows.outcomes), note, blind)


def _cells(documents: MetricDocuments, divided: Sequence[Division]) -> list[Cell]:
    """Return the cell of all documents, then those of each column."""
    return [whole_cell(documents), *(cell for division in divided for cell in cells(documents, division))]


class _Rows(Struct, frozen=True):
    """The samples of a task, through its first filter pipeline."""

    metric: str
    pipeline: str | None
    ids: Sequence[str]
    numbers: Sequence[float]
    """NaN for samples without a number."""
    clusters: Sequence[str | None] | None
    """``None`` if documents are independent."""
    fields: Sequence[Mapping[str, Any]]
    outcomes: Mapping[str, int]
    missing: Sequence[bool]
    """Marks the samples that failed or could not be scored."""

    @classmethod
    def read(cls, task: RunTask, metric: str) -> _Rows:
        """Read the samples. Without a name, the first metric counts. Raises ``DataError`` for an unreadable sample."""
        outcomes: Counter[str] = Counter()
        ids: list[str] = []
        numbers: list[float] = []
        missing: list[bool] = []
        clusters = SampleClusters(task.keys)
        fields: list[Mapping[str, Any]] = []
        pipeline: str | None = None
        for sample in task.samples():
            if sample.status != "failed":
                pipeline = sample.filter if pipeline is None else pipeline
                if sample.filter != pipeline:
                    continue
            outcomes[sample.outcome] += 1
            named = (name for name in sample.keys.metrics or sample.metrics if sample.number(name) is not None)
            metric = metric or next(named, "")
            number = sample.number(metric) if sample.status == "scored" else None
            numbers.append(math.nan if number is None else number)
            missing.append(sample.status != "scored")
            if sample.status == "scored" or not task.keys.finds_clusters:
                clusters.add(len(ids), sample.record)
            ids.append(sample.doc_id)
            fields.append(sample.fields)
        return cls(metric, pipeline, ids, numbers, clusters.of(range(len(ids))), fields, outcomes, missing)

    def documents(
        self, run: Run, task: RunTask, scores: Sequence[float] | Values, missing: Sequence[bool] = ()
    ) -> MetricDocuments:
        """Return numbers of the documents with the task's range, clusters and early stop."""
        return MetricDocuments.of(
            scores,
            metric_range(run.facts, task.name, self.metric),
            self.clusters,
            None if task.early_stop is None else AskedDocuments.find(task.early_stop, task.name, self.ids),
            missing,
        )


def _lower_is_better(run: Run, task: RunTask, metric: str) -> bool:
    return part_of(part_of(run.facts, "higher_is_better"), task.name).get(metric) is False


def _blind_answers(
    run: Run, task: RunTask, rows: _Rows, division: tuple[MetricDocuments, Sequence[Division]]
) -> BlindAnswers | None:
    """Compare a task's answers with those of its controls; ``None`` also if a lower score is better."""
    if _lower_is_better(run, task, rows.metric):
        return None
    controls = {}
    for name in BLIND:
        if (control := run.tasks.get(control_name(task.name, name))) is not None:
            read = _Rows.read(control, rows.metric)
            known = dict(zip(read.ids, read.numbers, strict=True))
            controls[name] = [known.get(one, math.nan) for one in rows.ids]
    return BlindAnswers.of(rows.ids, division[0], controls, division[1])


def needs_media(results: Sequence[TaskResult], store: RunStore) -> dict[str, dict[str, Any]]:
    """Return the part ``needs_media`` of the results document, by task and ``METRIC,FILTER``.

    Tasks without controls that show no media, and tasks that stopped early, are left out.
    """
    by_name = {result.task.name: result for result in results}
    found = {}
    for name, plain in by_name.items():
        controls = {one: by_name[control] for one in BLIND if (control := control_name(name, one)) in by_name}
        if controls and plain.early_stop is None and (rows := _blind_rows(plain, controls, store)):
            found[name] = rows
    return found


def _blind_rows(plain: TaskResult, controls: Mapping[str, TaskResult], store: RunStore) -> dict[str, Any]:
    """Compare the scores of a finished task with those of its controls, by row; not if less is better."""
    less_is_better = {metric.name for metric in plain.task.metrics if metric.higher_is_better is False}
    columns = {name: document_scores(control, store) for name, control in controls.items()}
    records = list(store.scores(plain.task.name, plain.doc_ids))
    ids = [record["doc_id"] for record in records]
    divided = divisions(metadata_of(len(ids), enumerate(record.get("doc") or {} for record in records)))
    made = {}
    for row, own in document_scores(plain, store).items():
        documents = MetricDocuments.of(
            [own.by_document.get(one, math.nan) for one in ids], own.metric.certainty.score_range, own.named(ids)
        )
        known = {name: found[row].by_document for name, found in columns.items() if row in found}
        numbers = {name: [scores.get(one, math.nan) for one in ids] for name, scores in known.items()}
        blind = BlindAnswers.of(list(map(str, ids)), documents, numbers, divided)
        if blind is not None and row.metric not in less_is_better:
            made[str(row)] = _blind_entry(blind)
    return made


def _blind_entry(found: BlindAnswers) -> dict[str, Any]:
    """Return what the controls without media answer, as it is written."""
    cells = [
        NeedsMediaCell(
            by=explained.by,
            value=explained.value,
            answered=explained.n,
            explained=explained.mean,
            explained_interval=_cell_interval(explained),
            rest=rest.n,
            rest_score=rest.mean,
            rest_interval=_cell_interval(rest),
        )
        for explained, rest in zip(found.explained, found.rest, strict=True)
    ]
    entry = NeedsMediaEntry(
        controls=list(found.controls), cells=cells, documents=list(found.documents), about_rest=BLIND_REST
    )
    return to_dict(entry)


def _cell_interval(cell: Cell) -> dict[str, Any]:
    if cell.low is None or cell.high is None:
        return to_dict(MissingInterval(low=None, high=None, reason=cell.no_interval))
    interval = Interval(cell.low, cell.high, cell.method)
    return to_dict(StatedInterval(low=cell.low, high=cell.high, method=cell.method, estimand=interval.estimand))


MISSING = (
    "without a score: how many documents, and the bounds of CI95 whatever they would score; one whose value is not "
    "known counts in every part of that column"
)


def breakdown_text(found: Breakdown) -> str:
    """Format a breakdown as Markdown, with n and interval for every number and a mark for few documents."""
    lines = [f"{escaped(found.task)}: {escaped(found.metric)}, {escaped(found.filter)}"]
    lines += ["outcomes: " + ", ".join(f"{count} {name}" for name, count in found.outcomes.items())]
    lines += [found.note] if found.note else []
    intervals = (interval_text(cell.low, cell.high, cell.no_interval) for cell in found.cells)
    columns = {
        "By": [escaped(cell.by[:LONGEST]) for cell in found.cells],
        "Value": [escaped(cell.value[:LONGEST]) for cell in found.cells],
        "N": [str(cell.n) for cell in found.cells],
        "Mean": ["" if cell.mean is None else f"{cell.mean:.4f}" for cell in found.cells],
        "CI95": intervals,
        "": ["few" if cell.is_few else "" for cell in found.cells],
    }
    bounds = [cell.missing_text() for cell in found.cells]
    if any(bounds):
        columns["Without a score"] = bounds
    text = "\n".join(lines) + "\n\n" + named_table(columns, ("N", "Mean")).rstrip("\n")
    if any(bounds):
        text += f"\n{MISSING}"
    return text if found.blind is None else f"{text}\n\n{_blind_text(found.blind)}"


def _blind_text(found: BlindAnswers) -> str:
    """Format what the controls without media answer, with the caveat of the numbers."""
    pairs = list(zip(found.explained, found.rest, strict=True))
    columns = {
        "By": [escaped(cell.by[:LONGEST]) for cell, _ in pairs],
        "Value": [escaped(cell.value[:LONGEST]) for cell, _ in pairs],
        "Answered": [str(cell.n) for cell, _ in pairs],
        "Explained": ["" if cell.mean is None else f"{cell.mean:.4f}" for cell, _ in pairs],
        "CI95": [interval_text(cell.low, cell.high, cell.no_interval) for cell, _ in pairs],
        "Rest": [str(cell.n) for _, cell in pairs],
        "Score of the rest": ["" if cell.mean is None else f"{cell.mean:.4f}" for _, cell in pairs],
        "CI95 of the rest": [interval_text(cell.low, cell.high, cell.no_interval) for _, cell in pairs],
    }
    table = named_table(columns, ("Answered", "Explained", "Rest", "Score of the rest")).rstrip("\n")
    return (
        f"without the media ({', '.join(found.controls)})\n\n{table}\n"
        "Explained: of the documents that the run answers, the share that a run without the media answers too\n"
        f"Rest: {BLIND_REST}"
    )
