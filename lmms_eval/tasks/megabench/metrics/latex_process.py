"""The child process that reads LaTeX, shared by all metrics."""

from __future__ import annotations

import atexit
from typing import Any

from lmms_eval.metrics.guard import GuardedProcess

WORKER = "lmms_eval.tasks.megabench.metrics.latex_worker"
NEEDS = "sympy with antlr4 4.11"
_guard = GuardedProcess(WORKER, NEEDS)
atexit.register(_guard.close)


def evaluate_in_process(job: str, *arguments: str, limit: float) -> Any:
    """Run a job of ``latex_worker`` in the shared child process; see ``GuardedProcess.call``."""
    return _guard.call(job, *arguments, limit=limit)
