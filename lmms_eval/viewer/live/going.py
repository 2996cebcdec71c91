"""A run that is followed by its journals, as pieces of a report at any time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lmms_eval.compare.readers import harness_runs
from lmms_eval.compare.readers.result_facts import Results
from lmms_eval.compare.runs import RunRows, TaskRows
from lmms_eval.engine.judgements import PATTERN as JUDGEMENTS
from lmms_eval.errors import DataError
from lmms_eval.results.following.run import BUDGET_S, Finished, FollowedRun
from lmms_eval.results.following.snapshot import Snapshot
from lmms_eval.results.run_reader.journals import JournalSamples
from lmms_eval.results.run_reader.judge_prompts import JudgePrompts
from lmms_eval.viewer.live.growing import GrowingTask
from lmms_eval.viewer.live.machine import Machine
from lmms_eval.viewer.live.numbers import live_rows, live_task_entry, live_usage
from lmms_eval.viewer.live.pieces import PieceError, PieceName, Viewed, index_piece
from lmms_eval.viewer.report import run_details, run_entry, selection_told
from lmms_eval.viewer.runs import ReportRun, record_places
from lmms_eval.viewer.samples import TaskWriter, redacted

DETAILS_EVERY_S = 5.0
"""Breakdowns and distributions are told to have changed so often at most."""
RUNNING = "the run goes on"


class GoingRun:
    """A run without results: going on, interrupted or killed. Safe from several threads.

    Args:
        folder: the run's record.
        number: of the run in the view.
        viewed: the choices of the view, and the maker of its pictures.
        budget_s: seconds that a look takes at most.
    """

    def __init__(self, folder: Path, number: int, viewed: Viewed, budget_s: float = BUDGET_S) -> None:
        self.folder, self.number, self._viewed = folder, number, viewed
        self._lock = threading.RLock()
        self._machine_name = socket.gethostname()
        self._run = FollowedRun(folder, self._take, budget_s)
        self._prompts = _Prompts(folder)
        self._by_key: dict[str, dict[str, GrowingTask]] = {}
        self._begun = self._run.begun
        self._details_told = 0.0
        self._details_version = 0

    @property
    def name(self) -> str:
        return harness_runs.record_name(self.folder, self._run.state)

    @property
    def is_read(self) -> bool:
        """All that the journals held has been read once, or is there no more."""
        return self._run.is_read or self._run.is_gone

    def look(self) -> set[str]:
        """Read what is new; returns the names of the pieces that have changed: ``runs`` where anything has, ``*`` where
        rows have become others."""
        with self._lock:
            form = self._form
            has_changed = self._run.look()
            self._forget_others()
            changed = {name for task in self._tasks.values() for name in task.changes()}
            if form != self._form:
                changed.add("*")
            if has_changed or changed:
                changed.add("runs")
            return changed | self._details_due()

    @property
    def _form(self) -> str:
        return f"{self._run.begun}.{self._run.key}"

    @property
    def _tasks(self) -> Mapping[str, GrowingTask]:
        return self._by_key.get(self._run.key) or {}

    def _forget_others(self) -> None:
        """Forget the rows of before the run was begun anew."""
        if self._begun != self._run.begun:
            self._by_key, self._begun, self._prompts = {}, self._run.begun, _Prompts(self.folder)

    def _take(self, found: Finished) -> None:
        self._forget_others()
        tasks = self._by_key.setdefault(found.key, {})
        try:
            if found.task not in tasks:
                tasks[found.task] = self._growing(found.task, tasks)
            tasks[found.task].add(found)
        except DataError as error:
            self._run.problems[f"{found.task}, document {found.doc_id}: {error}"] = None

    def _growing(self, task: str, others: Mapping[str, GrowingTask]) -> GrowingTask:
        known = [*self._run.outline.tasks]
        place = known.index(task) if task in known else len(known) + len(set(others) - set(known))
        facts = replace(Results.of_record(self._run.state).facts(task), metrics=None)
        key, empty = f"{self.number}-{place}", TaskRows(task, [], [], {})
        writer = TaskWriter(self._report_run(), empty, key, self._viewed.options, self._viewed.media)
        return GrowingTask(task, facts, JournalSamples(self._run.tails.files), writer)

    def _report_run(self, tasks: Mapping[str, TaskRows] | None = None) -> ReportRun:
        rows = RunRows(self.name, str(self.folder), harness_runs.OWN, tasks or {})
        places = record_places(self.folder, self._viewed.options.allowed)
        return ReportRun(rows, {}, self._run.state, places, tuple(self._run.problems), self._prompts.present())

    def _details_due(self) -> set[str]:
        version = sum(task.version for task in self._tasks.values())
        now = time.monotonic()
        if version == self._details_version or now - self._details_told < DETAILS_EVERY_S:
            return set()
        self._details_version, self._details_told = version, now
        return {f"run-{self.number}", f"audit-{self.number}"}

    def entry(self, name: str, machine: Machine) -> dict[str, Any]:
        """Tell of the run what the first page and its own show first."""
        with self._lock:
            live = self._run.snapshot()
            scores = {task.name: task.score for task in live.tasks if task.score is not None}
            tasks = {task: self._rows(growing) for task, growing in self._tasks.items()}
            run = self._report_run(tasks)
            entry = run_entry(run, self.number, name, live_rows(tasks, self._run.outline, scores))
            entry["tasks"] = self._task_entries(live)
            entry["selection"] = selection_told(run, entry["tasks"], self._viewed.options)
            entry["state"] = live.state
            arguments = self._run.state.get("arguments")
            entry["model_args"] = arguments.get("model_args") or "" if isinstance(arguments, Mapping) else ""
            entry["warnings"] = self._warnings(entry["warnings"])
            entry["live"] = asdict(live) | {"gpus": self._gpus(machine) if live.is_going else []}
            entry["usage"] = {"total": live_usage(live)}
            found: dict[str, Any] = redacted(entry, self._viewed.options.redact)
            return found

    def _task_entries(self, live: Snapshot) -> list[dict[str, Any]]:
        progress = self._run.documents.tasks
        return [
            live_task_entry(self._tasks[told.name].writer.key, self._form, told, progress[told.name])
            for told in live.tasks
            if told.name in self._tasks
        ]

    def _rows(self, growing: GrowingTask) -> TaskRows:
        return Results.of_record(self._run.state).complete(growing.rows())

    def _warnings(self, found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        kept = [one for one in found if one["kind"] != "state"]
        if self._run.is_gone:
            text = f"{self.folder} was deleted or moved: what was read before is shown"
            kept.insert(0, {"kind": "state", "task": "", "text": text})
        elif not self._run.is_going:
            kept.insert(0, {"kind": "state", "task": "", "text": f"the run is {self._run.stated}"})
        if self._run.damaged:
            text = f"{self.folder}: {self._run.damaged} torn or damaged lines of the journal are passed over"
            kept.append({"kind": "problem", "task": "", "text": text})
        return kept

    def _gpus(self, machine: Machine) -> list[dict[str, Any]]:
        is_here = any(signs.host == self._machine_name for signs in self._run.processes)
        return [asdict(gpu) for gpu in machine.gpus] if is_here else []

    def piece(self, name: PieceName) -> Any:
        """Make a piece. Raises ``PieceError`` if the run has none of that name."""
        with self._lock:
            if name.kind == "run":
                return self._details()
            if name.kind == "audit":
                audits = [audit for task in self._tasks.values() for audit in task.shown(self._reason).audits]
                return redacted(audits, self._viewed.options.redact)
            growing = next((task for task in self._tasks.values() if task.writer.key == name.key), None)
            if growing is None:
                raise PieceError(name)
            if name.kind not in ("text", "media"):
                return index_piece(growing.index(self._rows(growing)), name)
            growing.writer.task, growing.writer.run = growing.rows(), self._report_run()
            return self._viewed.sample_piece(growing.writer, growing.size, name)

    @property
    def _reason(self) -> str:
        """Reason for which numbers have no interval that is meant for one look."""
        return RUNNING if self._run.is_going else ""

    def _details(self) -> dict[str, Any]:
        run = self._report_run({name: self._rows(growing) for name, growing in self._tasks.items()})
        facts = {name: growing.shown(self._reason) for name, growing in self._tasks.items()}
        content = {**run_details(run, facts, self._reason), "document": {}, "state": dict(self._run.state)}
        found: dict[str, Any] = redacted(content, self._viewed.options.redact)
        return found


class _Prompts:
    """Prompts of a judge that are asked meanwhile: read anew where there are more, now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found = JudgePrompts(folder)
        self._size, self._next = 0, 0.0

    def present(self) -> JudgePrompts:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + DETAILS_EVERY_S
            size = sum(path.stat().st_size for path in self._folder.glob(JUDGEMENTS))
            if size != self._size:
                self._found, self._size = JudgePrompts(self._folder), size
        return self._found
