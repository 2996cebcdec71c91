"""Outcomes of samples, and the values that report a missing score of a task.

Every sample ends *scored*, *unscored* (something that scoring needs is missing) or *failed* (the request was given
up, or scoring raised). Only *failed* counts against the error budget.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import Struct

Status = Literal["scored", "unscored", "failed"]


@dataclass(frozen=True, slots=True)
class Unscored:
    """Metric value for ``process_results`` to return if a sample cannot be evaluated on this machine."""

    reason: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """Aggregate without an official total; ``partial`` is the number over the available part."""

    partial: Any
    reason: str


@dataclass(frozen=True, slots=True)
class SubScore:
    """The score of a part of a task's documents, in the units of the task's score."""

    value: float
    """The score."""
    n: int
    """Number of documents, or of whatever else the score is the mean of."""
    stderr: float | None = None
    """Standard error; ``None`` if it is undefined (fewer than two values)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate with its own standard error, in the units of the value."""

    value: float | None
    """The number; ``None`` if the aggregation gives no number (it writes a file)."""
    stderr: float | None = None
    """Standard error; ``None`` if it is undefined (too few values)."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Additions to the results file, by top-level key (scores by sub-task, ...)."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval, if the aggregation computes one; else the engine derives it from the error."""
    sub_scores: Mapping[str, Mapping[str, SubScore]] = field(default_factory=dict)
    """Scores of parts of the documents, by the kind of division (``category``) and the name of the part."""
    notes: tuple[str, ...] = ()
    """Sentences about the number that its readers must know (what was left out), printed below the table."""
    scores: tuple[float, ...] = ()
    """The documents' numbers, in the units and the order of the values, if the value is their mean."""
    scale: float = 1.0
    """The number of a right answer in ``scores``: 100 for a percentage."""
    clusters: tuple[Hashable, ...] = ()
    """Cluster of each of ``scores``: documents about the same thing share one."""


class TaskNumbers(Struct, frozen=True):
    """The numbers of a finished task for its benchmark's report."""

    details: Mapping[str, Any]
    """The joined ``details`` of its metrics' estimates."""
    withheld: str = ""
    """Reason why a score of the task is withheld; empty if all scores are given."""
    unscored: str = ""
    """Reason why not one document could be evaluated; empty if one could, or one failed."""
    groups: frozenset[str] | None = None
    """The selected groups that contain the task; ``None``: unknown."""
    missing: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Number of counted documents that have no value of any metric, by stratum (``Task.strata``); under the empty name
    if the task has no strata."""
    model: str = ""
    """Name of the run's model, for titles; empty if it is not known."""


class BenchmarkReport(Struct, frozen=True):
    """The numbers of a benchmark over several tasks of a run, in addition to the table of tasks."""

    text: str
    """Text below the table."""
    parts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Additions to the results file, by top-level key."""
    files: tuple[str, ...] = ()
    """Written files, which the last lines of the output list."""


class NotEvaluated(Exception):
    """Scoring code lacks a judge, program, weights or data set; the sample is *unscored*."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_ABSENCES: ContextVar[list[str] | None] = ContextVar("absences", default=None)


@contextlib.contextmanager
def evaluated_wholly() -> Iterator[None]:
    """Detect missing parts that task code would score as a wrong answer.

    Raises:
        NotEvaluated: when the block ends, if ``note_absence`` was called in it.
    """
    absences: list[str] = []
    token = _ABSENCES.set(absences)
    try:
        yield
    finally:
        _ABSENCES.reset(token)
    if absences:
        raise NotEvaluated(absences[0])


def note_absence(reason: str) -> None:
    """Note that a part is missing which the current score needs; ``evaluated_wholly`` then raises."""
    absences = _ABSENCES.get()
    if absences is not None:
        absences.append(reason)
