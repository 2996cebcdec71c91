"""A scoring process as its parent sees it; ``worker_loop`` is what runs in it.

Started with a fresh interpreter (never forked: a forked child would keep the parent's locks, sockets and GPU memory)
and ended by the end of its standard input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.storage import codec
from lmms_eval.utils.line_process import LineProcess, ProcessEnded
from lmms_eval.utils.line_server import ENDING_S

BUILD_TIMEOUT_S = 600.0
"""Starting the interpreter, building the task and opening its data."""


class WorkerDied(RuntimeError):
    """The process ended, hung or answered nonsense."""


class WorkerProcess:
    """One child process, ``python -m MODULE``, and its two pipes; ``specs`` tell it how to build the tasks."""

    def __init__(self, module: str, specs: Mapping[str, Mapping[str, Any]], verbosity: str = "INFO") -> None:
        self._first = codec.dumps({"specs": specs, "verbosity": verbosity}) + b"\n"
        """Goes out with the first job."""
        self._process = LineProcess(module, {"TOKENIZERS_PARALLELISM": "false"})

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, line: bytes, timeout_s: float) -> bytes:
        """Send one job, wait for its record; ``timeout_s`` bounds the scoring alone. Raises ``WorkerDied``."""
        try:
            self._process.send(self._first + line)
            self._first = b""
            self._process.receive(BUILD_TIMEOUT_S)
            return self._process.receive(timeout_s)
        except ProcessEnded as ended:
            how = str(ended) if ended.code is None else f"the scoring process ended with code {ended.code}"
            raise WorkerDied(how) from ended

    def kill(self) -> None:
        """End the process and what it has started, at once; from any thread. ``close`` is still to be called."""
        self._process.kill()

    def close(self) -> None:
        """End the process in order, or by force if it does not end."""
        self._process.close(patience_s=2 * ENDING_S)
