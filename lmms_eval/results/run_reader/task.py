"""A task of a run: the places of its samples, and which of them are chosen."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.api.outcome import Status
from lmms_eval.errors import UsageError
from lmms_eval.results.run_reader.columns import data_frame, value_of
from lmms_eval.results.run_reader.document import EarlyStop
from lmms_eval.results.run_reader.json_lines import SampleLines
from lmms_eval.results.run_reader.judge_prompts import JudgePrompts
from lmms_eval.results.run_reader.sample import Sample, SampleKeys, doc_text
from lmms_eval.utils.document_ids import DocumentIds, Ranges
from lmms_eval.utils.where import Where

if TYPE_CHECKING:
    import pandas

_CODES: tuple[Status, ...] = ("scored", "unscored", "failed")


@dataclass(slots=True)
class SampleIndex:
    """Places of the samples of a task, in their order; about 120 bytes for each."""

    doc_ids: list[str] = field(default_factory=list)
    filters: list[str] = field(default_factory=list)
    statuses: bytearray = field(default_factory=bytearray)
    sources: bytearray = field(default_factory=bytearray)
    places: array[int] = field(default_factory=lambda: array("q"))
    damaged: int = 0
    """Lines that are no samples, and were passed over."""

    def status(self, number: int) -> Status:
        return _CODES[self.statuses[number]]


class RunTask:
    """A task of a run. Samples are read one by one; memory holds their places alone, from the first look on.

    Args:
        name: the task's name.
        keys: how its samples are read.
        sources: where its lines come from.
        record: folder of the run's journals, which hold the prompts of its judge.
        early_stop: its end, where that came before its documents' end.
    """

    def __init__(
        self,
        name: str,
        keys: SampleKeys,
        sources: tuple[SampleLines, ...],
        record: Path | None = None,
        early_stop: EarlyStop | None = None,
    ) -> None:
        self.name, self.keys, self.sources, self.early_stop = name, keys, sources, early_stop
        self._prompts = JudgePrompts(record)

    def __repr__(self) -> str:
        return f"RunTask({self.name!r}, {[source.where for source in self.sources]})"

    def __len__(self) -> int:
        return len(self.index.places)

    @cached_property
    def index(self) -> SampleIndex:
        """The places of all samples. Raises ``DataError`` if a file cannot be read."""
        found = SampleIndex()
        known: dict[str, str] = {}
        for source, lines in enumerate(self.sources):
            for line in lines.lines():
                record = line.record
                if "doc_id" not in record:
                    found.damaged += 1
                    continue
                pipeline = str(record.get("filter") or "")
                status = record.get("status", "scored")
                found.doc_ids.append(doc_text(record["doc_id"]))
                found.filters.append(known.setdefault(pipeline, pipeline))
                found.statuses.append(_CODES.index(status) if status in _CODES else 2)
                found.sources.append(source)
                found.places.append(line.offset)
            found.damaged += lines.damaged
        return found

    @cached_property
    def _first(self) -> dict[str, int]:
        """Number of the first sample of each document."""
        found: dict[str, int] = {}
        for number, doc_id in enumerate(self.index.doc_ids):
            found.setdefault(doc_id, number)
        return found

    def at(self, number: int) -> Sample:
        """Read the sample of that number in the order of the task.

        Raises:
            DataError: it cannot be read any longer.
        """
        index = self.index
        line = self.sources[index.sources[number]].at(index.places[number])
        return Sample(self.name, line, self.keys, self._prompts)

    def sample(self, doc_id: int | str, pipeline: str | None = None) -> Sample:
        """Read the sample of a document: through a filter pipeline, else the first one.

        Raises:
            UsageError: there is none.
        """
        wanted = str(doc_id)
        for number in range(self._first.get(wanted, len(self)), len(self)):
            if self.index.doc_ids[number] == wanted and pipeline in (None, self.index.filters[number]):
                return self.at(number)
        through = "" if pipeline is None else f" through {pipeline!r}"
        raise UsageError(f"{self.name}: no document {wanted}{through} among {len(self)} samples")

    def samples(self, chosen: Choice | None = None) -> Iterator[Sample]:
        """Go through the samples, all or those that are chosen. Raises ``DataError`` if a file cannot be read."""
        for lines in self.sources:
            for line in lines.lines():
                if "doc_id" in line.record:
                    sample = Sample(self.name, line.record, self.keys, self._prompts)
                    if chosen is None or chosen.takes(sample):
                        yield sample

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row for each sample and typed columns (``docs/results.md``)."""
        return data_frame(self.samples)


@dataclass(frozen=True, slots=True)
class Choice:
    """The samples that ``--ids`` and ``--where`` choose."""

    ids: DocumentIds | None = None
    where: Where | None = None

    def takes(self, sample: Sample) -> bool:
        if self.ids is not None and not _is_among(sample.doc_id, self.ids.of(sample.task)):
            return False
        return self.where is None or self.where.holds(lambda name: value_of(sample, name))


def _is_among(doc_id: str, ids: Ranges) -> bool:
    return doc_id.isascii() and doc_id.isdigit() and len(doc_id) < 20 and int(doc_id) in ids
