"""The child's side of ``guard``: jobs and results as JSON lines.

If the parent dies while a job computes, an alarm ends the child, even inside a long computation in C.
"""

from __future__ import annotations

import contextlib
import gc
import json
import signal
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.processes import Parent

MEMORY_BYTES = 3 << 30
Jobs = Mapping[str, Callable[..., Any]]


def answer(line: str | bytes, jobs: Jobs) -> dict[str, Any]:
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


def _set_alarm(seconds: float) -> None:
    """Set the alarm, whose default action ends the process."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def run(jobs: Jobs, prepare: Callable[[], object]) -> None:
    """Serve jobs by name until the input ends. Arguments and results are JSON values.

    ``prepare`` does imports and first calls before the first time limit starts.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):  # no such limit on this platform
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    parent = Parent()
    gc.disable()  # hardly anything that imports create is garbage, and collections took a tenth of their time
    prepare()
    gc.freeze()
    gc.enable()
    parent.send(b'{"ready": true}')
    for line in parent:
        parent.send(json.dumps(answer(line, jobs)).encode())
