"""A run that is followed by its journals: what is known of it at any time, as pieces of a report."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.compare.readers import harness_runs
from lmms_eval.compare.readers.result_facts import Results
from lmms_eval.compare.runs import RunRows, TaskRows
from lmms_eval.engine.judgements import PATTERN as JUDGEMENTS
from lmms_eval.engine.run_outline import Outline, TaskOutline, read_outline
from lmms_eval.engine.vitals import VITALS
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.finding import read_state
from lmms_eval.results.run_reader.journals import JOURNALS, JournalSamples
from lmms_eval.results.run_reader.judge_prompts import JudgePrompts
from lmms_eval.results.run_reader.tails import JournalReplaced, JournalTails, TailRecord
from lmms_eval.storage.run_folder import has_live_owner
from lmms_eval.viewer.live.growing import GrowingTask
from lmms_eval.viewer.live.machine import Machine
from lmms_eval.viewer.live.numbers import live_entry, live_rows, live_task_entry, live_usage
from lmms_eval.viewer.live.pieces import PieceError, PieceName, Viewed, index_piece
from lmms_eval.viewer.live.running import Pace, RunningScore
from lmms_eval.viewer.report import run_entry, selection_told, task_details
from lmms_eval.viewer.runs import ReportRun
from lmms_eval.viewer.samples import TaskWriter, redacted

BUDGET_S = 0.3
"""Time that one look takes at most: of a large journal the rest is read at the next ones."""
DETAILS_EVERY_S = 5.0
"""Breakdowns and distributions are told to have changed so often at most."""
STALE_S = 10.0
"""Signs of a process that are so much older than those of another are of one that is gone."""
RUNNING = "the run goes on"


@dataclass(slots=True)
class _Documents:
    """All that was scored under the same settings."""

    tasks: dict[str, GrowingTask] = field(default_factory=dict)
    scores: dict[str, RunningScore] = field(default_factory=dict)
    whole: RunningScore | None = None


class GoingRun:
    """A run without results: going on, interrupted or killed. Safe from several threads.

    Args:
        folder: the run's record.
        number: of the run in the view.
        viewed: the choices of the view, and the maker of its pictures.
    """

    def __init__(self, folder: Path, number: int, viewed: Viewed) -> None:
        self.folder, self.number, self._viewed = folder, number, viewed
        self._lock = threading.RLock()
        self._machine_name = socket.gethostname()
        self._begun = 0
        self._begin()

    def _begin(self) -> None:
        self._begun += 1
        self._prompts = _Prompts(self.folder)
        self.state: Mapping[str, Any] = read_state(self.folder)
        self._outline: Outline = read_outline(self.folder)
        self._tails = JournalTails(self.folder, JOURNALS)
        self._by_key: dict[str, _Documents] = {}
        self._last_keys: dict[int, str] = {}
        self._key = ""
        self._problems: dict[str, None] = {}
        self._pace = Pace()
        self._vitals: list[dict[str, Any]] = []
        self._details_told = 0.0
        self._details_version = 0
        self.is_read = False
        """All that the journals held has been read once."""
        self.is_going = False
        self.is_gone = False

    @property
    def name(self) -> str:
        return harness_runs.record_name(self.folder, self.state)

    @property
    def marks(self) -> tuple[Any, Any]:
        """Tell this start's record from one that was begun anew under the same key."""
        return self.state.get("stamp"), self.state.get("date")

    def look(self) -> set[str]:
        """Read what is new; returns the names of the pieces that have changed.

        ``runs`` is among them where anything has. A journal that was begun anew is read from its beginning.
        """
        with self._lock:
            was = (self.is_going, self.is_gone, len(self._problems), dict(self.state))
            self._look_around()
            changed = set() if self.is_gone else self._read_news()
            if self.is_going or changed or was != (self.is_going, self.is_gone, len(self._problems), dict(self.state)):
                changed.add("runs")
            return changed | self._details_due()

    def _look_around(self) -> None:
        """Read the small files that tell of the run."""
        if not self.folder.is_dir():
            self.is_gone, self.is_going, self._vitals = True, False, []
            return
        self.is_gone = False
        state = read_state(self.folder) or self.state
        if (state.get("stamp"), state.get("date")) != self.marks:
            self._begin()
        self.state = state
        if not self._outline.tasks:
            self._outline = read_outline(self.folder)
        self.is_going = state.get("state") == "running" and has_live_owner(self.folder)
        self._vitals = _all_vitals(self.folder) if self.is_going else []

    def _read_news(self) -> set[str]:
        end = time.monotonic() + BUDGET_S
        is_read = True
        try:
            with closing(self._tails.news()) as news:
                for found in news:
                    self._take(found)
                    if time.monotonic() > end:
                        is_read = False
                        break
        except JournalReplaced:
            self._begin()
            return {"*"}
        except DataError as error:
            self._problems[str(error)] = None
        changed = {name for task in self._documents.tasks.values() for name in task.changes()}
        self._choose_key(changed)
        self.is_read = self.is_read or is_read
        if self.is_read:
            found_all = self._documents.tasks.values()
            self._pace.see(
                sum(task.size for task in found_all), sum(task.tokens_in + task.tokens_out for task in found_all)
            )
        return changed

    def _take(self, found: TailRecord) -> None:
        record = found.record
        task, doc_id = record.get("task"), record.get("doc_id")
        if not isinstance(task, str) or not isinstance(doc_id, int):
            return
        key = self._last_keys[found.file] = str(record.get("key"))
        documents = self._documents_of(key)
        try:
            if self._growing(documents, task).add(found) is None:
                return
            for score in (documents.scores.get(task), documents.whole):
                if score is not None:
                    score.note(record)
        except (DataError, KeyError, TypeError, AttributeError, ValueError) as error:
            self._problems[f"{task}, document {doc_id}: no record of a scored document ({error})"] = None

    def _documents_of(self, key: str) -> _Documents:
        if key not in self._by_key:
            tasks = self._outline.tasks
            orders = {name: task.order for name, task in tasks.items()}
            scores = {name: RunningScore([task.part], orders) for name, task in tasks.items() if task.part is not None}
            whole = RunningScore(self._outline.whole, orders) if len(self._outline.whole) > 1 else None
            self._by_key[key] = _Documents({}, scores, whole)
            self._key = self._key or key
        return self._by_key[key]

    def _choose_key(self, changed: set[str]) -> None:
        """Take the documents that were scored last; others were scored by functions or settings that have changed."""
        newest = self._tails.newest
        key = self._last_keys.get(newest, self._key) if newest is not None else self._key
        if key != self._key:
            self._key = key
            changed.add("*")

    def _growing(self, documents: _Documents, task: str) -> GrowingTask:
        if task not in documents.tasks:
            known = [*self._outline.tasks]
            place = known.index(task) if task in known else len(known) + len(set(documents.tasks) - set(known))
            facts = replace(Results.of_record(self.state).facts(task), metrics=None)
            key = f"{self.number}-{place}"
            empty = TaskRows(task, [], [], {})
            writer = TaskWriter(self._report_run(), empty, key, self._viewed.options, self._viewed.media)
            documents.tasks[task] = GrowingTask(task, facts, JournalSamples(self._tails.files), writer)
        return documents.tasks[task]

    @property
    def _documents(self) -> _Documents:
        return self._by_key.get(self._key) or _Documents()

    def _report_run(self, tasks: Mapping[str, TaskRows] | None = None) -> ReportRun:
        rows = RunRows(self.name, str(self.folder), harness_runs.OWN, tasks or {})
        folders = (self.folder.parent.parent, self.folder)
        return ReportRun(rows, {}, self.state, folders, tuple(self._problems), self._prompts.present())

    def _details_due(self) -> set[str]:
        version = sum(task.version for task in self._documents.tasks.values())
        now = time.monotonic()
        if version == self._details_version or now - self._details_told < DETAILS_EVERY_S:
            return set()
        self._details_version, self._details_told = version, now
        return {f"run-{self.number}", f"audit-{self.number}"}

    def entry(self, name: str, machine: Machine) -> dict[str, Any]:
        """Tell of the run what the first page and its own show first."""
        with self._lock:
            documents = self._documents
            scores = {task: score.shown() for task, score in documents.scores.items()}
            tasks = {task: self._rows(growing) for task, growing in documents.tasks.items()}
            rows = live_rows(tasks, self._outline, scores)
            run = self._report_run(tasks)
            entry = run_entry(run, self.number, name, rows)
            places = {task: place for place, task in enumerate(self._outline.tasks)}
            listed = sorted(documents.tasks.values(), key=lambda task: places.get(task.name, len(places)))
            form = f"{self._begun}.{self._key}"
            entry["tasks"] = [live_task_entry(task, self._requested(task.name), form) for task in listed]
            entry["selection"] = selection_told(run, entry["tasks"], self._viewed.options)
            entry["state"] = self._state()
            arguments = self.state.get("arguments")
            entry["model_args"] = arguments.get("model_args") or "" if isinstance(arguments, Mapping) else ""
            entry["warnings"] = self._warnings(entry["warnings"])
            entry["live"] = live_entry(
                outline=self._with_others(), documents=documents.tasks, scores=scores,
                whole=None if documents.whole is None else documents.whole.shown(), rates=self._pace.rates(),
                vitals=self._vitals,
            ) | {
                "is_going": self.is_going, "is_read": self.is_read,
                "gpus": self._gpus(machine) if self.is_going else [],
            }  # fmt: skip
            entry["usage"] = {"total": live_usage(entry["live"])}
            found: dict[str, Any] = redacted(entry, self._viewed.options.redact)
            return found

    def _rows(self, growing: GrowingTask) -> TaskRows:
        return Results.of_record(self.state).complete(growing.rows())

    def _requested(self, task: str) -> int | None:
        found = self._outline.tasks.get(task)
        return None if found is None else found.requested

    def _with_others(self) -> Outline:
        """The outline, with the tasks that only the journals name."""
        unknown = {task: TaskOutline(growing.size, reason="") for task, growing in self._documents.tasks.items()}
        return replace(self._outline, tasks={**unknown, **self._outline.tasks})

    def _state(self) -> str:
        if self.is_gone:
            return "deleted"
        stated = str(self.state.get("state", "unknown"))
        return "interrupted" if stated == "running" and not self.is_going else stated

    def _warnings(self, found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        kept = [one for one in found if one["kind"] != "state"]
        if self.is_gone:
            text = f"{self.folder} was deleted or moved: what was read before is shown"
            kept.insert(0, {"kind": "state", "task": "", "text": text})
        elif not self.is_going:
            kept.insert(0, {"kind": "state", "task": "", "text": f"the run is {self._state()}"})
        damaged = self._tails.damaged + (0 if self.is_going else self._tails.torn)
        if damaged:
            text = f"{self.folder}: {damaged} torn or damaged lines of the journal are passed over"
            kept.append({"kind": "problem", "task": "", "text": text})
        return kept

    def _gpus(self, machine: Machine) -> list[dict[str, Any]]:
        if not any(told.get("host") == self._machine_name for told in self._vitals):
            return []
        return [{"name": gpu.name, "busy": gpu.busy, "used": gpu.used, "total": gpu.total} for gpu in machine.gpus]

    def piece(self, name: PieceName) -> Any:
        """Make a piece. Raises ``PieceError`` if the run has none of that name."""
        with self._lock:
            if name.kind == "run":
                return self._details()
            if name.kind == "audit":
                audits = [audit for task in self._documents.tasks.values() for audit in task.shown(self._reason).audits]
                return redacted(audits, self._viewed.options.redact)
            growing = next(
                (task for task in self._documents.tasks.values() if task.writer.key == name.key), None
            )  # fmt: skip
            if growing is None:
                raise PieceError(name)
            if name.kind not in ("text", "media"):
                return index_piece(growing.index(self._rows(growing)), name)
            growing.writer.task, growing.writer.run = growing.rows(), self._report_run()
            return self._viewed.sample_piece(growing.writer, growing.size, name)

    @property
    def _reason(self) -> str:
        """Reason for which numbers have no interval that is meant for one look."""
        return RUNNING if self.is_going else ""

    def _details(self) -> dict[str, Any]:
        tasks = {name: self._rows(growing) for name, growing in self._documents.tasks.items()}
        run = self._report_run(tasks)
        details = {
            name: task_details(run, name, growing.shown(self._reason), self._reason)
            for name, growing in self._documents.tasks.items()
        }
        content = {"tasks": details, "document": {}, "state": dict(self.state)}
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


def _all_vitals(folder: Path) -> list[dict[str, Any]]:
    """Read the signs of all processes; a killed one of an earlier launch has left an old file."""
    found = [told for path in sorted(folder.glob(VITALS)) if (told := _vitals(path))]
    newest = max((told["time"] for told in found), default=0.0)
    return [told for told in found if told["time"] >= newest - STALE_S]


def _vitals(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("time"), int | float) else {}
