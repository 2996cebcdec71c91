"""Progress of jobs while somebody watches them: the journals of their runs, followed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.results.following.run import FollowedRun
from lmms_eval.results.following.snapshot import Snapshot

MOST_JOBS = 16


@dataclass(slots=True)
class _Followed:
    lock: threading.Lock = field(default_factory=threading.Lock)
    runs: dict[Path, FollowedRun] = field(default_factory=dict)


class JobsProgress:
    """The jobs that were asked after last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _Followed] = OrderedDict()

    def of(self, job_id: str, records: Sequence[Path]) -> dict[str, Any] | None:
        """Look at the records of a job's run and tell how far it is; ``None`` before there is one."""
        with self._lock:
            followed = self._jobs.pop(job_id, None) or _Followed()
            self._jobs[job_id] = followed
            while len(self._jobs) > MOST_JOBS:
                self._jobs.popitem(last=False)
        with followed.lock:
            snapshots = []
            for record in records:
                run = followed.runs.setdefault(record, FollowedRun(record))
                run.look()
                snapshots.append(run.snapshot())
        return told(snapshots[-1]) if snapshots else None


def told(snapshot: Snapshot) -> dict[str, Any]:
    """Describe a moment of a run as the page shows it."""
    return {
        "is_read": snapshot.is_read,
        "requested": snapshot.requested,
        "done": snapshot.done,
        "failed": snapshot.failed,
        "rate": snapshot.rate or snapshot.rate_overall,
        "seconds_left": snapshot.seconds_left,
        "tokens": snapshot.tokens_in + snapshot.tokens_out,
        "reasons": [{"text": text, "count": count} for text, count in snapshot.reasons],
        "tasks": [asdict(task) for task in snapshot.tasks],
    }
