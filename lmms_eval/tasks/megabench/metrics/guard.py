"""Runs LaTeX jobs in a reusable child process that is killed when it takes too long."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError

START_LIMIT = 120.0
"""Seconds until a fresh child must be ready; importing sympy on a loaded machine takes several."""
CALLS_PER_CHILD = 500
_WORKER = "lmms_eval.tasks.megabench.metrics.latex_worker"


class LimitExceeded(LmmsEvalError):
    """The job took more time or memory than it was given; its child process is gone."""


class JobError(LmmsEvalError):
    """The job itself raised; the message names the error."""


class _Child:
    """One worker process and the two pipes to it."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        self.owner = os.getpid()
        self.calls = 0
        self._buffer = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )

    def send(self, message: dict[str, Any]) -> None:
        """Raises ``BrokenPipeError`` if the process has ended."""
        assert self.process.stdin is not None  # it was asked for
        view = memoryview(json.dumps(message).encode() + b"\n")
        while view:
            view = view[self.process.stdin.write(view) or 0 :]

    def receive(self, limit: float) -> dict[str, Any] | None:
        """The next message; ``None`` if none came within ``limit`` seconds or the process ended."""
        assert self.process.stdout is not None  # it was asked for
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + limit
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(descriptor, 1 << 16) if ready else b""
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def end(self) -> None:
        """Kill the process and wait for it; a process that a fork inherited is left to its owner."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()


class Guard:
    """One child process, started at the first call, replaced after ``calls_per_child`` calls or when it was killed.

    Calls from several threads wait for each other. After a fork the child belongs to the parent, and a new one is
    started here.
    """

    def __init__(self, calls_per_child: int = CALLS_PER_CHILD) -> None:
        self._calls_per_child = calls_per_child
        self._lock = threading.Lock()
        self._child: _Child | None = None

    @property
    def child_pid(self) -> int | None:
        """Process id of the child, ``None`` while there is none."""
        return None if self._child is None else self._child.process.pid

    def call(self, job: str, *arguments: str, limit: float) -> Any:
        """The job's result. Raises ``LimitExceeded`` after ``limit`` seconds, ``JobError`` if the job raised.

        Raises ``NotEvaluated`` if no child process can be started.
        """
        with self._lock:
            child = self._ready_child()
            child.calls += 1
            try:
                child.send({"job": job, "args": arguments, "limit": limit})
                reply = child.receive(limit)
            except BrokenPipeError:
                reply = None
            if reply is None:
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
            if child.owner == os.getpid() and child.process.poll() is None and child.calls < self._calls_per_child:
                return child
            self._discard()
        try:
            child = self._child = _Child()
        except OSError as error:
            raise NotEvaluated(f"no process for LaTeX expressions could be started: {error}") from error
        if child.receive(START_LIMIT) is None:
            self._discard()
            raise NotEvaluated("the process for LaTeX expressions did not start: is sympy with antlr4 4.11 installed?")
        return child

    def _discard(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


_guard = Guard()
atexit.register(_guard.close)


def evaluate_in_process(job: str, *arguments: str, limit: float) -> Any:
    """Run a job of ``latex_worker`` in the shared child process; see ``Guard.call``."""
    return _guard.call(job, *arguments, limit=limit)
