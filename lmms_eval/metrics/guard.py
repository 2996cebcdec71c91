"""Runs jobs of a library in a reusable child process that is killed when it takes too long."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.utils.line_process import LineProcess, ProcessEnded

START_LIMIT = 120.0
"""Seconds until a new child must be ready; importing sympy on a loaded machine takes several."""
CALLS_PER_CHILD = 500


class LimitExceeded(LmmsEvalError):
    """The job exceeded its time or memory; its child process was killed."""


class JobError(LmmsEvalError):
    """The job itself raised; the message names the error."""


class GuardedProcess:
    """One child process, started at the first call, replaced after ``calls_per_child`` calls or when it was killed.

    Calls from several threads wait for each other. After a fork the child belongs to the parent, and the forked process
    starts its own.

    Args:
        worker: module that serves the jobs (``guarded_worker.run``).
        needs: packages that the worker needs, for the message if it does not start.
        calls_per_child: jobs after which a child is replaced.
    """

    def __init__(self, worker: str, needs: str, calls_per_child: int = CALLS_PER_CHILD) -> None:
        self._worker, self._needs = worker, needs
        self._calls_per_child = calls_per_child
        self._lock = threading.Lock()
        self._child: LineProcess | None = None
        self._owner = self._calls = 0

    @property
    def child_pid(self) -> int | None:
        """Process id of the child, or ``None`` if no child is running."""
        return None if self._child is None else self._child.pid

    def call(self, job: str, *arguments: Any, limit: float) -> Any:
        """Run a job and return its result.

        Raises:
            LimitExceeded: it took more than ``limit`` seconds, or too much memory.
            JobError: the job raised.
            NotEvaluated: no child process can be started.
        """
        with self._lock:
            child = self._ready_child()
            self._calls += 1
            try:
                child.send(json.dumps({"job": job, "args": arguments, "limit": limit}).encode())
                reply: dict[str, Any] | None = json.loads(child.receive(limit))
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

    def _ready_child(self) -> LineProcess:
        is_own = self._owner == os.getpid()
        if self._child and is_own and not self._child.has_ended and self._calls < self._calls_per_child:
            return self._child
        self._discard()
        try:
            child = LineProcess(self._worker, quiet=True)
        except OSError as error:
            raise NotEvaluated(f"no process {self._worker} could be started: {error}") from error
        self._child, self._owner, self._calls = child, os.getpid(), 0
        try:
            child.receive(START_LIMIT)  # it reports that it is ready
        except ProcessEnded as ended:
            self._discard()
            raise NotEvaluated(
                f"the process {self._worker} did not start: is {self._needs} installed? ({ended})"
            ) from ended
        return child

    def _discard(self) -> None:
        """Kill the child and wait for it. A child that a fork inherited is left to its owner."""
        child, self._child = self._child, None
        if child is not None:
            if self._owner == os.getpid():
                child.kill()
            child.close()
