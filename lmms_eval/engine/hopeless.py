"""Tasks whose own code fails on every document: they are found on the first ones and not asked any further."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from loguru import logger

from lmms_eval.engine.ends import TaskEnds

DOCUMENTS = 16
"""Documents of a task that must all have failed in the same way."""
_DIFFERS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""Parts of a message in which one error differs from document to document."""


class HopelessTasks:
    """Watches the scores of a run, and ends the tasks that it finds; safe from several threads.

    A task counts as hopeless when each of its first ``DOCUMENTS`` documents was answered and could not be scored, for
    one reason: an answer that is asked for then costs money and scores nothing.
    """

    def __init__(self, ends: TaskEnds) -> None:
        self._ends, self._lock = ends, threading.Lock()
        self._failures: dict[str, tuple[str, int]] = {}
        """Form of the failures of a task, and their number."""
        self._sound: set[str] = set()

    def note(self, record: Mapping[str, Any]) -> None:
        """Look at the record of a document that is finished."""
        task = record["task"]
        if task in self._sound:
            return
        failed = record.get("failed")
        if failed is not None and any("error" in answer for answer in record["answers"]):
            return  # the model's failure says nothing of the task
        form = None if failed is None else _DIFFERS.sub("", failed)
        with self._lock:
            known, count = self._failures.get(task, (form, 0))
            if form is None or form != known:
                self._sound.add(task)
            else:
                self._failures[task] = form, count + 1
                if count + 1 == DOCUMENTS:
                    reason = f"none of its first {DOCUMENTS} documents could be scored: {failed}"
                    if self._ends.end(task, reason):
                        logger.warning("task {}: not asked any further: {}", task, reason)
