"""A scoring process: builds the tasks from their YAML, takes jobs as JSON lines, answers with journal records.

Started with a fresh interpreter (never forked: a forked child would keep the parent's locks, sockets and GPU memory)
and ended by the end of its standard input, so it does not outlive its parent.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.engine import codec


class WorkerDied(RuntimeError):
    """The process ended, hung or answered nonsense."""


class WorkerProcess:
    """One child process and its two pipes."""

    def __init__(self, specs: Mapping[str, Mapping[str, Any]]) -> None:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join([root, *(entry for entry in sys.path if entry)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lmms_eval.engine.worker_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false"},
            start_new_session=True,  # a Ctrl-C reaches the parent alone, which ends the worker in order
        )
        self._buffer = b""
        self._send(codec.dumps({"specs": specs}))

    def call(self, line: bytes, timeout_s: float) -> bytes:
        """Send one job, wait for its record. Raises ``WorkerDied``."""
        self._send(line)
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerDied(f"no answer within {timeout_s:.0f} s")
            if not select.select([handle], [], [], min(left, 5.0))[0]:
                continue
            chunk = os.read(handle, 1 << 20)
            if not chunk:
                raise WorkerDied(f"the scoring process ended with code {self._process.wait()}")
            self._buffer += chunk
        answer, _, self._buffer = self._buffer.partition(b"\n")
        return answer

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # the child is gone already
                    pipe.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerDied(f"the scoring process ended with code {self._process.wait()}") from error


def main() -> None:
    """Serve jobs until standard input ends."""
    from lmms_eval.engine.conversations import Job
    from lmms_eval.engine.records import answer_from_record, failure_record
    from lmms_eval.engine.scoring import score_document
    from lmms_eval.tasks import build_from_spec

    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what task functions print must not mix with the records
    lines = sys.stdin.buffer
    specs = codec.loads(lines.readline())["specs"]
    tasks: dict[str, Any] = {}
    for line in lines:
        message = codec.loads(line)
        name = message["task"]
        if name not in tasks:
            tasks[name] = build_from_spec(specs[name])
            tasks[name].load()
        answers = tuple(answer_from_record(record) for record in message["answers"])
        record = score_document(Job(tasks[name], message["doc_id"], answers))
        try:
            encoded = codec.dumps(record)
        except codec.VolatileValue as error:
            encoded = codec.dumps(failure_record(name, message["doc_id"], answers, f"scoring gave {error}"))
        replies.write(encoded + b"\n")


if __name__ == "__main__":
    main()
