"""Runs jobs of a library in a reusable child process that is killed when it takes too long."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.utils.line_process import LineProcess, ProcessEnded

START_LIMIT = 120.0
"""Seconds until a fresh child must be ready; importing sympy on a loaded machine takes several."""
CALLS_PER_CHILD = 500


class LimitExceeded(LmmsEvalError):
    """The job took more time or memory than it was given; its child process is gone."""


class JobError(LmmsEvalError):
    """The job itself raised; the message names the error."""


@dataclass(slots=True)
class _Child:
    """One worker process, and how often it was asked."""

    process: LineProcess
    owner: int
    """Id of the process that started it."""
    calls: int = 0

    def receive(self, limit: float) -> dict[str, Any]:
        """The next message. Raises ``ProcessEnded`` if none comes within ``limit`` seconds."""
        message: dict[str, Any] = json.loads(self.process.receive(limit))
        return message

    def end(self) -> None:
        """Kill the process and wait for it; a process that a fork inherited is left to its owner."""
        if self.owner == os.getpid():
            self.process.kill()
        self.process.close()


class Guard:
    """One child process, started at the first call, replaced after ``calls_per_child`` calls or when it was killed.

    Calls from several threads wait for each other. After a fork the child belongs to the parent, and a new one is
    started here.

    Args:
        worker: module that serves the jobs (``guarded_worker.run``).
        needs: packages of the worker, for the message where it does not start.
        calls_per_child: jobs after which a child is replaced.
    """

    def __init__(self, worker: str, needs: str, calls_per_child: int = CALLS_PER_CHILD) -> None:
        self._worker, self._needs = worker, needs
        self._calls_per_child = calls_per_child
        self._lock = threading.Lock()
        self._child: _Child | None = None

    @property
    def child_pid(self) -> int | None:
        """Process id of the child, ``None`` while there is none."""
        return None if self._child is None else self._child.process.pid

    def call(self, job: str, *arguments: Any, limit: float) -> Any:
        """The job's result. Raises ``LimitExceeded`` after ``limit`` seconds, ``JobError`` if the job raised.

        Raises ``NotEvaluated`` if no child process can be started.
        """
        with self._lock:
            child = self._ready_child()
            child.calls += 1
            try:
                child.process.send(json.dumps({"job": job, "args": arguments, "limit": limit}).encode())
                reply = child.receive(limit)
            except ProcessEnded:
                reply = None
                self._discard()
        if reply is None or "memory" in reply:
            raise LimitExceeded(f"{job} took more than {limit:g} s or too much memory")
        if "error" in reply:
            raise JobError(f"{job} raised {reply['error']}")
        return reply["value"]

    def close(self) -> None:
        """End the child process."""
        with self._lock:
            self._discard()

    def _ready_child(self) -> _Child:
        child = self._child
        if child is not None:
            if child.owner == os.getpid() and not child.process.has_ended and child.calls < self._calls_per_child:
                return child
            self._discard()
        try:
            child = self._child = _Child(LineProcess(self._worker, quiet=True), os.getpid())
        except OSError as error:
            raise NotEvaluated(f"no process {self._worker} could be started: {error}") from error
        try:
            child.receive(START_LIMIT)
        except ProcessEnded as ended:
            self._discard()
            raise NotEvaluated(
                f"the process {self._worker} did not start: is {self._needs} installed? ({ended})"
            ) from ended
        return child

    def _discard(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()
