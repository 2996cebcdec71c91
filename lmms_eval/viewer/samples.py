"""The samples of one task: the columns of its index, by which a page lists and filters, and the texts in pieces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from lmms_eval.compare.readers.samples import answer_of
from lmms_eval.compare.runs import TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.audit import Auditor
from lmms_eval.results.run_reader.metadata import MetadataColumns
from lmms_eval.results.run_reader.repeats import token_counts_of
from lmms_eval.results.run_reader.sample import finite, sample_fields
from lmms_eval.utils.redaction import REDACTED
from lmms_eval.viewer.audit import TaskAudit
from lmms_eval.viewer.chunks import Chunks
from lmms_eval.viewer.columns import IndexColumn, Kind, plain_number, write_index
from lmms_eval.viewer.masks import has_masks, masks_of
from lmms_eval.viewer.media import Item, MediaStore, made_in, media_of
from lmms_eval.viewer.options import ReportOptions
from lmms_eval.viewer.runs import ReportRun
from lmms_eval.viewer.selection import Selection, lines_of
from lmms_eval.viewer.shapes import Shape, shapes_of

PER_TEXT = 200
"""Samples in a piece of texts."""
ANSWER, TARGET = 80, 48
"""Characters of answer and reference in the index."""
ERROR = 160
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
"""Columns that every index has; ``thumb`` is the name of a small picture."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Facts of the index from which breakdowns and histograms are made; one entry for each sample that is shown."""

    rows: Sequence[int]
    """Numbers of the samples among the task's rows."""
    latencies: Sequence[float | None]
    tokens_in: Sequence[int | None]
    tokens_out: Sequence[int | None]
    finish: Sequence[str]
    reasons: Sequence[str]
    metadata: Mapping[str, Sequence[str | None]]
    audits: Sequence[Mapping[str, Any]] = ()
    is_chosen: bool = False
    """An expression has chosen the samples, perhaps by their scores."""


@dataclass(slots=True)
class TaskWriter:
    """Writer of the pieces of one task: its index and ``text-KEY-N``."""

    run: ReportRun
    task: TaskRows
    key: str
    options: ReportOptions
    media: MediaStore
    problems: list[str] = field(default_factory=list)
    _index: dict[str, list[Any]] = field(default_factory=dict)
    _metadata: MetadataColumns = field(init=False)
    _audit: TaskAudit = field(init=False)

    def write(self, chunks: Chunks) -> TaskFacts:
        """Write all pieces.

        Raises:
            LmmsEvalError: a file cannot be written.
        """
        selection = Selection(self.run, self.task, self.options, self.problems)
        rows = selection.rows()
        auditor = Auditor(self.task.task, self.run.told, self.options.choice.where is not None)
        self._audit = TaskAudit(auditor, self.run.keys(self.task.task), self.options.redact)
        self._metadata = MetadataColumns(len(rows))
        self._index = {name: [] for name in _KINDS}
        score_key = self.run.facts(self.task.task).score_key
        remaining = iter(enumerate(rows))
        for number in range(-(-len(rows) // PER_TEXT)):
            block = [(place, row, self._lines(row)) for place, row in islice(remaining, PER_TEXT)]
            media = [self._media(lines) for _, _, lines in block]
            for (place, row, lines), futures in zip(block, media, strict=True):
                self._add(place, row, lines, score_key, [future.result() for future in futures.sent])
            samples = [self._sample(row, lines, found) for (_, row, lines), found in zip(block, media, strict=True)]
            chunks.write(f"text-{self.key}-{number}", samples)
        metadata = self._metadata.found()
        write_index(chunks, self.key, self._columns(rows, metadata | self._audit.columns(rows)))
        columns = self._index
        return TaskFacts(
            rows, columns["latency"], columns["in"], columns["out"], columns["finish"], columns["reason"], metadata,
            self._audit.found(), self.options.choice.where is not None,
        )  # fmt: skip

    def _lines(self, row: int) -> list[dict[str, Any]]:
        """Read the lines of a sample, those of a foreign run in the form of ours, without what is to be left out."""
        try:
            lines = lines_of(self.task, row)
            self._audit.see(row, lines)
        except DataError as error:
            self.problems.append(str(error))
            lines = [{"doc_id": self.task.ids[row], "error": str(error)}]
        return [redacted(self.run.prompts.joined(line), self.options.redact) for line in lines]

    def _media(self, lines: Sequence[Mapping[str, Any]]) -> _SampleMedia:
        line, folders = lines[0], self.run.folders
        return _SampleMedia(
            [self.media.add(one, folders) for one in media_of(line)],
            {name: self.media.add(one, folders) for name, one in made_in(line).items()},
            self.media.draw(partial(masks_of, line, self.media, folders)) if has_masks(line) else None,
        )

    def _sample(self, row: int, lines: Sequence[Mapping[str, Any]], media: _SampleMedia) -> dict[str, Any]:
        sample: dict[str, Any] = {"id": self.task.ids[row], "lines": lines}
        if media.sent:
            sample["media"] = items = [future.result() for future in media.sent]
            # The question's picture is the last one: solved examples come before it.
            shapes = shapes_of(lines[0], items[-1].get("width"), items[-1].get("height"))
            if shapes := shapes + (media.masks.result() if media.masks else []):
                sample["shapes"] = shapes
        if media.made:
            sample["made"] = {path: future.result() for path, future in media.made.items()}
        return sample

    def _add(
        self, place: int, row: int, lines: Sequence[Mapping[str, Any]], score_key: str, media: Sequence[Item]
    ) -> None:
        line = lines[0]
        answer = answer_of(line)
        error = line.get("error") or line.get("reason") or ""
        shown = media[-1] if media else {}  # solved examples come before the question
        frames = shown.get("frames")
        found = {
            "id": self.task.ids[row],
            "status": self.task.statuses[row],
            "finish": _joined(line.get("finish_reason")),
            "reason": str(error)[:ERROR],
            "latency": _seconds(line.get("elapsed")),
            "in": _tokens(line, "input_tokens"),
            "out": _tokens(line, "output_tokens"),
            "answer": answer.text[:ANSWER],
            "target": answer.target[:TARGET],
            "thumb": (frames[0]["src"] if frames else shown.get("src", "")) if shown.get("kind") != "audio" else "",
        }
        for name, value in found.items():
            self._index[name].append(value)
        for name, value in sample_fields(line, score_key).items():
            self._metadata.add(place, str(name), value)

    def _columns(self, rows: Sequence[int], metadata: Mapping[str, Sequence[str | None]]) -> list[IndexColumn]:
        """List the columns of the index: those that every task has, its metrics, its metadata."""
        left_out = ("thumb",) if self.options.single_file else ()  # the pictures are in the texts, once
        found = [IndexColumn(name, kind, self._index[name]) for name, kind in _KINDS.items() if name not in left_out]
        for name, column in self.task.columns.items():
            scores = [plain_number(column.scores[row]) for row in rows]
            if any(score is not None for score in scores):
                found.append(IndexColumn(f"s.{name}", "numbers", scores))
        return found + [IndexColumn(f"m.{name}", "codes", values) for name, values in metadata.items()]


@dataclass(frozen=True, slots=True)
class _SampleMedia:
    sent: Sequence[Future[Item]]
    made: Mapping[str, Future[Item]]
    masks: Future[list[Shape]] | None


def redacted(value: Any, keys: frozenset[str]) -> Any:
    """Return a value of JSON in which what stands under one of the keys is left out, at any depth."""
    if not keys:
        return value
    if isinstance(value, Mapping):
        return {key: REDACTED if str(key) in keys else redacted(item, keys) for key, item in value.items()}
    return [redacted(item, keys) for item in value] if isinstance(value, list) else value


def _joined(value: Any) -> str:
    """Reasons why generation ended, of several answers each once."""
    return ", ".join(dict.fromkeys(str(item) for item in _items(value)))


def _seconds(value: Any) -> float | None:
    """Mean seconds of the answers."""
    known = [number for item in _items(value) if (number := finite(item)) is not None]
    return round(math.fsum(known) / len(known), 4) if known else None


def _tokens(line: Mapping[str, Any], key: str) -> int | None:
    known = [
        item[key] for item in token_counts_of(line) if isinstance(item, Mapping) and isinstance(item.get(key), int)
    ]
    return sum(known) if known else None


def _items(value: Any) -> Iterator[Any]:
    yield from (item for item in (value if isinstance(value, list) else [value]) if item is not None)
