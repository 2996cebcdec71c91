"""The contract of trackers: the messages that each one receives about a run, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson
from msgspec import Struct

from lmms_eval.utils.records import to_dict

Cell = str | float | None


class Beginning(Struct, frozen=True):
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


class Place(Struct, frozen=True):
    """Address or folder where people find a run."""

    url: str = ""
    folder: str = ""
    hint: str = ""
    """What to do with the folder, or the reason why there is no place."""


class Step(Struct, frozen=True):
    """Live numbers by name, after a number of documents."""

    documents: int
    values: Mapping[str, float]


class Table(Struct, frozen=True):
    """Rows of equal length."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Results(Struct, frozen=True):
    """Final numbers and tables of the run."""

    documents: int
    scalars: Mapping[str, float]
    """Numbers by ``TASK/METRIC``."""
    texts: Mapping[str, str]
    """Values that are not numbers, by the same names."""
    tables: Mapping[str, Table]
    config: Mapping[str, Any]
    """Additions to the run's configuration."""
    file: str
    """Path of the results document."""


class TaskSamples(Struct, frozen=True):
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


class Ending(Struct, frozen=True):
    """The end of the run."""

    state: str
    has_succeeded: bool = True


Message = Beginning | Step | Results | TaskSamples | Ending


class Tracker(Protocol):
    """Receives the messages of a run. It may raise any exception of its package, which does not affect the run."""

    def start(self, beginning: Beginning) -> Place: ...
    def step(self, step: Step) -> None: ...
    def results(self, results: Results) -> None: ...
    def samples(self, samples: TaskSamples) -> None: ...
    def finish(self, ending: Ending) -> Place:
        """Send everything that is left, close, and return where the run is."""
        ...


_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in (Beginning, Step, Results, TaskSamples, Ending)}


class TrackerError(Exception):
    """Failure of a tracker in words for people, or the text of an error that its package raised."""


def line_of(message: Message, **more: str) -> bytes:
    """Encode a message as one line, with ``more`` as additional keys."""
    content = {"kind": type(message).__name__, "content": to_dict(message), **more}
    return orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)


def read_line(line: bytes) -> Mapping[str, Any]:
    """Decode a line of ``line_of`` to its ``message`` and the additional keys."""
    found: dict[str, Any] = orjson.loads(line)
    content = found.pop("content")
    for part in ("rows", "columns", "pictures"):
        if part in content:
            content[part] = tuple(tuple(row) if isinstance(row, list) else row for row in content[part])
    if "tables" in content:
        content["tables"] = {
            name: Table(tuple(table["columns"]), tuple(map(tuple, table["rows"])))
            for name, table in content["tables"].items()
        }
    return {**found, "message": _KINDS[found["kind"]](**content)}


def reply_of(place: Place | None = None, error: str = "") -> bytes:
    """Encode the reply to a message as one line."""
    return orjson.dumps({"place": None if place is None else to_dict(place), "error": error})


def read_reply(line: bytes) -> Place | None:
    """Decode a reply. Raises ``TrackerError`` if it contains an error."""
    found = orjson.loads(line)
    if found["error"]:
        raise TrackerError(found["error"])
    return None if found["place"] is None else Place(**found["place"])
