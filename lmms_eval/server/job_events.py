"""Events of a job as clients get them, and the following of a job over connections that are lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from lmms_eval.errors import EvaluationServerError
from lmms_eval.server.calls import Call, Patience, Reply, job, pause_before
from lmms_eval.server.store import FINAL

if TYPE_CHECKING:
    from lmms_eval.results.follow import Snapshot

_T = TypeVar("_T")
SILENCE_S = 60.0
"""A server gives a sign of life more often than this; a connection without one is lost."""
ENDED_EARLY = Reply(0, b"the connection has ended before the job")


@dataclass(frozen=True, slots=True)
class StateEvent:
    """The state of a job is another one, or its place in the queue is."""

    event_id: str
    """Place in the events behind which they go on from here."""
    status: str
    position_in_queue: int


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Numbers of a job's run: the ones that ``lmms-eval view`` shows."""

    event_id: str
    snapshot: Snapshot
    """Without the processes of the run."""
    tasks_left_out: int
    """Tasks beyond those that are told."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Lines that the log has grown by."""

    event_id: str
    text: str
    left_out: int
    """Bytes before the text that the server has not kept."""


JobEvent = StateEvent | ProgressEvent | LogEvent


@dataclass(slots=True)
class Following:
    """The way through the events of a job, over as many connections as it takes.

    Args:
        job_id: the job.
        place: id of the last event that is known.
        patience: seconds for which a lost connection is made again.
    """

    job_id: str
    place: str
    patience: float
    has_ended: bool = False
    _last: dict[str, bytes] = field(default_factory=dict)
    """Data of the last event of each kind: they are told anew over a new connection."""
    _waiting: Patience | None = None

    @property
    def call(self) -> Call:
        headers = {"accept": "text/event-stream"} | ({"last-event-id": self.place} if self.place else {})
        return Call("GET", job(self.job_id, "/events").path, headers=headers)

    def read(self, kind: str, event_id: str, data: str) -> JobEvent | None:
        """Read an event that has come; ``None`` for one that was told before, or of another kind.

        Raises:
            EvaluationServerError: it has another form.
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
            text = f"an event {kind!r} of job {self.job_id} has another form than expected: {error!r}"
            raise EvaluationServerError(text) from error
        self.has_ended = isinstance(found, StateEvent) and found.status in FINAL
        return found

    def pause(self, reply: Reply) -> float:
        """Return the seconds to wait before the next connection, when one is lost or was refused.

        Raises:
            EvaluationServerError: it was refused for good, or patience is at its end.
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

    def score(told: Mapping[str, Any] | None) -> ScoreSoFar | None:
        return None if told is None else _made(ScoreSoFar, told)

    return _made(
        Snapshot,
        content,
        processes=(),
        score=score(content["score"]),
        reasons=tuple((str(text), int(count)) for text, count in content["reasons"]),
        tasks=tuple(_made(TaskSnapshot, told, score=score(told["score"])) for told in content["tasks"]),
    )


def _made(kind: type[_T], content: Mapping[str, Any], **known: Any) -> _T:
    """Make a data class; what a later server tells beyond its fields is passed over."""
    names = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: known[name] if name in known else content[name] for name in names})
