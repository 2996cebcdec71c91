"""Progress of jobs: that of their runs, followed by their journals like the runs of ``lmms-eval view``."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.results.following.run import FollowedRun
from lmms_eval.results.following.snapshot import Snapshot

MOST_JOBS = 16
MOST_TASKS = 200
MOST_LETTERS = 300
"""Of a reason for which documents have no score."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Numbers of a job's run at one moment."""

    snapshot: Snapshot | None = None
    """``None`` before the run has begun."""
    is_read: bool = True
    """All that the journals held has been read once."""

    def told(self, clean: Callable[[str], str]) -> Mapping[str, Any]:
        """Return what clients get.

        Args:
            clean: makes of a text what the client may read.
        """
        if self.snapshot is None:
            return {}
        known = asdict(self.snapshot)
        del known["processes"]  # names of hosts
        tasks = known["tasks"]
        return known | {
            "reasons": [(clean(text)[:MOST_LETTERS], count) for text, count in known["reasons"]],
            "tasks": tasks[:MOST_TASKS],
            "tasks_left_out": max(0, len(tasks) - MOST_TASKS),
        }


@dataclass(slots=True)
class JobProgress:
    """Follows what a job's run writes; each look reads what has come since the last one."""

    _runs: dict[Path, FollowedRun] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, records: Iterable[Path]) -> Progress:
        """Read the news. Where a job has several records, its run was begun anew: the last one counts.

        Args:
            records: the records of the job's run.
        """
        with self._lock:
            for folder in records:
                if folder not in self._runs:
                    self._runs[folder] = FollowedRun(folder)
            if not self._runs:
                return Progress()
            for run in self._runs.values():
                run.look()
            last = max(self._runs.values(), key=lambda run: (not run.is_gone, run.is_going, str(run.state.get("date"))))
            return Progress(last.snapshot(), last.is_read or last.is_gone)


class JobsProgress:
    """The jobs that were asked after last; the journals of a job that was forgotten meanwhile are read anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, JobProgress] = OrderedDict()

    def look(self, job_id: str, records: Iterable[Path]) -> Progress:
        """Read the news of a job.

        Args:
            job_id: the job.
            records: the records of its run.
        """
        with self._lock:
            followed = self._jobs.setdefault(job_id, JobProgress())
            self._jobs.move_to_end(job_id)
            while len(self._jobs) > MOST_JOBS:
                self._jobs.popitem(last=False)
        return followed.look(records)
