"""A run without results in the live view: follows its journals, and makes the pieces of its pages."""

from __future__ import annotations

import math
import shutil
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers import harness_runs
from lmms_eval.compare.readers.samples import ReadTask, SampleCollector, completed
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.engine.live import RunOutline
from lmms_eval.errors import DataError
from lmms_eval.results.facts import record_facts
from lmms_eval.results.follow import BUDGET_S, MOST_REASONS, FollowedRun, ScoreSoFar, TaskSnapshot
from lmms_eval.results.journals import Finished, JournalSamples, TaskCounts
from lmms_eval.results.run import record_keys, record_name
from lmms_eval.results.sample import JudgePrompts, SampleKeys
from lmms_eval.utils.records import to_dict
from lmms_eval.viewer.certainty import LIST
from lmms_eval.viewer.chunks import PER_COLUMN, PER_GROWING, IndexColumn, TaskIndex, plain_number
from lmms_eval.viewer.live.pieces import LazyMedia, PieceError, PieceName, index_piece, sample_piece
from lmms_eval.viewer.numbers import warning
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import run_details, run_entry, selection_entry
from lmms_eval.viewer.runs import ReportRun, record_places
from lmms_eval.viewer.samples import PER_TEXT, IndexedTask, TaskWriter, ends_of, redacted


class GrowingTask:
    """The rows of a task in the order of finishing, and the pieces of its index."""

    def __init__(self, name: str, keys: SampleKeys, samples: JournalSamples, writer: TaskWriter) -> None:
        self.name, self.samples, self.writer = name, samples, writer
        self.version = 0
        """Number that increases with every change."""
        self._collector = SampleCollector(samples, name, keys)
        self._statuses: list[Status] = []
        self._read: tuple[int, ReadTask] | None = None
        self._columns: dict[str, IndexColumn] = {}
        """All columns since the start. Their numbers and codes never change, because pages may hold them already."""
        self._index: tuple[int, TaskIndex] | None = None
        self._news: set[int] = set()
        self._renewed: set[int] = set()
        self._is_audit_stale = False

    @property
    def size(self) -> int:
        return len(self._statuses)

    def add(self, found: Finished) -> int:
        """Add a document that is finished, or finished again. Returns its row. Raises ``DataError``."""
        lines = self.samples.add(found)
        if found.before is not None:
            self._collector.forget(str(found.doc_id))
        for line in lines:
            self._collector.add(line)
        row = self._collector.builder.row(str(found.doc_id))
        self._statuses[row : row + 1] = [found.ending.status]
        if found.before is not None:
            self._renewed.add(row)
            self._is_audit_stale |= found.before.status != "failed"  # the audit does not count failed documents
        self._news.add(row)
        self.version += 1
        self.writer.task = TaskRows(self.name, self._collector.builder.ids, self._statuses, {})
        self.writer.add(row, [line.record for line in lines])
        return row

    def rows(self) -> TaskRows:
        """Return the present rows."""
        if self._read is None or self._read[0] != self.version:
            self._read = (self.version, self._collector.task())
        return self._read[1].rows

    def index(self, rows: TaskRows) -> TaskIndex:
        """Return the present index. ``rows`` are the present rows."""
        if self._index is None or self._index[0] != self.version:
            self.writer.task = rows
            self._update_audit()
            found = {column.key: column for column in self.writer.columns(range(self.size))}
            for key, column in found.items():
                codes = self._columns[key].codes if key in self._columns else column.codes
                self._columns[key] = replace(column, codes=codes)
            kept = [column if key in found else replace(column, values=()) for key, column in self._columns.items()]
            self._index = (self.version, TaskIndex(kept, is_growing=True))
        return self._index[1]

    def shown(self, without_interval: str) -> IndexedTask:
        """Return the facts for breakdowns. ``without_interval``: the reason why these have no interval."""
        self._update_audit()
        return self.writer.facts(range(self.size), without_interval)

    def changes(self) -> set[str]:
        """Return the names of the pieces that have changed since the last call."""
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

    def _update_audit(self) -> None:
        if self._is_audit_stale:
            self.writer.audit_again()
            self._is_audit_stale = False


LATEST = 8
"""Samples that the page of a run shows as the latest ones."""


def latest_samples(task: TaskRows, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return what the page of a run shows of samples that have just finished, by row.

    ``rows`` are their cells of the index. The score is that of the task's first metric.
    """
    column = next(iter(task.columns.values()), None)
    scores = [] if column is None else [plain_number(score) for score in column.scores]
    ends = None if column is None else ends_of(column, scores)
    kept = ("id", "status", "answer", "target", "reason", "thumb")
    return {
        row: {
            "task": task.task,
            **{name: cells[name] for name in kept},
            "score": scores[row] if scores else None,
            **({} if ends is None else {"ends": ends}),
        }
        for row, cells in rows.items()
    }


MEAN_SO_FAR = "mean so far: no interval before the run has ended"
NO_MEAN = "aggregated when all documents are done"

Plain = dict[str, Any]


def live_rows(tasks: Mapping[str, TaskRows], outline: RunOutline, scores: Mapping[str, ScoreSoFar]) -> list[Plain]:
    """Return the numbers of each task: the live score with its interval, and means so far of the other metrics."""
    rows = []
    for name, task in tasks.items():
        outlined = outline.tasks.get(name)
        part = None if outlined is None else outlined.part
        for column in task.columns.values():
            row = _mean_so_far(name, column)
            if row is None:
                continue
            if part is not None and (part.metric, part.filter) == (column.metric, column.filter):
                shown = scores[name]
                row |= {"value": shown.value, "low": shown.low, "high": shown.high, "n": shown.n}
                row["method"] = shown.reason or f"valid at every look, over the first {shown.n:,}"
                row["about"] = "" if shown.low is None else LIST
            rows.append(row)
    return rows


def _mean_so_far(task: str, column: MetricColumn) -> Plain | None:
    known = [float(score) for score in column.scores if not math.isnan(score)]
    if not known:
        return None
    is_mean = column.scale != 0
    return {
        "task": task,
        "metric": column.metric,
        "filter": column.filter,
        "value": math.fsum(known) / len(known) if is_mean else None,
        "low": None,
        "high": None,
        "method": MEAN_SO_FAR if is_mean else NO_MEAN,
        "n": len(known),
        "higher": column.higher_is_better is not False,
        **({} if is_mean else {"withheld": NO_MEAN}),
    }


def live_task_entry(key: str, form: str, live: TaskSnapshot, progress: TaskCounts) -> Plain:
    """Return the summary of a task. ``form`` is a text that changes when rows are replaced by others."""
    counts, asked = progress.counts, live.requested
    return {
        "name": live.name,
        "key": key,
        "samples": progress.done,
        "per_text": PER_TEXT,
        "form": form,
        "outcomes": {
            "requested": asked,
            **{name: counts[name] for name in ("scored", "unscored", "failed")},
            "not_asked": max(0, asked - progress.done),
            "coverage": counts["scored"] / asked if asked else 0.0,
            "reasons": dict((+progress.reasons).most_common(MOST_REASONS)),
        },
    }


EVERY_S = 5.0
_QUERY = ("--query-gpu=name,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
_MIB = 1 << 20


class Machine:
    """Reads the state of the GPUs from nvidia-smi, if it is installed, in a thread."""

    def __init__(self, program: str | None = None) -> None:
        self._program = program or shutil.which("nvidia-smi")
        self._ended = threading.Event()
        self.gpus: list[Plain] = []

    def start(self) -> None:
        if self._program is not None:
            threading.Thread(target=self._ask, args=(self._program,), name="gpus", daemon=True).start()

    def close(self) -> None:
        self._ended.set()

    def _ask(self, program: str) -> None:
        while not self._ended.is_set():
            try:
                answer = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=20, check=True)
            except (OSError, subprocess.SubprocessError):
                self.gpus = []
                return
            self.gpus = read_gpus(answer.stdout.splitlines())
            self._ended.wait(EVERY_S)


def read_gpus(lines: Sequence[str]) -> list[Plain]:
    """Parse the lines of nvidia-smi, passing over lines of another form.

    Returns for each GPU ``name``, ``busy`` (share of the time that it computed), and ``used`` and ``total`` memory in
    bytes. Numbers that the driver does not report are ``None``.
    """
    found = []
    for line in lines:
        name, *numbers = (word.strip() for word in line.rsplit(",", 3))
        if len(numbers) == 3:
            busy, used, total = map(_number, numbers)
            found.append(
                {
                    "name": name,
                    "busy": None if busy is None else busy / 100,
                    "used": None if used is None else int(used * _MIB),
                    "total": None if total is None else int(total * _MIB),
                }
            )
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # [N/A]
        return None


DETAILS_EVERY_S = 5.0
"""Least seconds between two changes of breakdowns and distributions that are reported to pages."""
RUNNING = "the run has not ended"


class UnfinishedRun:
    """A run without results, which is running, interrupted or killed. It is thread-safe.

    ``folder`` is the run's record, and ``budget_s`` is the most seconds of a look.
    """

    def __init__(
        self, folder: Path, number: int, options: ReportOptions, media: LazyMedia, budget_s: float = BUDGET_S
    ) -> None:
        self.folder, self.number, self._options, self._media = folder, number, options, media
        self._lock = threading.RLock()
        self._machine_name = socket.gethostname()
        self._run = FollowedRun(folder, self._take, budget_s)
        self._prompts = JudgePrompts(folder)
        self._by_key: dict[str, dict[str, GrowingTask]] = {}
        self._begun = self._run.begun
        self._latest: deque[tuple[str, str, int]] = deque(maxlen=LATEST)
        """Key, task and row of the samples that finished last."""
        self._details_told = 0.0
        self._details_version = 0

    @property
    def name(self) -> str:
        return record_name(self.folder, self._run.record)

    @property
    def is_read(self) -> bool:
        """True if the present journals have been read once, or have been deleted."""
        return self._run.is_read or self._run.is_gone

    def look(self) -> set[str]:
        """Read new records, and return the names of the changed pieces.

        They include ``runs`` after any change, and ``*`` if rows were replaced by others.
        """
        with self._lock:
            form = self._form
            has_changed = self._run.look()
            self._drop_earlier()
            changed = {name for task in self._tasks.values() for name in task.changes()}
            if form != self._form:
                changed.add("*")
            if has_changed or changed:
                changed.add("runs")
            version, now = sum(task.version for task in self._tasks.values()), time.monotonic()
            if version != self._details_version and now - self._details_told >= DETAILS_EVERY_S:
                self._details_version, self._details_told = version, now
                changed |= {f"run-{self.number}", f"audit-{self.number}"}
            return changed

    @property
    def _form(self) -> str:
        return f"{self._run.begun}.{self._run.key}"

    @property
    def _tasks(self) -> Mapping[str, GrowingTask]:
        return self._by_key.get(self._run.key) or {}

    def _drop_earlier(self) -> None:
        """Drop all rows if the run was begun anew."""
        if self._begun != self._run.begun:
            self._by_key, self._begun, self._prompts = {}, self._run.begun, JudgePrompts(self.folder)
            self._latest.clear()

    def _take(self, found: Finished) -> None:
        self._drop_earlier()
        tasks = self._by_key.setdefault(found.key, {})
        try:
            if found.task not in tasks:
                known = [*self._run.outline.tasks]
                place = known.index(found.task) if found.task in known else len(known) + len(set(tasks) - set(known))
                keys = record_keys(record_facts(self._run.record), found.task)
                name, empty = f"{self.number}-{place}", TaskRows(found.task, [], [], {})
                writer = TaskWriter(self._report_run(), empty, name, self._options, self._media)
                tasks[found.task] = GrowingTask(found.task, keys, JournalSamples(self._run.journals.tails), writer)
            self._latest.append((found.key, found.task, tasks[found.task].add(found)))
        except DataError as error:
            self._run.problems[str(error)] = None

    def _report_run(self, tasks: Mapping[str, TaskRows] | None = None) -> ReportRun:
        rows = RunRows(self.name, str(self.folder), harness_runs.OWN, tasks or {})
        places = record_places(self.folder, self._options.allowed)
        self._prompts.renew()
        return ReportRun(rows, {}, self._run.record, places, tuple(self._run.problems), self._prompts)

    def entry(self, name: str, machine: Machine) -> dict[str, Any]:
        """Return the summary of the run, which the first page and its own page show."""
        with self._lock:
            live = self._run.snapshot()
            scores = {task.name: task.score for task in live.tasks if task.score is not None}
            tasks = {task: self._rows(growing) for task, growing in self._tasks.items()}
            run = self._report_run(tasks)
            entry = run_entry(run, self.number, name, live_rows(tasks, self._run.outline, scores))
            progress = self._run.tasks
            entry["tasks"] = [
                live_task_entry(self._tasks[task.name].writer.key, self._form, task, progress[task.name])
                for task in live.tasks
                if task.name in self._tasks
            ]
            entry["selection"] = selection_entry(run, entry["tasks"], self._options)
            entry["state"] = live.state
            arguments = self._run.record.get("arguments")
            entry["model_args"] = arguments.get("model_args") or "" if isinstance(arguments, Mapping) else ""
            warnings = [one for one in entry["warnings"] if one["kind"] != "state"]
            if self._run.is_gone:
                text = f"{self.folder} was deleted or moved: what was read before is shown"
                warnings.insert(0, warning("state", "", text))
            elif not self._run.is_going:
                why = f"failed: {self._run.record.get('error')}" if live.state == "failed" else f"is {live.state}"
                warnings.insert(0, warning("state", "", f"the run {why}"))
            if self._run.damaged:
                text = f"{self.folder}: {self._run.damaged} torn or damaged lines of the journal are passed over"
                warnings.append(warning("problem", "", text))
            entry["warnings"] = warnings
            is_here = any(signs.host == self._machine_name for signs in self._run.processes)
            gpus = machine.gpus if live.is_going and is_here else []
            entry["live"] = to_dict(live) | {"gpus": gpus, "latest": self._latest_samples(tasks)}
            tokens = {"input_tokens": live.tokens_in, "output_tokens": live.tokens_out}
            entry["usage"] = {"total": {**tokens, "total_tokens": live.tokens_in + live.tokens_out}}
            found: dict[str, Any] = redacted(entry, self._options.redact)
            return found

    def _latest_samples(self, tasks: Mapping[str, TaskRows]) -> list[dict[str, Any]]:
        latest = dict.fromkeys((task, row) for key, task, row in reversed(self._latest) if key == self._run.key)
        found = {
            name: latest_samples(tasks[name], {row: growing.writer.cells(row) for task, row in latest if task == name})
            for name, growing in self._tasks.items()
        }
        return [found[task][row] for task, row in latest]

    def _rows(self, growing: GrowingTask) -> TaskRows:
        return completed(growing.rows(), record_facts(self._run.record))

    def piece(self, name: PieceName) -> Any:
        """Make a piece. Raises ``PieceError`` if the run has no piece of this name."""
        with self._lock:
            if name.kind == "run":
                run = self._report_run({name: self._rows(growing) for name, growing in self._tasks.items()})
                facts = {name: growing.shown(self._reason) for name, growing in self._tasks.items()}
                return run_details(run, facts, self._options.redact, self._reason)
            if name.kind == "audit":
                audits = [audit for task in self._tasks.values() for audit in task.shown(self._reason).audits]
                return redacted(audits, self._options.redact)
            growing = next((task for task in self._tasks.values() if task.writer.key == name.key), None)
            if growing is None:
                raise PieceError(name)
            if name.kind not in ("text", "media"):
                return index_piece(growing.index(self._rows(growing)), name)
            growing.writer.task, growing.writer.run = growing.rows(), self._report_run()
            return sample_piece(growing.writer, growing.size, name, self._media.store)

    @property
    def _reason(self) -> str:
        """The reason why numbers have no interval. During the run, it would be valid for one look only."""
        return RUNNING if self._run.is_going else ""
