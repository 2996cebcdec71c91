"""One run that is followed by its journals: each look reads what has come since the last one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.engine.records import SCORE
from lmms_eval.engine.run_outline import Outline, read_outline
from lmms_eval.errors import DataError
from lmms_eval.results.following.pace import Pace
from lmms_eval.results.following.scores import RunningScore
from lmms_eval.results.following.signs import Signs, read_signs
from lmms_eval.results.following.snapshot import Known, Snapshot, snapshot_of
from lmms_eval.results.following.tasks import Ending, TaskProgress
from lmms_eval.results.run_reader.finding import read_state
from lmms_eval.results.run_reader.journals import JOURNALS
from lmms_eval.results.run_reader.tails import JournalReplaced, JournalTails, TailRecord
from lmms_eval.results.samples import record_rows
from lmms_eval.storage.run_folder import has_live_owner

BUDGET_S = 0.3
"""Seconds that one look takes at most: of a large journal the rest is read at the next ones."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A document that was finished, or finished once more."""

    key: str
    """Mark of the settings under which it was scored."""
    task: str
    doc_id: int
    place: TailRecord
    rows: Sequence[dict[str, Any]]
    """Its lines of samples, one for each filter pipeline."""
    ending: Ending
    before: Ending | None
    """Of the time before, where it is finished once more."""


@dataclass(slots=True)
class Documents:
    """All that was scored under the same settings."""

    tasks: dict[str, TaskProgress] = field(default_factory=dict)
    scores: dict[str, RunningScore] = field(default_factory=dict)
    whole: RunningScore | None = None


class FollowedRun:
    """A run by its record: going on, interrupted, killed or ended. For one thread at a time.

    Args:
        folder: the run's record.
        take: called with every document that is finished, before the look that has found it returns.
        budget_s: seconds that a look takes at most.
    """

    def __init__(
        self, folder: Path, take: Callable[[Finished], None] | None = None, budget_s: float = BUDGET_S
    ) -> None:
        self.folder, self._take, self._budget_s = folder, take, budget_s
        self.begun = 0
        """Rises when the run is begun anew, and its journals are read from their beginning."""
        self._begin()

    def _begin(self) -> None:
        self.begun += 1
        self.state: Mapping[str, Any] = read_state(self.folder)
        self.outline: Outline = read_outline(self.folder)
        self.tails = JournalTails(self.folder, JOURNALS, SCORE)
        self._by_key: dict[str, Documents] = {}
        self._last_keys: dict[int, str] = {}
        self.key = ""
        """Mark of the settings whose documents count: those that were scored last."""
        self.problems: dict[str, None] = {}
        """Sentences about what could not be read."""
        self._pace = Pace()
        self.processes: Sequence[Signs] = ()
        self.is_read = False
        """All that the journals held has been read once."""
        self.is_going = False
        self.is_gone = False

    @property
    def documents(self) -> Documents:
        return self._by_key.get(self.key) or Documents()

    @property
    def stated(self) -> str:
        """State of the run, by its record and by whether a process of it is alive."""
        if self.is_gone:
            return "deleted"
        stated = str(self.state.get("state", "unknown"))
        return "interrupted" if stated == "running" and not self.is_going else stated

    @property
    def damaged(self) -> int:
        """Lines of the journals that are passed over; the last one of a run that goes on may be on its way."""
        return self.tails.damaged + (0 if self.is_going else self.tails.torn)

    def look(self) -> bool:
        """Read what is new; tells whether anything has changed. While the run goes on, its rates do."""
        was = self._facts()
        self._look_around()
        if not self.is_gone:
            self._read_news()
        return self.is_going or self._facts() != was

    def snapshot(self) -> Snapshot:
        """Return the numbers as they are now."""
        documents = self.documents
        scores = {task: score.shown() for task, score in documents.scores.items()}
        whole = None if documents.whole is None else documents.whole.shown()
        known = Known(
            self.stated, self.is_going, self.is_read, self.outline, documents.tasks, scores, whole,
            self._pace.rates(), self.processes,
        )  # fmt: skip
        return snapshot_of(known)

    def _facts(self) -> tuple[Any, ...]:
        version = sum(task.version for task in self.documents.tasks.values())
        counts = (self.begun, self.key, version, len(self.problems), self.damaged)
        return (*counts, self.is_going, self.is_gone, self.is_read, dict(self.state))

    @property
    def _marks(self) -> tuple[Any, Any]:
        """Tell this start's record from one that was begun anew under the same key."""
        return self.state.get("stamp"), self.state.get("date")

    def _look_around(self) -> None:
        """Read the small files that tell of the run."""
        if not self.folder.is_dir():
            self.is_gone, self.is_going, self.processes = True, False, ()
            return
        self.is_gone = False
        state = read_state(self.folder) or self.state
        if (state.get("stamp"), state.get("date")) != self._marks:
            self._begin()
        self.state = state
        if not self.outline.tasks:
            self.outline = read_outline(self.folder)
        self.is_going = state.get("state") == "running" and has_live_owner(self.folder)
        self.processes = read_signs(self.folder) if self.is_going else ()

    def _read_news(self) -> None:
        end = time.monotonic() + self._budget_s
        is_read = True
        try:
            with closing(self.tails.news()) as news:
                for found in news:
                    self._see(found)
                    if time.monotonic() > end:
                        is_read = False
                        break
        except JournalReplaced:
            self._begin()
            return
        except DataError as error:
            self.problems[str(error)] = None
        newest = self.tails.newest
        self.key = self.key if newest is None else self._last_keys.get(newest, self.key)
        self.is_read = self.is_read or is_read
        if self.is_read:
            tasks = self.documents.tasks.values()
            tokens = sum(task.tokens_in + task.tokens_out for task in tasks)
            self._pace.see(sum(task.done for task in tasks), tokens)

    def _see(self, found: TailRecord) -> None:
        record = found.record
        task, doc_id = record.get("task"), record.get("doc_id")
        if not isinstance(task, str) or not isinstance(doc_id, int):
            return
        key = self._last_keys[found.file] = str(record.get("key"))
        documents = self._documents_of(key)
        progress = documents.tasks.get(task) or TaskProgress()
        try:
            ending, rows = Ending.of(record), list(record_rows(record))
            if not progress.takes(doc_id, ending):
                return
            for score in (documents.scores.get(task), documents.whole):
                if score is not None:
                    score.note(record)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            self.problems[f"{task}, document {doc_id}: no record of a scored document ({error})"] = None
            return
        documents.tasks[task] = progress
        before = progress.endings.get(doc_id)
        progress.end(doc_id, ending)
        if self._take is not None:
            self._take(Finished(key, task, doc_id, found, rows, ending, before))

    def _documents_of(self, key: str) -> Documents:
        if key not in self._by_key:
            tasks = self.outline.tasks
            orders = {name: task.order for name, task in tasks.items()}
            scores = {name: RunningScore([task.part], orders) for name, task in tasks.items() if task.part is not None}
            whole = RunningScore(self.outline.whole, orders) if len(self.outline.whole) > 1 else None
            self._by_key[key] = Documents({}, scores, whole)
            self.key = self.key or key
        return self._by_key[key]
