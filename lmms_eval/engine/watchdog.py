"""Watches the scoring of documents in this process: ends it if it takes too long, and records if it ends the process.

There are two kinds of hangs. Python code is ended by a second thread, which raises ``ScoringTimeout`` in the scoring
thread: the document fails, and the run continues. Code that holds the interpreter's lock (a regular expression, a loop
in an extension) blocks all threads, so it can only be ended with the process. In that case the timer of
``faulthandler``, which needs no lock, writes to the pipe of a shell. The shell reports the document, records it in
``hung.jsonl`` of the run's folder, and kills the process. The next start skips the documents in that file.

The shell waits for two messages of the timer without a sign of life between them, since a process that was only
suspended (Ctrl-Z) has one message pending when it is resumed.

Scoring code may also end the process. ``os._exit`` is replaced during a run (``guarded_exit``), so that it fails only
one document. After ``abort``, a crash in an extension or a signal only the shell is left, which reports and records the
document. A kill from outside looks the same, so a document is skipped only if the process ended twice while scoring it.
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

from lmms_eval.engine.conversations import AnsweredDocument
from lmms_eval.engine.records import answer_record
from lmms_eval.storage.run_folder import HUNG

_INTERVAL = 0.6
"""Interval of the timer as a share of the limit: two intervals are a little more than the limit."""
STATE_BYTES = 1 << 12
"""Size of the file that names the document being scored: its task, whose name fits into file names, and its number."""
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
"""Number of times that the process must have ended while scoring a document for the document to be skipped."""
_here = threading.local()
"""``scores``: this thread is scoring a document."""


class _ExitGuard:
    """Replacement of ``os._exit`` during runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._exit: Callable[[int], NoReturn] = os._exit
        self._pid = 0

    def add(self, runs: int) -> None:
        """Change the number of active runs; the guard is installed while there is at least one."""
        with self._lock:
            was_active, self._runs = self._runs > 0, self._runs + runs
            if self._runs and not was_active:
                self._exit, self._pid = os._exit, os.getpid()
                setattr(os, "_exit", self)  # noqa: B010 - a plain assignment has the wrong type
            elif was_active and not self._runs:
                setattr(os, "_exit", self._exit)  # noqa: B010

    def __call__(self, status: int) -> NoReturn:
        if os.getpid() != self._pid:  # a forked child may exit
            self._exit(status)
        if getattr(_here, "scores", False):
            raise SystemExit(f"os._exit({status})")
        caller = sys._getframe(1)
        message = (
            f"error: {caller.f_code.co_filename}:{caller.f_lineno} called os._exit({status}), which ends the process "
            "at once; finished answers are kept: start the same command again to continue\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, message.encode("utf-8", "replace"))
        self._exit(status or 1)


_guard = _ExitGuard()


@contextlib.contextmanager
def guarded_exit() -> Iterator[None]:
    """Context of a run that keeps ``os._exit`` from ending the process silently.

    In a scoring thread the call raises ``SystemExit``, which fails the document. Elsewhere it reports the caller, and
    ends the process with a code other than 0.
    """
    _guard.add(1)
    try:
        yield
    finally:
        _guard.add(-1)


class ScoringTimeout(BaseException):
    """Raised from outside in a scoring thread. Not an ``Exception``, so that code of tasks does not catch it."""


class ScoringWatch:
    """Context of threads that score documents through ``call``, one at a time, each for at most ``limit_s`` seconds.

    Without the run's ``folder``, which holds the file ``HUNG``, nothing is recorded.
    """

    def __init__(self, limit_s: float, folder: Path | None = None) -> None:
        self._limit_s = limit_s
        self._hung = os.devnull if folder is None else str(folder / HUNG)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._job: AnsweredDocument | None = None
        self._waited = 0.0
        """Seconds of scoring the document, without the time that the process was suspended."""
        self._has_raised = self._is_armed = False
        self._thread = 0

    def __enter__(self) -> ScoringWatch:
        self._is_open = True
        file, path = tempfile.mkstemp(prefix="lmms-eval-scoring-")
        with os.fdopen(file, "r+b") as state:
            state.write(bytes(STATE_BYTES))  # a full disk raises here; later it would end the process
            state.flush()
            self._state = mmap.mmap(state.fileno(), STATE_BYTES)
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(os.getpid()), path, self._hung, self._message(), _ENDED],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._shell.stdin is not None  # it is a pipe
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
        """Allow the process to end from now on, even if scoring still runs."""
        with self._lock:
            if self._is_open:
                self._state[: len(_IDLE)] = _IDLE

    def call(self, job: AnsweredDocument, score: Callable[[AnsweredDocument], dict[str, Any]]) -> dict[str, Any]:
        """Return ``score(job)``, or the record of a failure if it takes too long."""
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
            self._end()  # the exception may have interrupted the first call; another one could follow
            reason = f"scoring took more than {self._limit_s:g} s and was ended"
            answers = [answer_record(answer) for answer in job.answers]
            return {"task": job.task.name, "doc_id": job.doc_id, "answers": answers, "failed": reason}

    def _begin(self, job: AnsweredDocument) -> None:
        # Three lines at the beginning of the file; a longer name may have left bytes behind them. Written to shared
        # memory, since a system call would release the interpreter's lock for every document.
        lines = b"%s%s\n%d\n" % (_BUSY, orjson.dumps(job.task.name), job.doc_id)
        self._state[: len(lines)] = lines
        with self._lock:
            self._job, self._waited, self._thread = job, 0.0, threading.get_ident()
            if not self._is_armed:
                self._arm()

    def _end(self) -> None:
        with self._lock:
            self._state[: len(_IDLE)] = _IDLE
            self._job = None
            raised, self._has_raised = self._has_raised, False
        if raised:
            self._raise_there(None)  # cancels an exception that has not been raised yet

    def _message(self) -> str:
        return (
            f"scoring took more than {self._limit_s:g} s and could not be ended, so the process was. Start the same "
            "command again: this document will count as failed, and the others continue. With `scoring: process` in "
            "the task's YAML a document that hangs does not end the run."
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
                    # Repeated, since the interpreter ignores an exception in a destructor or weak reference callback.
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
    """Return the documents whose scoring ended earlier starts, with the reason not to score them again."""
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
