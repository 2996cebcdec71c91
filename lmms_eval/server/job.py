"""A job: one evaluation that a client has submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

State = Literal["queued", "running", "completed", "failed", "cancelled"]
FinalState = Literal["completed", "failed", "cancelled"]
FINAL: frozenset[State] = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the store holds it."""

    job_id: str
    number: int
    """Counts submissions: the order in which jobs are run."""
    state: State
    request: Mapping[str, Any]
    """The body of the submission, defaults filled in."""
    folder: str
    """Folder of the job's own files."""
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    result: Mapping[str, Any] | None = None
    error: str | None = None
    gpus: tuple[str, ...] = ()
    """The GPUs that the job holds while it runs."""
    is_cancelled: bool = False
    """Somebody has asked for its end; it runs until its processes are gone."""

    @property
    def has_ended(self) -> bool:
        return self.state in FINAL


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a job."""

    state: FinalState
    result: Mapping[str, Any] | None = None
    error: str | None = None


def now() -> str:
    """Return the time as jobs record it."""
    return datetime.now(tz=UTC).isoformat()
