"""Ends the scoring of a document in this process that takes too long, and notices one that ends the process.

Two things can hang. A loop of Python's own is ended from a second thread, which raises ``ScoringTimeout`` in the thread
that scores: the document has failed, the run goes on. Code that keeps the interpreter's lock (a regular expression, a
loop in an extension) stops every thread, this one too; it can only be ended with the process. Then the timer of
``faulthandler``, which needs no lock, writes into the pipe of a shell, and the shell says what hung, keeps it in
``hung.jsonl`` of the run's folder and kills the process. The next start reads that file and passes such documents over.

The shell waits for two signs of the timer with none of life between them: a process that was merely stopped (Ctrl-Z)
has one sign waiting when it goes on.

Scoring code may also end the process: ``os._exit`` is guarded while a run lasts (``guarded_exit``), so that it fails
one document. What no Python can catch (``abort``, a crash in an extension, a signal) leaves the shell, which says over
which document the process has ended and keeps that too. Such an end looks like any kill from outside, so only a
document over which the process has ended twice is passed over.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import orjson

from lmms_eval.engine.conversations import Job
from lmms_eval.engine.records import failure_record
from lmms_eval.storage.run_folder import HUNG

_INTERVAL = 0.6
"""Of the limit, between two signs of the timer: two of them make the limit and some patience."""
STATE_BYTES = 1 << 12
"""Room for what is being scored, a number and the name of a task, which is part of the names of files."""
_GUARD = r"""
late=0 killed=
while IFS= read -r line; do
  case $line in
    "Timeout ("*) late=$((late + 1)) ;;
    alive) late=0 ;;
    over) late=2 ;;
  esac
  [ "$late" -ge 2 ] || continue
  { IFS= read -r flag; IFS= read -r task; IFS= read -r doc_id; } < "$2"
  printf '{"task":%s,"doc_id":%s}\n' "$task" "$doc_id" >> "$3"
  printf 'error: task %s, document %s: %s\n' "$task" "$doc_id" "$4" >&2
  kill -KILL "$1"
  killed=1
  break
done
{ IFS= read -r flag; IFS= read -r task; IFS= read -r doc_id; } < "$2"
if [ -z "$killed" ] && [ "$flag" = busy ]; then
  printf '{"task":%s,"doc_id":%s,"ended":true}\n' "$task" "$doc_id" >> "$3"
  printf 'error: task %s, document %s: %s\n' "$task" "$doc_id" "$5" >&2
fi
rm -f "$2"
"""
_BUSY, _IDLE = b"busy\n", b"idle\n"
_ENDED = (
    "the process ended while it scored this document: its scoring code has ended it (exit in C, abort, a crash, the "
    "memory), or somebody has killed it. What was finished is kept: start the same command again. A document over "
    "which the process ends twice has failed then."
)
MOST_ENDS = 2
"""Ends of the process over one document, from which on its scoring is not tried again."""
_here = threading.local()
"""``scores``: this thread is in the midst of scoring a document."""


class _ExitGuard:
    """``os._exit`` while runs last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._exit: Callable[[int], NoReturn] = os._exit
        self._pid = 0

    def add(self, runs: int) -> None:
        """Count the runs that last; the guard is active while there is one."""
        with self._lock:
            was_standing, self._runs = self._runs > 0, self._runs + runs
            if self._runs and not was_standing:
                self._exit, self._pid = os._exit, os.getpid()
                setattr(os, "_exit", self)  # noqa: B010 - a plain assignment is one of another type
            elif was_standing and not self._runs:
                setattr(os, "_exit", self._exit)  # noqa: B010

    def __call__(self, status: int) -> NoReturn:
        if os.getpid() != self._pid:  # a child by fork ends as it likes
            self._exit(status)
        if getattr(_here, "scores", False):
            raise SystemExit(f"os._exit({status})")
        caller = sys._getframe(1)
        message = (
            f"error: {caller.f_code.co_filename}:{caller.f_lineno} called os._exit({status}), which ends the process "
            "at once; what was finished is kept, and the same command goes on from there\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, message.encode("utf-8", "replace"))
        self._exit(status or 1)


_guard = _ExitGuard()


@contextlib.contextmanager
def guarded_exit() -> Iterator[None]:
    """Context of a run: the code of a task or model that calls ``os._exit`` does not end the process without a word.

    In the thread that scores, the call raises ``SystemExit``, which fails the document. Elsewhere it says who has
    called it, and ends the process with another code than 0.
    """
    _guard.add(1)
    try:
        yield
    finally:
        _guard.add(-1)


class ScoringTimeout(BaseException):
    """Raised in a thread that scores, from outside. No ``Exception``: the code of tasks must not swallow it."""


class ScoringWatch:
    """Context in which one thread scores documents by ``call``, each for at most ``limit_s`` seconds.

    ``folder`` is the run's, where ``HUNG`` is kept; without one it is not.
    """

    def __init__(self, limit_s: float, folder: Path | None = None) -> None:
        self._limit_s = limit_s
        self._hung = os.devnull if folder is None else str(folder / HUNG)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._job: Job | None = None
        self._waited = 0.0
        """Seconds that the monitor has seen the document being scored; the time of a stopped process does not count."""
        self._has_raised = self._is_armed = False
        self._thread = 0

    def __enter__(self) -> ScoringWatch:
        self._thread = threading.get_ident()
        self._is_open = True
        file, path = tempfile.mkstemp(prefix="lmms-eval-scoring-")
        with os.fdopen(file, "r+b") as state:
            state.write(bytes(STATE_BYTES))  # a full disk is an error here, and the end of the process at a later store
            state.flush()
            self._state = mmap.mmap(state.fileno(), STATE_BYTES)
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(os.getpid()), path, self._hung, self._message(), _ENDED],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._shell.stdin is not None  # it was asked for
        self._pipe = self._shell.stdin.fileno()
        self._monitor = threading.Thread(target=self._watch, name="score-watch", daemon=True)
        self._monitor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._monitor.join()
        self._disarm()
        self.release()
        self._shell.communicate()
        with self._lock:
            self._is_open = False
            self._state.close()

    def release(self) -> None:
        """The process may end from now on: scoring that still goes on is not why."""
        with self._lock:
            if self._is_open:
                self._state[: len(_IDLE)] = _IDLE

    def call(self, job: Job, score: Callable[[Job], dict[str, Any]]) -> dict[str, Any]:
        """``score(job)``, or the record of a failure if it took too long."""
        try:
            self._begin(job)
            try:
                _here.scores = True
                return score(job)
            finally:
                _here.scores = False
                self._end()
        except ScoringTimeout:
            _here.scores = False
            self._end()  # it may have come in the midst of the first one; the next would come a look later
            reason = f"scoring took more than {self._limit_s:g} s and was ended"
            return failure_record(job.task.name, job.doc_id, job.answers, reason)

    def _begin(self, job: Job) -> None:
        # Three lines at the beginning of the file, whatever a longer name has left behind them. Stored in shared
        # memory: a call of the system would hand over the interpreter's lock at every document.
        lines = b"%s%s\n%d\n" % (_BUSY, orjson.dumps(job.task.name), job.doc_id)
        self._state[: len(lines)] = lines
        with self._lock:
            self._job, self._waited = job, 0.0
            if not self._is_armed:
                self._arm()

    def _end(self) -> None:
        with self._lock:
            self._state[: len(_IDLE)] = _IDLE
            self._job = None
            raised, self._has_raised = self._has_raised, False
        if raised:
            self._raise_there(None)  # takes back what has not arrived

    def _message(self) -> str:
        return (
            f"scoring took more than {self._limit_s:g} s and could not be ended, so the process was. Start the same "
            "command again: this document has failed then, the others go on. With `scoring: process` in the task's "
            "YAML a document that hangs ends alone."
        )

    def _watch(self) -> None:
        pause = min(1.0, self._limit_s / 16)
        last = time.monotonic()
        while not self._stopping.wait(pause):
            before, last = last, time.monotonic()
            with self._lock:
                if last - before > self._limit_s * _INTERVAL:
                    os.write(self._pipe, b"alive\n")
                if self._job is None:
                    self._disarm()
                    continue
                self._waited += min(last - before, 2 * pause)
                if self._waited > 2 * _INTERVAL * self._limit_s:
                    os.write(self._pipe, b"over\n")
                elif self._waited > self._limit_s:
                    # Again at each look: one that strikes in a destructor or in the callback of a weak reference is
                    # swallowed by the interpreter.
                    self._has_raised = True
                    self._raise_there(ScoringTimeout)
                self._arm()

    def _arm(self) -> None:
        faulthandler.dump_traceback_later(self._limit_s * _INTERVAL, repeat=True, file=self._pipe)
        self._is_armed = True

    def _disarm(self) -> None:
        if self._is_armed:
            faulthandler.cancel_dump_traceback_later()
        self._is_armed = False

    def _raise_there(self, kind: type[BaseException] | None) -> None:
        thing = None if kind is None else ctypes.py_object(kind)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), thing)


def hung_documents(folder: Path | None) -> dict[tuple[str, int], str]:
    """Find the documents over which earlier starts were ended, with the reason not to score them again."""
    file = None if folder is None else folder / HUNG
    if file is None or not file.exists():
        return {}
    hung: set[tuple[str, int]] = set()
    ended: Counter[tuple[str, int]] = Counter()
    for line in file.read_bytes().splitlines():
        try:
            record = orjson.loads(line)
            place = (str(record["task"]), int(record["doc_id"]))
        except (ValueError, KeyError, TypeError):  # torn
            continue
        if record.get("ended"):
            ended[place] += 1
        else:
            hung.add(place)
    again = f"(remove {file} to score it again)"
    found = {
        place: f"the process ended {count} times while it was scored {again}"
        for place, count in ended.items()
        if count >= MOST_ENDS
    }
    return found | {place: f"its scoring hung in an earlier start, which had to be ended {again}" for place in hung}
