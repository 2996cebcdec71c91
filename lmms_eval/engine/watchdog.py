"""Ends the scoring of a document in this process that takes too long.

Two things can hang. A loop of Python's own is ended from a second thread, which raises ``ScoringTimeout`` in the thread
that scores: the document has failed, the run goes on. Code that keeps the interpreter's lock (a regular expression, a
loop in an extension) stops every thread, this one too; it can only be ended with the process. Then the timer of
``faulthandler``, which needs no lock, writes into the pipe of a shell, and the shell says what hung, keeps it in
``hung.jsonl`` of the run's folder and kills the process. The next start reads that file and passes such documents over.

The shell waits for two signs of the timer with none of life between them: a process that was merely stopped (Ctrl-Z)
has one sign waiting when it goes on.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from lmms_eval.engine.conversations import Job
from lmms_eval.engine.records import failure_record
from lmms_eval.storage.run_folder import HUNG

_INTERVAL = 0.6
"""Of the limit, between two signs of the timer: two of them make the limit and some patience."""
STATE_BYTES = 1 << 12
"""Room for what is being scored, a number and the name of a task, which is part of the names of files."""
_GUARD = r"""
late=0
while IFS= read -r line; do
  case $line in
    "Timeout ("*) late=$((late + 1)) ;;
    alive) late=0 ;;
    over) late=2 ;;
  esac
  [ "$late" -ge 2 ] || continue
  { IFS= read -r task; IFS= read -r doc_id; } < "$2"
  printf '{"task":%s,"doc_id":%s}\n' "$task" "$doc_id" >> "$3"
  printf 'error: task %s, document %s: %s\n' "$task" "$doc_id" "$4" >&2
  kill -KILL "$1"
  break
done
rm -f "$2"
"""


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
        file, path = tempfile.mkstemp(prefix="lmms-eval-scoring-")
        with os.fdopen(file, "r+b") as state:
            state.write(bytes(STATE_BYTES))  # a full disk is an error here, and the end of the process at a later store
            state.flush()
            self._state = mmap.mmap(state.fileno(), STATE_BYTES)
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(os.getpid()), path, self._hung, self._message()],
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
        self._shell.communicate()
        self._state.close()

    def call(self, job: Job, score: Callable[[Job], dict[str, Any]]) -> dict[str, Any]:
        """``score(job)``, or the record of a failure if it took too long."""
        try:
            self._begin(job)
            try:
                return score(job)
            finally:
                self._end()
        except ScoringTimeout:
            self._end()  # it may have come in the midst of the first one; the next would come a look later
            reason = f"scoring took more than {self._limit_s:g} s and was ended"
            return failure_record(job.task.name, job.doc_id, job.answers, reason)

    def _begin(self, job: Job) -> None:
        # Two lines at the beginning of the file, whatever a longer name has left behind them. Stored in shared memory:
        # a call of the system would hand over the interpreter's lock at every document.
        lines = b"%s\n%d\n" % (orjson.dumps(job.task.name), job.doc_id)
        self._state[: len(lines)] = lines
        with self._lock:
            self._job, self._waited = job, 0.0
            if not self._is_armed:
                self._arm()

    def _end(self) -> None:
        with self._lock:
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
    found: dict[tuple[str, int], str] = {}
    for line in file.read_bytes().splitlines():
        try:
            record = orjson.loads(line)
            place = (str(record["task"]), int(record["doc_id"]))
        except (ValueError, KeyError, TypeError):  # torn
            continue
        found[place] = f"its scoring hung in an earlier start, which had to be ended (remove {file} to score it again)"
    return found
