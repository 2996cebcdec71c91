"""The samples of a task: chooses and audits them, and builds the columns of their index and their texts in pieces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.readers.samples import answer_of
from lmms_eval.compare.runs import MetricColumn, TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.audit import CHOSEN, Auditor
from lmms_eval.results.columns import MetadataColumns, column_names
from lmms_eval.results.facts import is_count
from lmms_eval.results.reading import PREFIX, columns_of
from lmms_eval.results.sample import Sample, SampleKeys, Tokens, finite, sample_fields, token_counts_of
from lmms_eval.utils.numbers import SHARES
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.redaction import REDACTED
from lmms_eval.utils.where import Where
from lmms_eval.viewer.chunks import Chunks, IndexColumn, Kind, TaskIndex, plain_number
from lmms_eval.viewer.masks import Shape, has_masks, masks_of, shapes_of, without_runs
from lmms_eval.viewer.media import Item, MediaMaker, MediaStore, made_in, media_of
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.runs import ReportRun


class TaskAudit:
    """Audits the answers of one task while its samples are read, without the values of the keys in ``redact``."""

    def __init__(self, auditor: Auditor, keys: SampleKeys, redact: frozenset[str]) -> None:
        self.auditor, self.keys, self.redact = auditor, keys, redact
        self._columns: dict[tuple[str, str], dict[int, str]] = {}
        """Values of rows, by pipeline and name of the column."""

    def count(self, row: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Count the lines of a row, one for each filter pipeline."""
        for line in lines:
            sample = Sample(self.auditor.task, _without(line, self.redact), self.keys)
            reading = self.auditor.see(sample)
            for name, value in (columns_of(sample, reading) if reading else {}).items():
                self._columns.setdefault((sample.filter, name), {})[row] = value

    def columns(self, rows: Sequence[int]) -> dict[str, list[str | None]]:
        """Return the columns of rows. With several pipelines, each name ends in ``,PIPELINE``."""
        is_one = len({pipeline for pipeline, _ in self._columns}) < 2
        return {
            name if is_one else f"{name},{pipeline}": [values.get(row) for row in rows]
            for (pipeline, name), values in self._columns.items()
            if set(values.values()) != {"not told"}  # the kind of a task that reports no readings
        }

    def found(self) -> list[dict[str, Any]]:
        """Return the counts of each pipeline, in the form that a page reads."""
        audits = self.auditor.audits()
        return [
            to_dict(one)
            | {"rules": {name: one.frequent(name) for name in one.rules}, "prefix": PREFIX}
            | {"ending": f",{one.filter}" if len(audits) > 1 else ""}
            for one in audits
        ]


def _without(value: Any, keys: frozenset[str]) -> Any:
    if not keys:
        return value
    if isinstance(value, Mapping):
        return {key: _without(item, keys) for key, item in value.items() if str(key) not in keys}
    return [_without(item, keys) for item in value] if isinstance(value, list) else value


_LONGEST = 300
"""Most characters of an option that a page repeats."""


def lines_of(task: TaskRows, row: int) -> list[Mapping[str, Any]]:
    """Read the lines of a sample. A run of another format has one, which is converted to our format.

    Raises ``DataError`` if the sample cannot be read.
    """
    found = list(task.lines(row))
    if found:
        return found
    answer = task.answer(row)
    line: dict[str, Any] = {"doc_id": task.ids[row], "status": task.statuses[row]}
    if answer is not None:
        line |= {"filtered_resps": answer.text, "target": answer.target, "input": answer.prompt}
    numbers = {column.metric: column.scores[row].item() for column in task.columns.values()}
    doc = {name: values[row] for name, values in task.metadata().items() if values[row] is not None}
    line |= {"doc": doc} if doc else {}
    return [line | {metric: number for metric, number in numbers.items() if not math.isnan(number)}]


def samples_of(run: ReportRun, task: TaskRows, row: int) -> Iterator[Sample]:
    """Read a sample through each of its filter pipelines. Raises ``DataError``."""
    keys = run.keys(task.task)
    for line in lines_of(task, row):
        yield Sample(task.task, line, keys)


def check_columns(runs: Sequence[ReportRun], where: Where | None) -> tuple[ReportRun, ...]:
    """Check that the columns of an expression exist. A run that lacks one gets a problem.

    Raises ``WhereError`` if no run has a column.
    """
    if where is None:
        return tuple(runs)
    known = [_known(run, set(where.columns)) for run in runs]
    where.check(set[str]().union(*known))
    return tuple(
        replace(run, problems=(*run.problems, f"--where: no sample here has {', '.join(map(repr, missing))}"))
        if (missing := [name for name in where.columns if name not in names])
        else run
        for run, names in zip(runs, known, strict=True)
    )


def _known(run: ReportRun, wanted: set[str]) -> set[str]:
    """Collect names of columns until all wanted ones are found."""
    known: set[str] = set()
    for task in run.rows.tasks.values():
        for row in range(len(task.ids)):
            try:
                known |= set[str]().union(*map(column_names, samples_of(run, task, row)))
            except DataError:
                continue  # the writer of the samples reports it
            if wanted <= known:
                return known
    return known


def choosing_options(options: ReportOptions) -> list[str]:
    """Return the options that choose samples, as on the command line. The list is empty if all samples are shown."""
    choice = options.choice
    return [
        *(["--only failed"] if options.only_failed else []),
        *([f"--ids {str(choice.ids)[:_LONGEST]}"] if choice.ids is not None else []),
        *([f"--where {choice.where.text[:_LONGEST]}"] if choice.where is not None else []),
        *([f"--limit {options.limit}"] if options.limit is not None else []),
    ]


PER_TEXT = 200
"""Samples in a piece of texts."""
ANSWER, TARGET, ERROR = 80, 48, 160
"""Most characters of answer, reference and error in the index."""
_KINDS: Mapping[str, Kind] = {
    "id": "texts",
    "status": "codes",
    "finish": "codes",
    "latency": "numbers",
    "in": "numbers",
    "out": "numbers",
    "answer": "texts",
    "target": "texts",
    "thumb": "texts",
    "reason": "texts",
}
"""Columns that every index has. ``thumb`` is the address of a thumbnail."""
VERDICTS = ("correct", "wrong", "partly", "unscored", "failed")
"""What a page says about a sample. The first three compare its score with the best and the worst score of the metric.
Without known ends (``ends_of``), a sample with a score has no verdict."""
_SLACK = 1e-9


class IndexedTask(Struct, frozen=True):
    """Values of the index for breakdowns and histograms, one for each sample that is shown."""

    rows: Sequence[int]
    """Rows of the samples in the task."""
    latencies: Sequence[float | None]
    tokens_in: Sequence[int | None]
    tokens_out: Sequence[int | None]
    finish: Sequence[str]
    reasons: Sequence[str]
    metadata: Mapping[str, Sequence[str | None]]
    audits: Sequence[Mapping[str, Any]] = ()
    is_chosen: bool = False
    """True if an expression has chosen the samples, perhaps by their scores."""


_SampleMedia = tuple[Sequence[Future[Item]], Mapping[str, Future[Item]], Future[list[Shape]] | None]
"""The media of a sample that were sent to the model, those that it made, and the masks over them."""


class TaskWriter:
    """Writes the pieces of one task: its index and ``text-KEY-N``. ``add`` takes rows one by one."""

    def __init__(self, run: ReportRun, task: TaskRows, key: str, options: ReportOptions, media: MediaMaker) -> None:
        self.run, self.task, self.key, self.options, self.media = run, task, key, options, media
        self.problems: list[str] = []
        self.verdicts: Mapping[str, int] = {}
        """Number of samples by verdict of the first metric, and without a score, after ``columns``."""
        self._score_key = run.keys(task.task).score_key
        self._index: dict[str, list[Any]] = {name: [] for name in _KINDS}
        self._masks: dict[int, str] = {}
        """Addresses of the masks over a thumbnail, with spaces between them, by place."""
        self._metadata = MetadataColumns()
        self._audit = self._new_audit()

    def write(self, chunks: Chunks) -> IndexedTask:
        """Write all pieces. Raises ``LmmsEvalError`` if a file cannot be written."""
        rows = list(islice(filter(self._is_chosen, range(len(self.task.ids))), self.options.limit))
        remaining = iter(enumerate(rows))
        for number in range(-(-len(rows) // PER_TEXT)):
            block = [(place, row, self._lines(row, self._audited(row))) for place, row in islice(remaining, PER_TEXT)]
            media = [self._media(lines, self.media) for _, _, lines in block]
            for (place, row, lines), (sent, _, masks) in zip(block, media, strict=True):
                shapes = masks.result() if masks and not self.options.single_file else []
                self._add_entry(place, row, lines, [future.result() for future in sent], shapes)
            samples = [self._sample(row, lines, *found) for (_, row, lines), found in zip(block, media, strict=True)]
            chunks.write(f"text-{self.key}-{number}", samples)
        for name, content in TaskIndex(self.columns(rows)).pieces(self.key):
            chunks.write(name, content)
        return self.facts(rows)

    def _is_chosen(self, row: int) -> bool:
        if self.options.only_failed and self.task.statuses[row] != "failed":
            return False
        choice = self.options.choice
        if choice.where is None:
            return choice.ids is None or choice.takes(Sample(self.task.task, {"doc_id": self.task.ids[row]}))
        try:
            return any(choice.takes(sample) for sample in samples_of(self.run, self.task, row))
        except DataError as error:
            self.problems.append(str(error))
            return False

    def add(self, row: int, read: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Add the next row to the index, or replace one. ``read``: its lines, if they have been read already.

        If the replaced row had an answer, the audit counts both. ``audit_again`` corrects that.
        """
        found = self._audited(row, read)
        lines = [redacted(line, self.options.redact) for line in found]
        sent, _, _ = self._media(lines, self.media)
        self._add_entry(row, row, lines, [future.result() for future in sent])

    def audit_again(self) -> None:
        """Repeat the audit of all added rows."""
        self._audit = self._new_audit()
        for row in range(len(self._index["id"])):
            self._audited(row)

    def facts(self, rows: Sequence[int], without_interval: str = "") -> IndexedTask:
        """Return the facts of the added rows.

        ``without_interval``: the reason why differences of the audit have no interval.
        """
        columns = self._index
        if without_interval or self.options.choice.where is None:
            self._audit.auditor.without_interval = without_interval
        return IndexedTask(
            rows, columns["latency"], columns["in"], columns["out"], columns["finish"], columns["reason"],
            self._metadata.found(), self._audit.found(), self.options.choice.where is not None,
        )  # fmt: skip

    def cells(self, row: int) -> dict[str, Any]:
        """Return what the index has of an added row."""
        return {name: values[row] for name, values in self._index.items()}

    def texts(self, row: int) -> dict[str, Any]:
        """Return a sample without its media."""
        lines = self._lines(row)
        has_media = bool(media_of(lines[0]) or made_in(lines[0]))
        return {"id": self.task.ids[row], "lines": lines, **({"media_apart": True} if has_media else {})}

    def media_apart(self, row: int, maker: MediaMaker) -> dict[str, Any]:
        """Return the media of a sample alone."""
        lines = self._lines(row)
        sample = self._sample(row, lines, *self._media(lines, maker))
        return {key: value for key, value in sample.items() if key not in ("id", "lines")}

    def _new_audit(self) -> TaskAudit:
        reason = CHOSEN if self.options.choice.where is not None else ""
        auditor = Auditor(self.task.task, self.run.stated, reason)
        return TaskAudit(auditor, self.run.keys(self.task.task), self.options.redact)

    def _audited(self, row: int, read: Sequence[Mapping[str, Any]] | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the lines of a sample, and count them in the audit."""
        try:
            lines = lines_of(self.task, row) if read is None else read
            self._audit.count(row, lines)
        except DataError as error:
            self.problems.append(str(error))
            return [{"doc_id": self.task.ids[row], "error": str(error)}]
        return lines

    def _lines(self, row: int, read: Sequence[Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
        """Return the lines of a sample, with the judge's prompts and without redacted values."""
        try:
            lines = lines_of(self.task, row) if read is None else read
        except DataError as error:
            lines = [{"doc_id": self.task.ids[row], "error": str(error)}]
        return [redacted(self.run.prompts.joined(line), self.options.redact) for line in lines]

    def _media(self, lines: Sequence[Mapping[str, Any]], maker: MediaMaker) -> _SampleMedia:
        line, places = lines[0], self.run.places
        sent = [maker.add(one, places) for one in media_of(line)]
        made = {name: maker.add(one, places) for name, one in made_in(line).items()}
        if isinstance(maker, MediaStore) and has_masks(line):
            return sent, made, maker.draw(partial(masks_of, line, maker, places))
        return sent, made, None

    def _sample(
        self,
        row: int,
        lines: Sequence[Mapping[str, Any]],
        sent: Sequence[Future[Item]],
        made: Mapping[str, Future[Item]],
        masks: Future[list[Shape]] | None,
    ) -> dict[str, Any]:
        sample: dict[str, Any] = {"id": self.task.ids[row], "lines": lines}
        if sent:
            sample["media"] = items = [future.result() for future in sent]
            # Solved examples come first, so the question's picture is the last one.
            shapes = shapes_of(lines[0], items[-1].get("width"), items[-1].get("height"))
            if shapes := shapes + (masks.result() if masks else []):
                sample["shapes"] = shapes
        if made:
            sample["made"] = {path: future.result() for path, future in made.items()}
        return sample

    def _add_entry(
        self,
        place: int,
        row: int,
        lines: Sequence[Mapping[str, Any]],
        media: Sequence[Item],
        shapes: Sequence[Shape] = (),
    ) -> None:
        line = lines[0]
        answer = answer_of(line)
        error = line.get("error") or line.get("reason") or ""
        shown = media[-1] if media else {}  # the last one belongs to the question, not to a solved example
        frames = shown.get("frames")
        tokens = Tokens.of(token_counts_of(line))
        seconds = [number for item in _items(line.get("elapsed")) if (number := finite(item)) is not None]
        found = {
            "id": self.task.ids[row],
            "status": self.task.statuses[row],
            "finish": ", ".join(dict.fromkeys(map(str, _items(line.get("finish_reason"))))),
            "reason": str(error)[:ERROR],
            "latency": round(math.fsum(seconds) / len(seconds), 4) if seconds else None,
            "in": tokens.input,
            "out": tokens.output,
            "answer": without_runs(answer.text)[:ANSWER],
            "target": without_runs(answer.target)[:TARGET],
            "thumb": (frames[0]["src"] if frames else shown.get("src", "")) if shown.get("kind") != "audio" else "",
        }
        if over := [one["src"] for one in shapes if "src" in one and one.get("medium") == len(media) - 1]:
            self._masks[place] = " ".join(over)
        for name, value in found.items():
            self._index[name][place : place + 1] = [value]
        self._metadata.rows = max(self._metadata.rows, place + 1)
        for name, value in sample_fields(line, self._score_key).items():
            self._metadata.add(place, str(name), value)

    def columns(self, rows: Sequence[int]) -> list[IndexColumn]:
        """Return the columns of the index over the added rows: those that every task has, metrics and metadata."""
        metadata = self._metadata.found() | self._audit.columns(rows)
        left_out = ("thumb",) if self.options.single_file else ()  # the pictures are in the texts already
        found = [IndexColumn(name, kind, self._index[name]) for name, kind in _KINDS.items() if name not in left_out]
        without_score = Counter(self._index["status"])
        facts: dict[str, Any] = {
            "verdicts": {name: without_score[name] for name in VERDICTS[3:] if without_score[name]}
        }
        found[1] = replace(found[1], facts=facts)
        if self._masks:
            found.append(IndexColumn("masks", "texts", [self._masks.get(place, "") for place in range(len(rows))]))
        # The first metric is the one that samples are judged by.
        metrics = sorted(self.task.columns.items(), key=lambda item: is_count(item[1].metric, item[1].reported))
        for name, column in metrics:
            scores = [plain_number(column.scores[row]) for row in rows]
            if any(score is not None for score in scores):
                found.append(IndexColumn(f"s.{name}", "numbers", scores, facts=_judged(column, scores)))
        headline = next((column.facts for column in found if column.key.startswith("s.")), {})
        self.verdicts = facts["verdicts"] | headline.get("verdicts", {})
        return found + [IndexColumn(f"m.{name}", "codes", values) for name, values in metadata.items()]


def ends_of(column: MetricColumn, scores: Sequence[float | None]) -> tuple[float | None, float] | None:
    """Return the worst and the best score of a metric for one document; ``None`` if the best one is not known.

    The worst one is ``None`` if there is no bound. Without a stated range, scores that are all between 0 and 1 count as
    shares. ``scores`` are those of the samples.
    """
    known = [score for score in scores if score is not None]
    if column.score_range is not None:
        low, high = column.score_range.low, column.score_range.high
    elif known and min(known) >= 0 and max(known) <= 1:
        low, high = SHARES.low, SHARES.high
    else:
        return None
    worst, best = (high, low) if column.higher_is_better is False else (low, high)
    if not math.isfinite(best) or worst == best:
        return None
    return (plain_number(worst) if math.isfinite(worst) else None), best


def verdict_of(score: float, worst: float | None, best: float) -> str:
    """Return ``correct``, ``wrong`` or ``partly`` for a score between these ends."""
    slack = _SLACK * max(1.0, abs(best))
    if abs(score - best) <= slack:
        return "correct"
    return "wrong" if worst is not None and abs(score - worst) <= slack else "partly"


_MOST_DECIMALS = 2


def _judged(column: MetricColumn, scores: Sequence[float | None]) -> dict[str, Any]:
    """Return how a page shows the scores of a metric.

    These are the decimal places that they need, at most two, and, with known ends, the ends and the number of samples
    with each verdict.
    """
    counts = Counter(score for score in scores if score is not None)
    places = (n for n in range(_MOST_DECIMALS) if all(round(score, n) == score for score in counts))
    facts: dict[str, Any] = {"decimals": next(places, _MOST_DECIMALS)}
    if (ends := ends_of(column, scores)) is not None:
        verdicts: Counter[str] = Counter()
        for score, samples in counts.items():
            verdicts[verdict_of(score, *ends)] += samples
        facts |= {"ends": ends, "verdicts": {name: verdicts[name] for name in VERDICTS if verdicts[name]}}
    return facts


def redacted(value: Any, keys: frozenset[str]) -> Any:
    """Replace the values of the keys in a JSON value, at any depth."""
    if not keys:
        return value
    if isinstance(value, Mapping):
        return {key: REDACTED if str(key) in keys else redacted(item, keys) for key, item in value.items()}
    return [redacted(item, keys) for item in value] if isinstance(value, list) else value


def _items(value: Any) -> list[Any]:
    return [item for item in (value if isinstance(value, list) else [value]) if item is not None]
