"""The contract of trackers: what each is told of a run, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import orjson

Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Beginning:
    """Facts that are known before anything is asked."""

    arguments: Mapping[str, Any]
    """The user's arguments for this tracker."""
    run_id: str
    """The same in each start that goes on with the same run."""
    name: str
    """The run's name unless the arguments have one."""
    config: Mapping[str, Any]
    """The run's options, secrets redacted."""
    is_continued: bool = False
    """An earlier start has begun the run."""
    model: str = ""
    """The model's name, as that of its folder of results; empty where the arguments name none."""


@dataclass(frozen=True, slots=True)
class Place:
    """Address or folder at which people find a run."""

    url: str = ""
    folder: str = ""
    hint: str = ""
    """What to do with the folder; without one why there is no place."""


@dataclass(frozen=True, slots=True)
class Step:
    """Live numbers by name after so many documents."""

    documents: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equal length."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Results:
    """Numbers and tables of the run at its end."""

    documents: int
    scalars: Mapping[str, float]
    """By ``TASK/METRIC``."""
    texts: Mapping[str, str]
    """Values that are no numbers, by the same names."""
    tables: Mapping[str, Table]
    config: Mapping[str, Any]
    """What is to be added to the run's configuration."""
    file: str
    """Path of the results document."""


@dataclass(frozen=True, slots=True)
class TaskSamples:
    """Samples of one task, as many as are sent."""

    task: str
    documents: int
    """Finished documents of the whole run."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    pictures: tuple[tuple[str, ...], ...] = ()
    """Paths of small pictures, for each row."""
    file: str = ""
    """Path of the task's samples file, whole; empty where there is none or it is large."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The way in which the run has ended."""

    state: str
    has_succeeded: bool = True


Message = Beginning | Step | Results | TaskSamples | Ending


class Tracker(Protocol):
    """One place that is told of a run. It may raise whatever its package raises; the run does not notice."""

    def start(self, beginning: Beginning) -> Place: ...
    def step(self, step: Step) -> None: ...
    def results(self, results: Results) -> None: ...
    def samples(self, samples: TaskSamples) -> None: ...
    def finish(self, ending: Ending) -> Place:
        """Send what is left and close; where it is now."""
        ...


_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in (Beginning, Step, Results, TaskSamples, Ending)}


class TrackerError(Exception):
    """Failure of a tracker in words for people, or an error that its package raised, as its process tells it."""


def line_of(message: Message, **more: str) -> bytes:
    """Write a message as one line; ``more`` stands beside it."""
    content = {"kind": type(message).__name__, "content": asdict(message), **more}
    return orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)


def read_line(line: bytes) -> Mapping[str, Any]:
    """Read a line of ``line_of``: its ``message`` and what stands beside it."""
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
    """Write the reply to a message as one line."""
    return orjson.dumps({"place": None if place is None else asdict(place), "error": error})


def read_reply(line: bytes) -> Place | None:
    """Read a reply. Raises ``TrackerError`` for one that tells of an error."""
    found = orjson.loads(line)
    if found["error"]:
        raise TrackerError(found["error"])
    return None if found["place"] is None else Place(**found["place"])
