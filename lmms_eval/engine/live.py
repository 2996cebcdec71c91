"""Progress of a running evaluation: a display in the terminal, and files in the run's folder for those who watch it.

``outline.json`` is written once, before anything is asked: the tasks, their documents in order, and the numbers that
may have an interval. Together with the journals a viewer computes from it the same interval as the run itself.
``live-RANK.json`` holds the current counts of each process.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from msgspec import Struct, field

from lmms_eval.engine.plan import TaskPlan
from lmms_eval.storage.atomic import replacing
from lmms_eval.storage.lines import read_sealed, sealed
from lmms_eval.utils.numbers import ScoreRange, item_number
from lmms_eval.utils.terminal import is_live

if TYPE_CHECKING:
    from lmms_eval.engine.headline import HeadlinePart
    from lmms_eval.engine.looks import Sampling

PLAIN_INTERVAL_S = 30.0
RUNNING_INTERVAL_S = 1.0
WIDE = 72
"""Minimum number of columns for a progress bar; in a narrower terminal it would hide the score and the failures."""
_NARROW = "{n_fmt}/{total_fmt} {remaining}{postfix}"
SCORE_UNIT = 1_000_000
"""Processes exchange sums of scores as whole numbers, multiplied by this."""
_SUM, _COUNT = "score of ", "scores of "
"""Prefixes of a task's name in the counts that processes exchange."""


class MeanSoFar(NamedTuple):
    """Mean of the recorded numbers of a task's documents so far; not the score of the task."""

    value: float
    documents: int


class ProgressLook(Struct, frozen=True):
    """Counts of a run at one moment, including its other processes."""

    done: int
    total: int
    failed: int
    tokens: int
    rate: float
    """Documents per second since the start."""
    scores: Mapping[str, MeanSoFar] = field(default_factory=dict)
    """Running scores by task; empty unless they are counted by task."""


class ProgressLine:
    """Counts documents as they are scored, and shows the counts in the terminal."""

    def __init__(
        self, total: int, initial: int = 0, enabled: bool = True, running: Callable[[], str] = lambda: ""
    ) -> None:
        """Start counting.

        Args:
            total: number of documents of the run.
            initial: number of documents that earlier starts finished.
            enabled: show the progress (off for other processes and library use).
            running: returns the text of the running score with its interval; called at most once per second.
        """
        self._lock = threading.Lock()
        self.total, self.done, self.failed = total, initial, 0
        self.count_tokens: Callable[[], int] = lambda: 0
        """Returns the number of generated tokens of this start."""
        self._initial = initial
        self._score_sum, self._score_count = 0.0, 0
        self._by_task: dict[str, list[float]] | None = None
        """Sums and counts of scores; ``None`` unless they are requested."""
        self._others: Counter[str] = Counter()
        self._running, self._running_text, self._asked_running = running, "", -math.inf
        self._started = self._last_line = time.monotonic()
        self._enabled = enabled
        self._bar: Any = None
        if enabled and is_live(sys.stderr, os.environ):
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=initial, unit="doc", dynamic_ncols=True, smoothing=0.05)

    @property
    def tokens(self) -> int:
        return self.count_tokens()

    def document(self, record: dict[str, Any]) -> None:
        """Count a finished document by its journal record."""
        with self._lock:
            self.done += 1
            if "failed" in record:
                self.failed += 1
            else:
                number = _number(record)
                if number is not None:
                    self._score_sum += number
                    self._score_count += 1
                    if self._by_task is not None:
                        self._count_for_task(self._by_task, record, number)
            if self._enabled:
                self._show()

    def count_by_task(self, earlier: Iterable[Mapping[str, Any]]) -> None:
        """Count scores by task too, from now on; ``earlier`` are the records of finished documents."""
        with self._lock:
            self._by_task = {}
            for record in earlier:
                if "failed" not in record and (number := _number(record)) is not None:
                    self._count_for_task(self._by_task, record, number)

    def look(self) -> ProgressLook:
        """Return the current counts."""
        with self._lock:
            done, others = self._all_done, self._others
            names = set(self._by_task or ()) | {name[len(_SUM) :] for name in others if name.startswith(_SUM)}
            scores = {}
            for name in names:
                total, count = (self._by_task or {}).get(name, (0.0, 0))
                total, count = total + others[_SUM + name] / SCORE_UNIT, count + others[_COUNT + name]
                if count:
                    scores[name] = MeanSoFar(total / count, int(count))
            return ProgressLook(
                done, self.total, self.failed + others["failed"], self.tokens + others["tokens"],
                (done - self._initial) / max(time.monotonic() - self._started, 1e-9), scores,
            )  # fmt: skip

    def counts(self) -> dict[str, int]:
        """Return the counts of this process in this start, for the other processes."""
        with self._lock:
            by_task: dict[str, int] = {}
            for name, (total, count) in (self._by_task or {}).items():
                by_task |= {_SUM + name: round(total * SCORE_UNIT), _COUNT + name: int(count)}
            return by_task | {
                "done": self.done - self._initial,
                "failed": self.failed,
                "tokens": self.tokens,
                "score": round(self._score_sum * SCORE_UNIT),
                "scores": self._score_count,
            }

    def add_others(self, counts: Mapping[str, int]) -> None:
        """Receive the sums of ``counts`` over all other processes."""
        with self._lock:
            self._others = Counter(counts)
            self._show()

    def close(self) -> None:
        self._asked_running = -math.inf
        try:
            if self._bar is not None:
                self._bar.set_postfix_str(self._state(), refresh=False)
                self._bar.close()
            elif self._enabled and time.monotonic() - self._started >= PLAIN_INTERVAL_S:
                self._line()
        except OSError:
            self._give_up()

    def _show(self) -> None:
        try:
            if self._bar is not None:
                self._bar.bar_format = _NARROW if _columns() < WIDE else None
                self._bar.set_postfix_str(self._state(), refresh=False)
                self._bar.update(self._all_done - self._bar.n)
            elif self._enabled and time.monotonic() - self._last_line >= PLAIN_INTERVAL_S:
                self._last_line = time.monotonic()
                self._line()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """Stop the display but not the run, if the terminal is gone or the disk of a log is full."""
        self._bar, self._enabled = None, False

    @property
    def _all_done(self) -> int:
        return self.done + self._others["done"]

    @staticmethod
    def _count_for_task(by_task: dict[str, list[float]], record: Mapping[str, Any], number: float) -> None:
        sums = by_task.setdefault(record["task"], [0.0, 0])
        sums[0] += number
        sums[1] += 1

    def _state(self) -> str:
        others = self._others
        number, total = self._score_count + others["scores"], self._score_sum + others["score"] / SCORE_UNIT
        # Scores of earlier starts are not included: they would have to be read again for a preliminary number.
        new = f"(of {number} new) " if self._initial else ""
        score = f"score {total / number:.4f} {new}" if number else ""
        if (now := time.monotonic()) - self._asked_running >= RUNNING_INTERVAL_S:
            self._running_text, self._asked_running = self._running(), now
        if self._running_text:
            score = f"{self._running_text} "
        return f"{score}failed {self.failed + others['failed']} tokens {self.tokens + others['tokens']}"

    def _line(self) -> None:
        done = self._all_done
        rate = (done - self._initial) / max(time.monotonic() - self._started, 1e-9)
        left = (self.total - done) / rate if rate > 0 else float("inf")
        sys.stderr.write(f"{done}/{self.total} documents, {rate:.1f}/s, {left:.0f} s left, {self._state()}\n")
        sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):  # standard error is closed, or not a terminal
        return WIDE


def _number(record: Mapping[str, Any]) -> float | None:
    """Return the number of a scored document from its first metric that has one."""
    for value in (record["scores"][0]["metrics"] if record["scores"] else {}).values():
        number = item_number(value)
        if number is not None and math.isfinite(number):
            return float(number)
    return None


VITALS = "live-*.json"
INTERVAL_S = 1.0


class Vitals:
    """Context of a thread that writes the ``counts`` of this process to ``live-RANK.json`` once per second.

    Write errors are ignored: watching never fails a run.
    """

    def __init__(self, folder: Path, rank: int, counts: Callable[[], dict[str, int]]) -> None:
        self._path = folder / VITALS.replace("*", str(rank))
        self._counts = counts
        self._begun = {"host": socket.gethostname(), "pid": os.getpid(), "started": time.time()}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="vitals", daemon=True)

    def __enter__(self) -> Vitals:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        while True:
            content = {**self._begun, "time": time.time(), **self._counts()}
            if (memory := resident_bytes(os.getpid())) is not None:
                content["memory"] = memory
            with contextlib.suppress(OSError), replacing(self._path, survives_power_loss=False) as file:
                file.write(orjson.dumps(content))
            if self._ended.wait(INTERVAL_S):
                return


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process in bytes; ``None`` if the system does not report it."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


OUTLINE = "outline.json"
OF_A_CONTROL = "the task is asked otherwise, as a control"
NOT_RANDOM = "documents are not asked in a random order (--order random)"

_NESTED = ("within", "baseline", "strata", "anchors")
"""Fields of a ``HeadlinePart`` whose values are not as they are in JSON."""


class TaskOutline(Struct, frozen=True):
    """One task of a run."""

    requested: int
    order: Sequence[int] = ()
    """The documents in random order; empty without such an order."""
    part: HeadlinePart | None = None
    """The task's headline number; ``None`` if it has no interval before the end of the run."""
    reason: str = NOT_RANDOM
    """Reason why there is no interval."""


class RunOutline(Struct, frozen=True):
    """The tasks of a run, and the number that the run shows."""

    tasks: Mapping[str, TaskOutline] = field(default_factory=dict)
    whole: tuple[HeadlinePart, ...] = ()
    """Parts of the number that the run shows; empty if it has no interval."""


def outline_of(
    plans: Sequence[TaskPlan], sampling: Sampling | None, parts: Mapping[str, HeadlinePart | str]
) -> RunOutline:
    """Return the outline of a run; ``parts``: each task's headline number, or why it has no interval."""
    tasks = {}
    for plan in plans:
        part = NOT_RANDOM if sampling is None else parts.get(plan.task.name, OF_A_CONTROL)
        if sampling is None or isinstance(part, str):
            tasks[plan.task.name] = TaskOutline(plan.requested, reason=str(part))
        else:
            tasks[plan.task.name] = TaskOutline(plan.requested, sampling.order.of(plan), part, "")
    return RunOutline(tasks, () if sampling is None else sampling.shown)


def write_outline(folder: Path, outline: RunOutline) -> None:
    """Write the outline into a run's folder. Raises ``OSError``."""
    tasks = {name: _task_record(task) for name, task in outline.tasks.items()}
    content = {"tasks": tasks, "whole": [_part_record(part, outline.tasks[part.task].order) for part in outline.whole]}
    with replacing(folder / OUTLINE, survives_power_loss=False) as file:
        file.write(sealed(orjson.dumps(content)))


def read_outline(folder: Path) -> RunOutline:
    """Read the outline of a run; an outline without tasks if the file is missing or damaged."""
    from lmms_eval.engine.headline import Anchors, HeadlinePart  # only a run in random order needs them

    try:
        record = read_sealed(folder / OUTLINE) or {"tasks": {}, "whole": []}

        def part(flat: Mapping[str, Any]) -> HeadlinePart:
            task, (low, high) = record["tasks"][flat["task"]], flat["within"]
            strata = None if task["strata"] is None else dict(zip(task["order"], task["strata"], strict=True))
            anchors = None
            if (kept := flat.get("anchors")) is not None:  # outlines of earlier versions have no such key
                shares = dict(zip(task["order"], kept["shares"], strict=True))
                anchors = Anchors(tuple(kept["runs"]), shares, kept["known"])
            own = {name: flat[name] for name in HeadlinePart.__struct_fields__ if name not in _NESTED}
            return HeadlinePart(**own, within=ScoreRange(low, high), strata=strata, anchors=anchors)

        tasks = {
            name: TaskOutline(task["requested"], task["order"], task["part"] and part(task["part"]), task["reason"])
            for name, task in record["tasks"].items()
        }
        return RunOutline(tasks, tuple(part(one) for one in record["whole"]))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return RunOutline()


def _task_record(task: TaskOutline) -> dict[str, Any]:
    strata = None if task.part is None or task.part.strata is None else [task.part.strata[doc] for doc in task.order]
    part = None if task.part is None else _part_record(task.part, task.order)
    return {
        "requested": task.requested, "order": list(task.order), "strata": strata, "part": part, "reason": task.reason
    }  # fmt: skip


def _part_record(part: HeadlinePart, order: Sequence[int]) -> dict[str, Any]:
    flat = [name for name in part.__struct_fields__ if name not in _NESTED]
    record = {name: getattr(part, name) for name in flat} | {"within": [part.within.low, part.within.high]}
    if (found := part.anchors) is not None:
        shares = [found.shares[doc_id] for doc_id in order]
        record["anchors"] = {"runs": list(found.runs), "known": found.known, "shares": shares}
    return record
