"""The contract of trackers: what each is told of a run, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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
