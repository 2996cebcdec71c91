"""The contract of trackers: the messages that each one receives about a run, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import orjson
from msgspec import Struct

from lmms_eval.utils.records import to_dict

Cell = str | int | float | None
_CALL_BYTES = 600
"""Bytes of a call without texts."""


Role = Literal["model", "judge"]


class AskedModel(Struct, frozen=True):
    """The model under test, or the judge."""

    provider: str
    """Name of the back end, or of the judge's provider."""
    name: str
    """Name that its requests ask for; empty if they name no model."""


class Beginning(Struct, frozen=True, tag=True):
    """Facts that are known before anything is asked."""

    arguments: Mapping[str, Any]
    """The user's arguments for this tracker."""
    run_id: str
    """Id of the run, which is the same in each start that continues it."""
    name: str
    """Name of the run, unless the arguments have one."""
    config: Mapping[str, Any]
    """Options of the run, secrets redacted."""
    is_continued: bool = False
    """True if an earlier start has begun the run."""
    model: str = ""
    """Name of the model's folder of results, which is empty if the arguments name no model."""
    asked: Mapping[Role, AskedModel] = {}
    """The models that are asked."""
    rank: int = 0
    """Number of this process of the run."""
    began: float = 0.0
    """Time of the start in seconds since 1970."""


class TrackerPlace(Struct, frozen=True):
    """Address or folder where people find a run."""

    url: str = ""
    folder: str = ""
    hint: str = ""
    """What to do with the folder, or the reason why there is no place."""


class LiveNumbers(Struct, frozen=True, tag=True):
    """Live numbers by name, after a number of documents."""

    documents: int
    values: Mapping[str, int | float | None]


class ModelCall(Struct, frozen=True):
    """A request that the model or the judge has answered, or that has failed after all retries."""

    id: str
    task: str
    doc_id: int
    role: Role
    kind: str
    """Kind of the request: ``generate_until``, ``loglikelihood``, ..."""
    end: float
    """Time of its end in seconds since 1970."""
    seconds: float | None
    """Duration, if it is known."""
    options: Mapping[str, Any]
    """Generation options."""
    model: str | None
    """Model that the server reports."""
    usage: tuple[int | None, int | None, int | None] | None
    """Input, output and reasoning tokens."""
    finish_reason: str | None
    error: str
    """Kind of the error; empty if there is an answer."""
    attempts: int
    tools: int
    """Calls of tools before the answer."""
    prompt: tuple[tuple[str, str], ...] = ()
    """Role and text of each message that the request added to its conversation, if texts are sent."""
    answer: str | None = None
    """Text of the answer, if texts are sent."""

    @property
    def size(self) -> int:
        """Rough size in bytes."""
        return _CALL_BYTES + sum(len(text) for _, text in self.prompt) + len(self.answer or "")


class FinishedCalls(Struct, frozen=True, tag=True):
    """Requests that have ended since the last message."""

    calls: tuple[ModelCall, ...]
    dropped: int = 0
    """Requests that are left out because the tracker was too slow."""
    is_last: bool = False
    """The run waits for the reply."""


class TrackerTable(Struct, frozen=True):
    """Rows of equal length."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class FinalResults(Struct, frozen=True, tag=True):
    """Final numbers and tables of the run."""

    documents: int
    scalars: Mapping[str, int | float]
    """Numbers by ``TASK/METRIC``."""
    texts: Mapping[str, str]
    """Values that are not numbers, by the same names."""
    tables: Mapping[str, TrackerTable]
    config: Mapping[str, Any]
    """Additions to the run's configuration."""
    file: str
    """Path of the results document."""


class TaskSamples(Struct, frozen=True, tag=True):
    """The samples of one task that are sent."""

    task: str
    documents: int
    """Finished documents of the whole run."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    pictures: tuple[tuple[str, ...], ...] = ()
    """Paths of thumbnails, for each row."""
    file: str = ""
    """Path of the task's whole samples file, which is empty if there is no file or it is too large."""


class RunEnding(Struct, frozen=True, tag=True):
    """The end of the run."""

    state: str
    has_succeeded: bool = True


Message = Beginning | LiveNumbers | FinishedCalls | FinalResults | TaskSamples | RunEnding
METHODS: dict[type[Struct], str] = {
    Beginning: "start", LiveNumbers: "step", FinishedCalls: "calls", FinalResults: "results", TaskSamples: "samples",
    RunEnding: "finish",
}  # fmt: skip
"""Method of a tracker that receives a message. ``start`` and ``finish`` return where the run is.

A method may raise any exception of the tracker's package, which does not affect the run. ``finish`` sends everything
that is left and closes.
"""


class TrackerError(Exception):
    """Failure of a tracker in words for people, or the text of an error that its package raised."""


def line_of(message: Message, tracker: str) -> bytes:
    """Encode a message to a tracker, given as ``MODULE:CLASS``, as one line."""
    return orjson.dumps([tracker, to_dict(message)], default=str, option=orjson.OPT_NON_STR_KEYS)


def read_line(line: bytes) -> tuple[str, Message]:
    """Decode a line of ``line_of``."""
    return msgspec.json.decode(line, type=tuple[str, Message])


def reply_of(place: TrackerPlace | None = None, error: str = "") -> bytes:
    """Encode the reply to a message as one line."""
    return msgspec.json.encode((place, error))


def read_reply(line: bytes) -> TrackerPlace | None:
    """Decode a reply. Raises ``TrackerError`` if it contains an error."""
    place, error = msgspec.json.decode(line, type=tuple[TrackerPlace | None, str])
    if error:
        raise TrackerError(error)
    return place
