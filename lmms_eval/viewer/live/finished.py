"""A run that has ended, as the report shows it; its pieces are made when a page asks for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from lmms_eval.viewer.columns import TaskIndex
from lmms_eval.viewer.live.pieces import PieceError, PieceName, Viewed, index_piece
from lmms_eval.viewer.numbers import result_rows
from lmms_eval.viewer.report import run_details, run_entry, selection_told
from lmms_eval.viewer.runs import ReportRun, finished_run
from lmms_eval.viewer.samples import PER_TEXT, TaskFacts, TaskWriter, redacted
from lmms_eval.viewer.warnings import outcome_counts


class FinishedRun:
    """A run with results. Safe from several threads.

    Args:
        path: its results file.
        number: of the run in the view.
        viewed: the choices of the view, and the maker of its pictures.

    Raises:
        DataError: the file cannot be read.
    """

    def __init__(self, path: Path, number: int, viewed: Viewed) -> None:
        self.path, self.number, self._viewed = path, number, viewed
        self._run: ReportRun = finished_run(path, viewed.options.allowed)
        self._lock = threading.Lock()
        self._writers = [
            TaskWriter(self._run, task, f"{number}-{place}", viewed.options, viewed.media)
            for place, task in enumerate(self._run.rows.tasks.values())
        ]
        self._indices: dict[int, TaskIndex] = {}

    @property
    def name(self) -> str:
        return self._run.rows.name

    def entry(self, name: str) -> dict[str, Any]:
        """Tell of the run what the first page and its own show first."""
        entry = run_entry(self._run, self.number, name, result_rows(self._run))
        entry["tasks"] = [
            {
                "name": writer.task.task,
                "key": writer.key,
                "samples": len(writer.task.ids),
                "per_text": PER_TEXT,
                "outcomes": outcome_counts(self._run, writer.task.task),
            }
            for writer in self._writers
        ]
        entry["selection"] = selection_told(self._run, entry["tasks"], self._viewed.options)
        if not self.path.is_file():
            text = f"{self.path} was deleted or moved: what was read before is shown"
            entry["warnings"] = [{"kind": "problem", "task": "", "text": text}, *entry["warnings"]]
        found: dict[str, Any] = redacted(entry, self._viewed.options.redact)
        return found

    def piece(self, name: PieceName) -> Any:
        """Make a piece. Raises ``PieceError`` if the run has none of that name."""
        with self._lock:
            if name.kind == "run":
                return self._details()
            if name.kind == "audit":
                audits = [audit for place in range(len(self._writers)) for audit in self._facts(place).audits]
                return redacted(audits, self._viewed.options.redact)
            if name.task >= len(self._writers):
                raise PieceError(name)
            writer = self._writers[name.task]
            if name.kind in ("text", "media"):
                return self._viewed.sample_piece(writer, len(writer.task.ids), name)
            return index_piece(self._index(name.task), name)

    def _details(self) -> dict[str, Any]:
        facts = {writer.task.task: self._facts(place) for place, writer in enumerate(self._writers)}
        document = {key: value for key, value in self._run.document.items() if key not in ("results", "intervals")}
        content = {**run_details(self._run, facts), "document": document, "state": dict(self._run.state)}
        found: dict[str, Any] = redacted(content, self._viewed.options.redact)
        return found

    def _facts(self, place: int) -> TaskFacts:
        self._index(place)
        return self._writers[place].facts(range(len(self._writers[place].task.ids)))

    def _index(self, place: int) -> TaskIndex:
        """Return the index of a task, for which all its samples are read, once."""
        if place not in self._indices:
            writer = self._writers[place]
            rows = range(len(writer.task.ids))
            for row in rows:
                writer.note(row)
            self._indices[place] = TaskIndex(writer.columns(rows))
        return self._indices[place]
