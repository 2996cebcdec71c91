"""A run that has ended, as the report shows it; its pieces are made when a page asks for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from lmms_eval.viewer.live.pieces import PER_INDEX, PieceError, PieceName, Viewed
from lmms_eval.viewer.numbers import outcome_counts, result_rows
from lmms_eval.viewer.report import run_entry, task_details
from lmms_eval.viewer.runs import ReportRun, finished_run
from lmms_eval.viewer.samples import PER_TEXT, TaskWriter, redacted


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
        self._run: ReportRun = finished_run(path)
        self._lock = threading.Lock()
        self._writers = [
            TaskWriter(self._run, task, f"{number}-{place}", viewed.options, viewed.media, per_index=PER_INDEX)
            for place, task in enumerate(self._run.rows.tasks.values())
        ]
        self._noted: set[int] = set()

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
                "index_parts": max(1, -(-len(writer.task.ids) // PER_INDEX)),
                "per_index": PER_INDEX,
                "per_text": PER_TEXT,
                "outcomes": outcome_counts(self._run, writer.task.task),
            }
            for writer in self._writers
        ]
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
            if name.task >= len(self._writers):
                raise PieceError(name)
            writer = self._writers[name.task]
            size = len(writer.task.ids)
            if name.kind == "index":
                self._note(name.task)
                return writer.index_part(writer.facts(range(size)), name.place)
            return self._viewed.sample_piece(writer, size, name)

    def _details(self) -> dict[str, Any]:
        tasks = {}
        for place, writer in enumerate(self._writers):
            self._note(place)
            facts = writer.facts(range(len(writer.task.ids)))
            tasks[writer.task.task] = task_details(self._run, writer.task.task, facts)
        document = {key: value for key, value in self._run.document.items() if key not in ("results", "intervals")}
        content = {"tasks": tasks, "document": document, "state": dict(self._run.state)}
        found: dict[str, Any] = redacted(content, self._viewed.options.redact)
        return found

    def _note(self, place: int) -> None:
        """Read the samples of a task into its index, once."""
        if place not in self._noted:
            for row in range(len(self._writers[place].task.ids)):
                self._writers[place].note(row, row)
            self._noted.add(place)
