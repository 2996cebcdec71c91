"""Records of Every Eval Ever (``{uuid}.json`` with ``{uuid}_samples.jsonl``), of this project and of others."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.compare.readers.contract import NO_FILTER, FileHead, Format, TaskBuilder, id_text
from lmms_eval.compare.readers.samples import scale_of
from lmms_eval.compare.runs import DocumentTexts, MetricColumn, RunRows, TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.columns import metadata_of
from lmms_eval.results.facts import part_of
from lmms_eval.results.journals import FileSamples, JsonLine, load_json
from lmms_eval.results.sample import finite, plain_text
from lmms_eval.utils.numbers import ScoreRange

KIND = "every_eval_ever"
SAMPLES = "_samples.jsonl"
_OWN = "lmms_eval"
_PREFIX = "doc."
"""Beginning of the names of metadata that are fields of the document, in records of this project."""
_RECORD = frozenset({"evaluation_id", "evaluation_results", "model_info", "schema_version"})
_LINE = frozenset({"evaluation_id", "evaluation_name", "evaluation", "sample_id"})
_PARTIAL = ("stopped_early", "random_sample")
"""Details of a score over chosen documents: what the record states does not suffice to compare it."""


class _Column(Struct, frozen=True):
    """A result of the record."""

    task: str
    metric: str
    filter: str = NO_FILTER
    entry: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.metric},{self.filter}"

    @property
    def reported(self) -> float | None:
        return finite(part_of(self.entry, "score_details").get("score"))

    def completed(self, column: MetricColumn) -> MetricColumn:
        """Add what the record states about the metric."""
        config = part_of(self.entry, "metric_config")
        known = [score for score in column.scores.tolist() if not math.isnan(score)]
        mean = math.fsum(known) / len(known) if known else math.nan
        scale = scale_of(mean, self.reported) if known and self.reported is not None else 0.0
        within = _range(config, scale)
        if within is not None and not all(score in within for score in known):
            within = None
        lower = config.get("lower_is_better")
        higher = not lower if isinstance(lower, bool) else None
        return replace(column, score_range=within, higher_is_better=higher, reported=self.reported, scale=scale)


def _range(config: Mapping[str, Any], scale: float) -> ScoreRange | None:
    """Return the range of a document's score; ``None`` if it is not stated or not known."""
    infinite = {"-Infinity": -math.inf, "Infinity": math.inf}
    ends = [infinite.get(str(config.get(name)), finite(config.get(name))) for name in ("min_score", "max_score")]
    low, high = ends
    if low is None or high is None or scale <= 0:
        return None
    return ScoreRange(low / scale, high / scale)


def is_record(head: FileHead) -> bool:
    return head.document.keys() >= _RECORD


def is_samples(head: FileHead) -> bool:
    return head.record.keys() >= _LINE


def is_part(path: Path, files: Sequence[Path]) -> bool:
    """Return whether a file holds the samples of a record among ``files``."""
    return path.name.endswith(SAMPLES) and _record_of(path) in files


def _record_of(samples: Path) -> Path:
    return samples.with_name(f"{samples.name.removesuffix(SAMPLES)}.json")


def read_record(path: Path) -> RunRows:
    """Read a record with its samples.

    Raises:
        DataError: the record or its samples cannot be read, or it has no samples.
    """
    try:
        record = load_json(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is no complete JSON file: {error}") from error
    samples = path.with_name(f"{path.stem}{SAMPLES}")
    if not samples.is_file():
        raise DataError(
            f"{path}: a record without its samples ({samples.name}); a comparison needs the scores of the documents"
        )
    return _Reader(samples, record, path).run()


def read_samples(path: Path) -> RunRows:
    """Read a file of samples, with its record if that is in the same folder."""
    record = _record_of(path)
    if path.name.endswith(SAMPLES) and record.is_file():
        return read_record(record)
    return _Reader(path, {}, path).run()


class _Reader:
    """Reads the samples of one record, line by line."""

    def __init__(self, samples: Path, record: Mapping[str, Any], source: Path) -> None:
        self.lines, self.record, self.source = FileSamples(samples), record, source
        self.is_own = part_of(record, "eval_library").get("name") == _OWN
        self.builders: dict[str, TaskBuilder] = {}
        self.places: dict[str, array[int]] = {}
        self.model = ""
        self.columns: dict[str, _Column] = {}
        """Results by their id; without ids by the name of the evaluation."""
        self.notes: list[str] = []
        self.left_out: set[str] = set()
        entries = record.get("evaluation_results")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                self._add_result(entry)

    def _add_result(self, entry: Mapping[str, Any]) -> None:
        config, details = part_of(entry, "metric_config"), part_of(part_of(entry, "score_details"), "details")
        task = str(entry.get("evaluation_name") or "")
        named = [config.get(name) for name in (("metric_name",) if self.is_own else ("metric_id", "metric_name"))]
        metric = str(next((name for name in named if name), "score"))
        pipeline = part_of(config, "metric_parameters").get("filter") if self.is_own else None
        found = _Column(task, metric.removesuffix(f",{pipeline}"), str(pipeline or NO_FILTER), entry)
        self.columns[str(entry.get("evaluation_result_id") or task)] = found
        if self.is_own and any(name in details for name in _PARTIAL) and task not in self.left_out:
            self.left_out.add(task)
            self.notes.append(f"{task}: left out: its documents were chosen; compare the run itself")
        if self.is_own and "without_score" in details:
            note = f"{task}: {details['without_score']}: the record lacks these documents, so no verdict covers them"
            self.notes.append(note)

    def run(self) -> RunRows:
        """Read all lines. Raises ``DataError`` if one is not a sample of the format."""
        for line in self.lines.lines():
            try:
                self._add(line)
            except (KeyError, TypeError, AttributeError) as error:
                where = f"{self.lines.where}, line {line.number}"
                raise DataError(f"{where}: not a sample of Every Eval Ever ({error!r})") from error
        info = part_of(self.record, "model_info")
        name = info.get("id") or info.get("name") or self.model or self.source.stem
        notes = [note for builder in self.builders.values() for note in builder.notes]
        tasks = {task: self._rows(task) for task in self.builders}
        return RunRows(str(name), str(self.source), KIND, tasks, notes=tuple(dict.fromkeys((*self.notes, *notes))))

    def _add(self, line: JsonLine) -> None:
        sample = line.record
        task = sample["evaluation_name"]
        if not isinstance(task, str):
            raise TypeError("evaluation_name")
        if task in self.left_out:
            return
        self.model = self.model or str(sample.get("model_id") or "")
        builder = self.builders.get(task)
        if builder is None:
            builder, self.places[task] = TaskBuilder(task), array("q")
            builder.states_filter = self.is_own
            self.builders[task] = builder
        row = builder.row(id_text(sample["sample_id"]))
        if row == len(self.places[task]):
            self.places[task].append(line.offset)
        column = self._column(sample, task)
        number = finite(sample["evaluation"]["score"])
        if self.is_own:
            builder.score(row, column.metric, column.filter, number)
        else:  # several answers to a question are lines of the same id
            builder.score_answer(row, column.metric, number)
        if number is None:
            builder.pass_over(f"scores of {column.metric} that are not finite numbers: unscored")
        builder.end(row, "unscored" if number is None else "scored")
        metadata = part_of(sample, "metadata")
        cluster, digest = metadata.get("cluster"), metadata.get("doc_hash")
        if self.is_own:
            builder.describe(row, digest if isinstance(digest, str) else None, cluster)

    def _column(self, sample: Mapping[str, Any], task: str) -> _Column:
        stated = sample.get("evaluation_result_id")
        known = self.columns.get(str(stated)) if stated else self.columns.get(task)
        return known if known is not None else _Column(task, str(stated or "score"))

    def _rows(self, task: str) -> TaskRows:
        builder, places = self.builders[task], self.places[task]
        rows = builder.rows()
        by_key = {column.key: column for column in self.columns.values() if column.task == task}
        columns = {
            key: by_key[key].completed(column) if key in by_key else column for key, column in rows.columns.items()
        }

        def fields() -> Iterator[tuple[int, Mapping[str, Any]]]:
            for row, place in enumerate(places):
                stated = part_of(self.lines.at(place), "metadata")
                if self.is_own:
                    stated = {k.removeprefix(_PREFIX): v for k, v in stated.items() if k.startswith(_PREFIX)}
                yield row, stated

        return replace(
            rows,
            columns=columns,
            metadata=cache(lambda: metadata_of(len(places), fields())),
            answer=lambda row: _texts(self.lines.at(places[row])),
        )


def _texts(sample: Mapping[str, Any]) -> DocumentTexts:
    """Return what was asked and answered: the value that was read from the answer, else the answer."""
    asked = part_of(sample, "input")
    read = sample.get("answer_attribution")
    terminal = [one for one in read if isinstance(one, Mapping)] if isinstance(read, list) else []
    raw = part_of(sample, "output").get("raw")
    text = terminal[-1].get("extracted_value") if terminal else raw
    return DocumentTexts(plain_text(text), plain_text(asked.get("reference")), plain_text(asked.get("raw")))


RECORDS = Format(
    "a record of Every Eval Ever (JSON with evaluation_id, evaluation_results, model_info)", is_record, read_record
)
LINES = Format("samples of Every Eval Ever (JSONL with evaluation_id, sample_id, evaluation)", is_samples, read_samples)
