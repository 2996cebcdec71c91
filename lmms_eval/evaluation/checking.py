"""``--check_integrity``: the tasks of a run are checked before a model is built for them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from loguru import logger

from lmms_eval.api.task import Task
from lmms_eval.errors import TaskError


def check_integrity(tasks: Sequence[Task]) -> None:
    """Check tasks as ``lmms-eval check`` does, and log what is doubtful or could not be tried.

    Raises:
        TaskError: one is broken.
    """
    from lmms_eval.checks.report import report_lines
    from lmms_eval.checks.tasks import check_run
    from lmms_eval.checks.workers import MOST_PROCESSES, CheckOptions

    checks = check_run(tasks, CheckOptions(processes=min(MOST_PROCESSES, os.cpu_count() or 1)))
    report = "\n".join(report_lines(checks))
    if not checks.is_sound():
        raise TaskError(f"--check_integrity: a task is broken, and nothing was asked\n{report}")
    logger.info("--check_integrity:\n{}", report)
