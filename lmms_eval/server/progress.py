"""Progress of a run that goes on, from its journals: documents finished, failed, and the running score of each task."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.results.run_reader.journals import JOURNALS
from lmms_eval.stats import item_number
from lmms_eval.storage import codec
from lmms_eval.storage.lines import unsealed


@dataclass(slots=True)
class _Task:
    scores: dict[int, float | None] = field(default_factory=dict)
    """By document; ``None``: it has failed, or is not scored."""
    failed: set[int] = field(default_factory=set)
    metric: str = ""

    def note(self, doc_id: int, record: Mapping[str, Any]) -> None:
        if "failed" in record:
            if doc_id not in self.scores:
                self.failed.add(doc_id)
                self.scores[doc_id] = None
            return
        self.failed.discard(doc_id)
        self.scores[doc_id] = None
        for name, value in (record["scores"][0]["metrics"] if record.get("scores") else {}).items():
            number = item_number(value)
            if number is not None and math.isfinite(number):
                self.metric, self.scores[doc_id] = self.metric or name, float(number)
                return

    def told(self) -> dict[str, Any]:
        known = [score for score in self.scores.values() if score is not None]
        told: dict[str, Any] = {"done": len(self.scores), "failed": len(self.failed)}
        if known:
            told |= {"metric": self.metric, "score": math.fsum(known) / len(known), "n": len(known)}
        return told


@dataclass(slots=True)
class RunProgress:
    """Follows the journals of one record; each look reads what has come since the last one.

    The score of a task is the mean of its first metric over the documents that are finished, which is no estimate of
    the final one while the costliest documents are asked first.
    """

    folder: Path
    _tasks: dict[str, _Task] = field(default_factory=dict)
    _read: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """By file its number on the disk, and the bytes of whole lines that were read."""
    _key: Any = None

    def look(self) -> dict[str, Any]:
        """Read the news and tell the tasks. A file that cannot be read now is read at another look."""
        for path in sorted(self.folder.glob(JOURNALS)):
            try:
                for record in self._news(path):
                    self._note(record)
            except OSError:
                continue
        return {name: task.told() for name, task in self._tasks.items()}

    def _note(self, record: Mapping[str, Any]) -> None:
        if record.get("key") != self._key:  # other settings of the scoring
            self._tasks, self._key = {}, record.get("key")
        doc_id = record.get("doc_id")
        if isinstance(doc_id, int):
            self._tasks.setdefault(str(record.get("task")), _Task()).note(doc_id, record)

    def _news(self, path: Path) -> Iterator[dict[str, Any]]:
        found = os.stat(path)
        number, place = self._read.get(path, (found.st_ino, 0))
        if number != found.st_ino or found.st_size < place:  # begun anew
            self._tasks, self._read, number, place = {}, {}, found.st_ino, 0
        self._read[path] = number, place
        if found.st_size == place:
            return
        with open(path, "rb") as file:
            file.seek(place)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                place += len(line)
                self._read[path] = number, place
                if (content := unsealed(line)) is not None:
                    yield codec.loads(content)


@dataclass(slots=True)
class JobProgress:
    """Progress of a job: of all records that its run writes, each followed on."""

    _runs: dict[Path, RunProgress] = field(default_factory=dict)

    def look(self, records: Iterator[Path]) -> dict[str, Any]:
        """Tell the tasks by name."""
        told: dict[str, Any] = {}
        for folder in records:
            told |= self._runs.setdefault(folder, RunProgress(folder)).look()
        return told
