"""Runs jobs of a library in a reusable child process that is killed when it takes too long."""

from __future__ import annotations

import json
import threading
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.processes import Child, ChildError, Pool

START_LIMIT = 120.0
"""Seconds until a new child must be ready; importing sympy on a loaded machine takes several."""
CALLS_PER_CHILD = 500


class LimitExceeded(LmmsEvalError):
    """The job exceeded its time or memory; its child process was killed."""


class JobError(LmmsEvalError):
    """The job itself raised; the message names the error."""


class GuardedProcess:
    """One child process, started at the first call, replaced after ``calls_per_child`` calls or when it was killed.

    The module ``worker`` serves the jobs (``guarded_worker.run``); it ``needs`` these packages. Calls from several
    threads wait for each other. After a fork, the forked process starts a child of its own.
    """

    def __init__(self, worker: str, needs: str, calls_per_child: int = CALLS_PER_CHILD) -> None:
        self._worker, self._needs = worker, needs
        self._pool = Pool(calls_per_child)
        self._lock = threading.Lock()

    @property
    def child_pid(self) -> int | None:
        """Process id of the child, or ``None`` if no child is running."""
        return next(iter(self._pool.pids), None)

    def call(self, job: str, *arguments: Any, limit: float) -> Any:
        """Run a job and return its result.

        Raises:
            LimitExceeded: it took more than ``limit`` seconds, or too much memory.
            JobError: the job raised.
            NotEvaluated: no child process can be started.
        """
        line = json.dumps({"job": job, "args": arguments, "limit": limit}).encode()
        try:
            with self._lock, self._pool.lend(self._start) as child:
                reply: dict[str, Any] = json.loads(child.ask(line, limit))
        except ChildError:
            reply = {"memory": True}
        if "memory" in reply:
            raise LimitExceeded(f"{job} took more than {limit:g} s or too much memory")
        if "error" in reply:
            raise JobError(f"{job} raised {reply['error']}")
        return reply["value"]

    def close(self) -> None:
        """End the child process."""
        with self._lock:
            self._pool.close(0)

    def _start(self) -> Child:
        try:
            child = Child(self._worker, errors="kept")
        except OSError as error:
            raise NotEvaluated(f"no process {self._worker} could be started: {error}") from error
        try:
            child.receive(START_LIMIT)  # it reports that it is ready
        except ChildError as error:
            child.kill()
            child.close()
            raise NotEvaluated(
                f"the process {self._worker} did not start: is {self._needs} installed? ({error})"
            ) from error
        return child
