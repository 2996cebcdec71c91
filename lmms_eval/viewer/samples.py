"""The samples of one task: an index of columns, by which a page lists and filters, and the texts in pieces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lmms_eval.compare.readers.samples import answer_of
from lmms_eval.compare.runs import TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.metadata import MetadataColumns
from lmms_eval.results.run_reader.sample import finite, sample_fields
from lmms_eval.utils.redaction import REDACTED
from lmms_eval.viewer.chunks import Chunks
from lmms_eval.viewer.media import Item, MediaMaker, media_of, pictures_in
from lmms_eval.viewer.options import ReportOptions
from lmms_eval.viewer.runs import ReportRun
from lmms_eval.viewer.shapes import shapes_of

PER_TEXT, PER_INDEX = 200, 20_000
"""Samples in a piece of texts, and of the index."""
ANSWER, TARGET = 80, 48
"""Characters of answer and reference in the index."""
ERROR = 160
_INDEX = ("id", "status", "finish", "reason", "latency", "in", "out", "answer", "target", "thumb")
_STATUS = {"scored": 0, "unscored": 1, "failed": 2}


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


@dataclass(slots=True)
class TaskWriter:
    """Writer of the pieces of one task, ``index-KEY-N`` and ``text-KEY-N``."""

    run: ReportRun
    task: TaskRows
    key: str
    options: ReportOptions
    media: MediaMaker
    problems: list[str] = field(default_factory=list)
    per_index: int = PER_INDEX
    _index: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _INDEX})
    _metadata: MetadataColumns = field(default_factory=MetadataColumns)

    def write(self, chunks: Chunks) -> TaskFacts:
        """Write all pieces.

        Raises:
            LmmsEvalError: a file cannot be written.
        """
        rows = [row for row in range(len(self.task.ids)) if self._is_wanted(row)][: self.options.limit]
        score_key = self.run.facts(self.task.task).score_key
        remaining = iter(enumerate(rows))
        for number in range(-(-len(rows) // PER_TEXT)):
            block = [(place, row, self._lines(row)) for place, row in islice(remaining, PER_TEXT)]
            media = [self._media(lines) for _, _, lines in block]
            for (place, row, lines), futures in zip(block, media, strict=True):
                self._add(place, row, lines, score_key, [future.result() for future in futures.sent])
            samples = [self._sample(row, lines, found) for (_, row, lines), found in zip(block, media, strict=True)]
            chunks.write(f"text-{self.key}-{number}", samples)
        facts = self.facts(rows)
        for number in range(max(1, -(-len(rows) // self.per_index))):
            chunks.write(f"index-{self.key}-{number}", self.index_part(facts, number))
        return facts

    def note(self, place: int, row: int, read: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Add a row to the index, or what is known of it now. ``read``: its lines, where they are at hand."""
        lines = self._lines(row) if read is None else [redacted(line, self.options.redact) for line in read]
        media = [future.result() for future in self._media(lines).sent]
        self._add(place, row, lines, self.run.facts(self.task.task).score_key, media)

    def facts(self, rows: Sequence[int]) -> TaskFacts:
        """Return what the index tells of all rows that were added."""
        found = self._index
        metadata = self._metadata.found()
        return TaskFacts(
            rows, found["latency"], found["in"], found["out"], found["finish"], found["reason"], metadata
        )  # fmt: skip

    def texts(self, row: int) -> dict[str, Any]:
        """Return a sample without its media."""
        lines = self._lines(row)
        has_media = bool(media_of(lines[0]) or pictures_in(lines[0].get("parts")))
        return {"id": self.task.ids[row], "lines": lines, **({"media_apart": True} if has_media else {})}

    def media_apart(self, row: int, maker: MediaMaker) -> dict[str, Any]:
        """Return the media of a sample alone."""
        lines = self._lines(row)
        sample = self._sample(row, lines, self._media(lines, maker))
        return {key: value for key, value in sample.items() if key not in ("id", "lines")}

    def _is_wanted(self, row: int) -> bool:
        return not self.options.only_failed or self.task.statuses[row] == "failed"

    def _lines(self, row: int) -> list[dict[str, Any]]:
        """Read the lines of a sample, those of a foreign run in the form of ours, without what is to be left out."""
        try:
            lines = list(self.task.lines(row)) or self._foreign(row)
        except DataError as error:
            self.problems.append(str(error))
            lines = [{"doc_id": self.task.ids[row], "error": str(error)}]
        return [redacted(line, self.options.redact) for line in lines]

    def _foreign(self, row: int) -> list[dict[str, Any]]:
        answer = self.task.answer(row)
        line: dict[str, Any] = {"doc_id": self.task.ids[row], "status": self.task.statuses[row]}
        if answer is not None:
            line |= {"filtered_resps": answer.text, "target": answer.target, "input": answer.prompt}
        numbers = {column.metric: column.scores[row].item() for column in self.task.columns.values()}
        return [line | {metric: number for metric, number in numbers.items() if not math.isnan(number)}]

    def _media(self, lines: Sequence[Mapping[str, Any]], maker: MediaMaker | None = None) -> _SampleMedia:
        line, folders, maker = lines[0], self.run.folders, maker or self.media
        made = {str(one.get("path")): one for one in pictures_in(line.get("parts"))}
        return _SampleMedia(
            [maker.add(one, folders) for one in media_of(line)],
            {path: maker.add(one, folders) for path, one in made.items()},
        )

    def _sample(self, row: int, lines: Sequence[Mapping[str, Any]], media: _SampleMedia) -> dict[str, Any]:
        sample: dict[str, Any] = {"id": self.task.ids[row], "lines": lines}
        if media.sent:
            sample["media"] = items = [future.result() for future in media.sent]
            # The question's picture is the last one: solved examples come before it.
            if shapes := shapes_of(lines[0], items[-1].get("width"), items[-1].get("height")):
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
            "status": _STATUS[self.task.statuses[row]],
            "finish": _joined(line.get("finish_reason")),
            "reason": str(error)[:ERROR],
            "latency": _seconds(line.get("elapsed")),
            "in": _tokens(line, "input_tokens"),
            "out": _tokens(line, "output_tokens"),
            "answer": answer.text[:ANSWER],
            "target": answer.target[:TARGET],
            "thumb": (frames[0]["src"] if frames else shown.get("src", "")) if shown.get("kind") != "audio" else "",
        }
        self._metadata.rows = max(self._metadata.rows, place + 1)
        for name, value in found.items():
            column = self._index[name]
            if place < len(column):
                column[place] = value
            else:
                column.append(value)
        for name, value in sample_fields(line, score_key).items():
            self._metadata.add(place, str(name), value)

    def index_part(self, facts: TaskFacts, number: int) -> dict[str, Any]:
        """Make one piece of the index: columns, texts of few values by their numbers in a list."""
        rows = facts.rows
        part = slice(number * self.per_index, (number + 1) * self.per_index)
        columns: dict[str, Any] = {name: values[part] for name, values in self._index.items()}
        for name in ("finish", "reason"):
            columns[name] = _coded(columns[name])
        if self.options.single_file:
            columns["thumb"] = []  # the pictures are in the texts, once
        scores = {
            name: [_rounded(column.scores[row]) for row in rows[part]]
            for name, column in self.task.columns.items()
            if not all(math.isnan(score) for score in column.scores)
        }
        coded = {name: _coded(values[part]) for name, values in facts.metadata.items()}
        return {"count": len(columns["id"]), **columns, "scores": scores, "metadata": coded}


@dataclass(frozen=True, slots=True)
class _SampleMedia:
    sent: Sequence[Future[Item]]
    made: Mapping[str, Future[Item]]


def redacted(value: Any, keys: frozenset[str]) -> Any:
    """Return a value of JSON in which what stands under one of the keys is left out, at any depth."""
    if not keys:
        return value
    if isinstance(value, Mapping):
        return {key: REDACTED if str(key) in keys else redacted(item, keys) for key, item in value.items()}
    return [redacted(item, keys) for item in value] if isinstance(value, list) else value


def _coded(values: Sequence[Any]) -> dict[str, Any]:
    known: dict[Any, int] = {}
    codes = [known.setdefault(value, len(known)) for value in values]
    return {"values": list(known), "codes": codes}


def _rounded(score: float) -> float | None:
    return None if math.isnan(score) else round(float(score), 6)


def _joined(value: Any) -> str:
    """Reasons why generation ended, of several answers each once."""
    return ", ".join(dict.fromkeys(str(item) for item in _items(value)))


def _seconds(value: Any) -> float | None:
    """Mean seconds of the answers."""
    known = [number for item in _items(value) if (number := finite(item)) is not None]
    return round(math.fsum(known) / len(known), 4) if known else None


def _tokens(line: Mapping[str, Any], key: str) -> int | None:
    counts = _items(line.get("token_counts"))
    known = [item[key] for item in counts if isinstance(item, Mapping) and isinstance(item.get(key), int)]
    return sum(known) if known else None


def _items(value: Any) -> Iterator[Any]:
    yield from (item for item in (value if isinstance(value, list) else [value]) if item is not None)
