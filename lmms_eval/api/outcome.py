"""Endings of a sample, and the two marks by which a task says that a value is not there.

Every sample ends *scored*, *unscored* (a part that scoring needs is missing) or *failed* (the request was given
up, or scoring raised). Only *failed* counts against the error budget.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["scored", "unscored", "failed"]


@dataclass(frozen=True, slots=True)
class Unscored:
    """In place of a metric's value in what ``process_results`` returns: this sample cannot be evaluated here."""

    reason: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """In place of an aggregate: the official total is not given, ``partial`` is what the present part gives."""

    partial: Any
    reason: str


@dataclass(frozen=True, slots=True)
class SubScore:
    """The number of a part of a task's documents, in the units of the whole."""

    value: float
    """The number itself."""
    n: int
    """Documents, or what else the value is the mean of."""
    stderr: float | None = None
    """``None`` where it is not defined (fewer than two values)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate with the standard error that its own definition gives it, in the units of the value."""

    value: float | None
    """``None`` for an aggregation that gives no number (it writes a file)."""
    stderr: float | None = None
    """``None`` where it is not defined (too few values)."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further parts of the results file, by top-level key: what this task adds there (scores by sub-task, ...)."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval, where the aggregation has one of its own; else the engine makes it of the error."""
    sub_scores: Mapping[str, Mapping[str, SubScore]] = field(default_factory=dict)
    """Scores of parts of the documents: by what they are divided (``category``), and within that by name."""
    notes: tuple[str, ...] = ()
    """Sentences about the number that its readers must know (what was left out), printed below the table."""
    scores: tuple[float, ...] = ()
    """The documents' numbers in units of the value and in the order of the values, where it is their mean."""
    scale: float = 1.0
    """What a right answer counts among ``scores``: 100 for a percentage."""
    clusters: tuple[Hashable, ...] = ()
    """What the documents of ``scores`` are about, where several are about the same."""


@dataclass(frozen=True, slots=True)
class TaskNumbers:
    """Numbers that a finished task gives to its benchmark's report."""

    details: Mapping[str, Any]
    """The ``details`` of its metrics' estimates, joined."""
    withheld: str = ""
    """Reason for which a score of the task is withheld; empty if none is."""
    unscored: str = ""
    """Reason for which no document at all could be evaluated; empty if one could, or one failed."""
    groups: frozenset[str] | None = None
    """The groups above it that the run chose; ``None``: not known."""


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The numbers of a benchmark over several tasks of a run, beside the table of tasks."""

    text: str
    """Printed below the table."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Further parts of the results file, by top-level key."""
    files: tuple[str, ...] = ()
    """Files written, for the last lines."""


class NotEvaluated(Exception):
    """Raised by scoring code when a judge, program, weights or data set is absent; the sample is *unscored*."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_ABSENCES: ContextVar[list[str] | None] = ContextVar("absences", default=None)


@contextlib.contextmanager
def evaluated_wholly() -> Iterator[None]:
    """Hold task code to the parts that it needs, also where it takes a missing one for a wrong answer.

    Raises:
        NotEvaluated: at the end, if ``note_absence`` was called inside.
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
    """Note that a part which the score in work needs is absent, before telling the task code so in its own way."""
    absences = _ABSENCES.get()
    if absences is not None:
        absences.append(reason)
