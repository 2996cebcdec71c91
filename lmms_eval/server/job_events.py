"""Events of a job as clients receive them, and their resumption after a lost connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from msgspec import Struct, field

from lmms_eval.errors import EvaluationServerError
from lmms_eval.server.calls import Call, Patience, Reply, job, pause_before
from lmms_eval.server.store import FINAL

if TYPE_CHECKING:
    from lmms_eval.results.follow import Snapshot

_T = TypeVar("_T", bound=Struct)
SILENCE_S = 60.0
"""A server sends something more often than this. A connection that is silent for longer counts as lost."""
ENDED_EARLY = Reply(0, b"the connection has ended before the job")


class StateEvent(Struct, frozen=True):
    """Change of a job's state or of its position in the queue."""

    event_id: str
    """Position in the events: give it to ``events`` to resume after this one."""
    status: str
    position_in_queue: int


class ProgressEvent(Struct, frozen=True):
    """Progress of a job's run, with the numbers that ``lmms-eval view`` shows."""

    event_id: str
    snapshot: Snapshot
    """Progress without the processes of the run."""
    tasks_left_out: int
    """Number of tasks that the snapshot leaves out."""


class LogEvent(Struct, frozen=True):
    """New lines of the log."""

    event_id: str
    text: str
    left_out: int
    """Bytes before the text that the server no longer keeps."""


JobEvent = StateEvent | ProgressEvent | LogEvent


class Following(Struct):
    """Position in the events of a job, kept over lost connections.

    Args:
        job_id: the job.
        place: id of the last event that was received.
        patience: seconds for which a lost connection is retried.
    """

    job_id: str
    place: str
    patience: float
    has_ended: bool = False
    _last: dict[str, bytes] = field(default_factory=dict)
    """Data of the last event of each kind: a new connection sends them again."""
    _waiting: Patience | None = None

    @property
    def call(self) -> Call:
        headers = {"accept": "text/event-stream"} | ({"last-event-id": self.place} if self.place else {})
        return Call("GET", job(self.job_id, "/events").path, headers=headers)

    def read(self, kind: str, event_id: str, data: str) -> JobEvent | None:
        """Read a received event; ``None`` if it is a repetition or of an unknown kind.

        Raises:
            EvaluationServerError: the event does not have the expected form.
        """
        self._waiting = None
        self.place = event_id or self.place
        content = data.encode("utf-8", "replace")
        if kind != "log" and self._last.get(kind) == content:
            return None
        self._last[kind] = content
        try:
            found = _read(kind, self.place, orjson.loads(content))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            text = f"an event {kind!r} of job {self.job_id} has an unexpected form: {error!r}"
            raise EvaluationServerError(text) from error
        self.has_ended = isinstance(found, StateEvent) and found.status in FINAL
        return found

    def pause(self, reply: Reply) -> float:
        """Return the seconds to wait before the next connection, after one was lost or refused.

        Raises:
            EvaluationServerError: the server has refused for good, or no time is left to retry.
        """
        self._waiting = self._waiting or Patience(self.patience)
        return pause_before(self.call, reply, self._waiting)


def _read(kind: str, place: str, content: Any) -> JobEvent | None:
    if kind == "state":
        return StateEvent(place, str(content["status"]), int(content["position_in_queue"]))
    if kind == "log":
        return LogEvent(place, str(content["text"]), int(content["left_out"]))
    if kind == "progress":
        return ProgressEvent(place, _snapshot(content), int(content["tasks_left_out"]))
    return None


def _snapshot(content: Mapping[str, Any]) -> Snapshot:
    from lmms_eval.results.follow import ScoreSoFar, Snapshot, TaskSnapshot

    def score(stated: Mapping[str, Any] | None) -> ScoreSoFar | None:
        return None if stated is None else _made(ScoreSoFar, stated)

    return _made(
        Snapshot,
        content,
        processes=(),
        score=score(content["score"]),
        reasons=tuple((str(text), int(count)) for text, count in content["reasons"]),
        tasks=tuple(_made(TaskSnapshot, task, score=score(task["score"])) for task in content["tasks"]),
    )


def _made(kind: type[_T], content: Mapping[str, Any], **known: Any) -> _T:
    """Build a data class. Fields that a newer server adds are ignored."""
    return kind(**{name: known[name] if name in known else content[name] for name in kind.__struct_fields__})
