"""The samples of one task of a run that goes on: rows and index grow with the journal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.samples import ReadTask, SampleCollector, SampleFacts
from lmms_eval.compare.runs import TaskRows
from lmms_eval.results.following.run import Finished
from lmms_eval.results.run_reader.journals import JournalSamples
from lmms_eval.viewer.columns import PER_COLUMN, PER_GROWING, IndexColumn, TaskIndex
from lmms_eval.viewer.samples import PER_TEXT, TaskFacts, TaskWriter


@dataclass(slots=True)
class GrowingTask:
    """Rows of a task in the order in which they were finished, and the pieces of its index."""

    name: str
    facts: SampleFacts
    samples: JournalSamples
    writer: TaskWriter
    version: int = 0
    """Rises with every change."""
    _collector: SampleCollector = field(init=False)
    _statuses: list[Status] = field(default_factory=list)
    _read: tuple[int, ReadTask] | None = None
    _columns: dict[str, IndexColumn] = field(default_factory=dict)
    """All that there ever were: their numbers and codes stay, whatever a page holds already."""
    _index: tuple[int, TaskIndex] | None = None
    _news: set[int] = field(default_factory=set)
    _renewed: set[int] = field(default_factory=set)
    _is_audit_stale: bool = False

    def __post_init__(self) -> None:
        self._collector = SampleCollector(self.samples, self.name, self.facts)

    @property
    def size(self) -> int:
        return len(self._statuses)

    def add(self, found: Finished) -> None:
        """Take in a document that is finished, or finished once more. Raises ``DataError``."""
        lines = self.samples.add(found.place, found.rows)
        if found.before is not None:
            self._collector.forget(str(found.doc_id))
        for line in lines:
            self._collector.add(line)
        row = self._collector.builder.row(str(found.doc_id))
        self._statuses[row : row + 1] = [found.ending.status]
        if found.before is not None:
            self._renewed.add(row)
            self._is_audit_stale |= found.before.status != "failed"  # what failed is not counted there
        self._news.add(row)
        self.version += 1
        self.writer.task = TaskRows(self.name, self._collector.builder.ids, self._statuses, {})
        self.writer.note(row, [line.record for line in lines])

    def rows(self) -> TaskRows:
        """Return the rows as they are now."""
        if self._read is None or self._read[0] != self.version:
            self._read = (self.version, self._collector.task())
        return self._read[1].rows

    def index(self, rows: TaskRows) -> TaskIndex:
        """Return the index as it is now; ``rows`` are those of now."""
        if self._index is None or self._index[0] != self.version:
            self.writer.task = rows
            self._mend_audit()
            found = {column.key: column for column in self.writer.columns(range(self.size))}
            for key, column in found.items():
                codes = self._columns[key].codes if key in self._columns else column.codes
                self._columns[key] = replace(column, codes=codes)
            kept = [column if key in found else replace(column, values=()) for key, column in self._columns.items()]
            self._index = (self.version, TaskIndex(kept, is_growing=True))
        return self._index[1]

    def shown(self, without_interval: str) -> TaskFacts:
        """Return what breakdowns are made of; ``without_interval``: reason for which there is none."""
        self._mend_audit()
        return self.writer.facts(range(self.size), without_interval)

    def changes(self) -> set[str]:
        """Return the names of the pieces that have changed since this was asked for last."""
        if not self._news:
            return set()
        key = self.writer.key
        names = {f"index-{key}", f"names-{key}-0"}
        names |= {f"text-{key}-{row // PER_TEXT}" for row in self._news}
        names |= {f"rows-{key}-{row // PER_GROWING}" for row in self._news}
        names |= {f"media-{key}-{row}" for row in self._renewed}
        pieces = {row // PER_COLUMN for row in self._news}
        for column in range(len(self._columns)):
            names |= {f"values-{key}-{column}", *(f"column-{key}-{column}-{piece}" for piece in pieces)}
        self._news, self._renewed = set(), set()
        return names

    def _mend_audit(self) -> None:
        if self._is_audit_stale:
            self.writer.audit_anew()
            self._is_audit_stale = False
