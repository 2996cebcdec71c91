"""The child's side of ``guard``: jobs as JSON lines on standard input, results on standard output.

The child ends when its input ends. If its parent dies while it computes, an alarm ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

MEMORY_BYTES = 3 << 30
Jobs = Mapping[str, Callable[..., Any]]


def answer(line: str, jobs: Jobs) -> dict[str, Any]:
    """Run one job: ``{"value": ...}``, ``{"error": text}`` or ``{"memory": true}``."""
    job = json.loads(line)
    _set_alarm(float(job["limit"]) + 2.0)
    try:
        return {"value": jobs[job["job"]](*job["args"])}
    except MemoryError:
        return {"memory": True}
    except Exception as error:  # noqa: BLE001 - the parent turns any failure of a library into its own error
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        _set_alarm(0)


def serve(requests: IO[str], replies: IO[str], jobs: Jobs) -> None:
    """Answer line by line until the input ends."""
    replies.write('{"ready": true}\n')
    replies.flush()
    for line in requests:
        replies.write(json.dumps(answer(line, jobs)) + "\n")
        replies.flush()


def _set_alarm(seconds: float) -> None:
    """Set the alarm whose default action ends the process, even inside a long computation in C."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def run(jobs: Jobs, prepare: Callable[[], None]) -> None:
    """Serve jobs by name, and reserve standard output for the replies, whatever a library prints.

    Args:
        jobs: functions whose arguments and results are JSON values.
        prepare: does imports and first calls before the first time limit starts.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):  # no such limit on this platform
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process, not the keyboard
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    prepare()
    serve(sys.stdin, replies, jobs)
