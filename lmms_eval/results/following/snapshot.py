"""State of a run at one moment, as plain numbers that can be shown, sent or logged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmms_eval.engine.run_outline import Outline, TaskOutline
from lmms_eval.results.following.scores import ScoreSoFar
from lmms_eval.results.following.signs import Signs
from lmms_eval.results.following.tasks import TaskProgress

MOST_REASONS = 20


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """One task of a run."""

    name: str
    requested: int
    done: int
    failed: int
    score: ScoreSoFar | None
    reason: str
    """Reason for which there is no running score."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment; ``None`` is what is not known."""

    state: str
    """That of its record; ``interrupted`` if it says ``running`` and no process of it is alive, ``deleted``."""
    is_going: bool
    is_read: bool
    """All that the journals held when they were opened has been read."""
    requested: int
    done: int
    scored: int
    unscored: int
    failed: int
    rate: float | None
    """Documents a second over the last minute, as far as it was watched."""
    rate_overall: float | None
    """Documents a second since this start of the run."""
    seconds_left: float | None
    tokens_in: int
    tokens_out: int
    token_rate: float | None
    in_flight: int | None
    concurrency: int | None
    processes: Sequence[Signs]
    score: ScoreSoFar | None
    """The number of the run as a whole, where it has one of its own."""
    reasons: Sequence[tuple[str, int]]
    """Reasons for which documents have no score, the most frequent first."""
    tasks: Sequence[TaskSnapshot]


@dataclass(frozen=True, slots=True)
class Known:
    """All that a snapshot is made of."""

    state: str
    is_going: bool
    is_read: bool
    outline: Outline
    tasks: Mapping[str, TaskProgress]
    scores: Mapping[str, ScoreSoFar]
    """By task."""
    whole: ScoreSoFar | None
    rates: tuple[float, float] | None
    """Documents and tokens a second."""
    processes: Sequence[Signs]


def snapshot_of(known: Known) -> Snapshot:
    """Make a snapshot; tasks that only the journals name are among those of the outline."""
    found = known.tasks.values()
    unknown = {name: TaskOutline(task.done, reason="") for name, task in known.tasks.items()}
    outlines = {**unknown, **known.outline.tasks}
    outlines = {name: outlines[name] for name in (*known.outline.tasks, *(set(unknown) - set(known.outline.tasks)))}
    requested, done = sum(task.requested for task in outlines.values()), sum(task.done for task in found)
    reasons: Counter[str] = sum((task.reasons for task in found), Counter())
    rate, token_rate = known.rates or (None, None)
    overall = _overall(known.processes)
    present = rate or overall
    return Snapshot(
        state=known.state,
        is_going=known.is_going,
        is_read=known.is_read,
        requested=requested,
        done=done,
        scored=sum(task.counts["scored"] for task in found),
        unscored=sum(task.counts["unscored"] for task in found),
        failed=sum(task.counts["failed"] for task in found),
        rate=rate,
        rate_overall=overall,
        seconds_left=max(0, requested - done) / present if present else None,
        tokens_in=sum(task.tokens_in for task in found),
        tokens_out=sum(task.tokens_out for task in found),
        token_rate=token_rate,
        in_flight=_total([signs.in_flight for signs in known.processes]),
        concurrency=_total([signs.concurrency for signs in known.processes]),
        processes=tuple(known.processes),
        score=known.whole,
        reasons=(+reasons).most_common(MOST_REASONS),
        tasks=tuple(_task(name, outline, known) for name, outline in outlines.items()),
    )


def _task(name: str, outline: TaskOutline, known: Known) -> TaskSnapshot:
    found = known.tasks.get(name) or TaskProgress()
    score = known.scores.get(name)
    return TaskSnapshot(name, outline.requested, found.done, found.counts["failed"], score, outline.reason)


def _overall(processes: Sequence[Signs]) -> float | None:
    done = _total([signs.done for signs in processes])
    started = [signs.started for signs in processes if signs.started is not None]
    if done is None or not started:
        return None
    span = time.time() - min(started)
    return done / span if span >= 1 else None


def _total(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
