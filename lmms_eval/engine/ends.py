"""Reasons for which tasks are not asked any further: one place, whoever finds them."""

from __future__ import annotations

import threading


class TaskEnds:
    """Reasons that end the asking of tasks before their documents do; safe from several threads.

    ``HopelessTasks`` finds tasks whose code fails on every document, ``Looks`` those whose score is certain enough.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._common: dict[str, str] = {}

    def end(self, task: str, reason: str, in_all: bool = False) -> bool:
        """Ask no further document of a task. Of several reasons the first one stays; ``False`` for later ones.

        ``in_all``: the reason holds in every process of the launch, not for the documents of this one alone.
        """
        with self._lock:
            if in_all:
                self._common.setdefault(task, reason)
            return self._reasons.setdefault(task, reason) is reason

    def reason(self, task: str) -> str:
        """Tell why a task is not asked any further; empty if it is."""
        return self._reasons.get(task, "")

    def common_reason(self, task: str) -> str:
        """The same, of reasons that hold in every process."""
        return self._common.get(task, "")

    def common(self) -> dict[str, str]:
        """All reasons that hold in every process, by task."""
        with self._lock:
            return dict(self._common)
