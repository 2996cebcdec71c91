"""A headline number and its interval over the first documents of a random order, all of which are finished.

What finished out of turn does not count: so the numbers depend on the order and the answers alone, and on nothing that
concurrency, processes and kills decide.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from typing import Protocol

from lmms_eval import stats
from lmms_eval.engine.conversations import Unit
from lmms_eval.engine.plan import TaskPlan, draw_place
from lmms_eval.utils.numbers import SHARES, ScoreRange

RANDOM, STRATA = "random:", "strata:"
"""Beginnings of the names of orders: of all documents of a task, and of those of each stratum."""


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """A random order of each task's documents, fixed by a seed, the task's name and the documents' numbers alone.

    Of a task with strata each of these is in random order, and they come at an even pace: their interval is then
    tightest, and which stratum is next does not depend on any answer.
    """

    seed: int = 0

    def of(self, plan: TaskPlan) -> list[int]:
        """The documents of a task in this order; without strata those of another selection are in the same one."""
        order = sorted(plan.doc_ids, key=partial(draw_place, f"{self.seed}:{plan.task.name}"))
        names = plan.task.strata(order)
        if names is None:
            return order
        strata: dict[str, list[int]] = {}
        for name, doc_id in zip(names, order, strict=True):
            strata.setdefault(name, []).append(doc_id)
        return [doc_id for _, doc_id in interleaved(strata)]

    def name(self, plan: TaskPlan) -> str:
        """Name of the order of a task's documents: where it is the same, so are the first documents."""
        names = plan.task.strata(plan.doc_ids)
        content = ",".join(map(str, plan.doc_ids)) + ("" if names is None else json.dumps([*names]))
        digest = hashlib.sha256(content.encode()).hexdigest()
        return f"{RANDOM if names is None else STRATA}{self.seed}:{digest[:8]}"

    def units(self, plans: Sequence[TaskPlan]) -> Iterator[Unit]:
        """All documents of a run."""
        tasks = {plan.task.name: plan.task for plan in plans}
        for name, doc_id in interleaved({plan.task.name: self.of(plan) for plan in plans}):
            yield Unit(tasks[name], doc_id, tasks[name].repeats)


def interleaved(orders: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int]]:
    """Merge the documents of several tasks or strata, so that at any place about the same share of each has come.

    Of fewer of these tasks the order is the same with the others left out.
    """

    def places(name: str, doc_ids: Sequence[int]) -> Iterator[tuple[float, str, int]]:
        return (((number + 0.5) / len(doc_ids), name, doc_id) for number, doc_id in enumerate(doc_ids))

    for _, name, doc_id in merge(*(places(name, doc_ids) for name, doc_ids in orders.items())):
        yield name, doc_id


def place_in(order: str, task: str, doc_id: str) -> bytes:
    """The place of a document in an order of that name (``RandomOrder.name``); documents are asked by rising place.

    Raises:
        ValueError: the name, or the document, is none of a random order.
    """
    kind, seed, *_ = [*order.split(":"), ""]
    if f"{kind}:" != RANDOM:
        raise ValueError(f"no random order: {order}")
    return draw_place(f"{int(seed)}:{task}", int(doc_id))


LEVEL = 0.95
LEAST = 10
"""Documents that a decision rests on, at least."""
LOOKS = 200
"""Looks while the number of documents doubles and more, once there are so many."""
_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one task in a headline number: the mean of a metric over its documents, or over its strata."""

    task: str
    metric: str
    filter: str
    within: ScoreRange
    """Range of the documents' numbers, ``scale`` times as large as they are recorded; both ends are finite."""
    score_key: str = "score"
    weight: float = 1.0
    in_percent: bool = False
    """Its range is put on 0 to 100 first."""
    baseline: Mapping[int, float] | None = None
    """Numbers that are taken away, by document; documents without one are left out."""
    is_binary: bool = False
    """Its range is not stated, and taken to be that of right and wrong while there is nothing else."""
    is_clustered: bool = False
    """The task's documents come in clusters, so that the interval over all of them is one of clusters."""
    strata: Mapping[int, str] | None = None
    """By document the stratum, where the documents of each come in a random order of their own."""
    is_macro: bool = False
    """It is the mean over the strata of their documents' means."""
    scale: float = 1.0

    @property
    def ends(self) -> ScoreRange:
        """Range of the part's mean, in units of the headline number."""
        width = 100.0 if self.in_percent else self.within.high - self.within.low
        if self.baseline is not None:
            return ScoreRange(-width, width)
        return ScoreRange(0.0, width) if self.in_percent else self.within

    def holds(self, number: float) -> bool:
        """A document may have this number."""
        return number in self.within and (not self.is_binary or number in (self.within.low, self.within.high))

    def counts(self, doc_id: int) -> bool:
        return self.baseline is None or doc_id in self.baseline

    def stratum(self, doc_id: int) -> str:
        return "" if self.strata is None else self.strata[doc_id]

    def share(self, doc_id: int, number: float) -> float:
        """A document's number as a share of the way from the low to the high end."""
        width = self.within.high - self.within.low
        if self.baseline is None:
            return min(1.0, max(0.0, (number - self.within.low) / width))
        return min(1.0, max(0.0, (number - self.baseline[doc_id] + width) / (2 * width)))


Find = Callable[[Part, int], float | None]
"""The number of a finished document, ``None`` where it has none; raises ``KeyError`` for one that is not finished."""


@dataclass(frozen=True, slots=True)
class HalfWidth:
    """Statement that an interval is at most so wide to either side."""

    limit: float

    def holds(self, interval: stats.Interval) -> bool:
        return (interval.high - interval.low) / 2 <= self.limit + _SLACK


@dataclass(frozen=True, slots=True)
class Excludes:
    """Statement that an interval leaves a number out."""

    number: float

    def holds(self, interval: stats.Interval) -> bool:
        return not interval.low - _SLACK <= self.number <= interval.high + _SLACK


Statement = HalfWidth | Excludes


class _Sampled(Protocol):
    """Interval for a weighted mean of strata whose documents come in random order."""

    def add(self, stratum: int, low: float, high: float | None = None) -> None: ...
    def interval(self) -> stats.Interval: ...


class _OneStratum:
    """``Sampled`` in the form of several strata."""

    def __init__(self, total: int) -> None:
        from lmms_eval.stats.sequence import Sampled

        self._sampled = Sampled(total, SHARES, LEVEL)

    def add(self, stratum: int, low: float, high: float | None = None) -> None:  # noqa: ARG002 - there is one
        self._sampled.add(low, high)

    def interval(self) -> stats.Interval:
        return self._sampled.interval()


def _strata(totals: Sequence[int], weights: Sequence[float]) -> _Sampled:
    from lmms_eval.stats.sequence import StratifiedSampled

    return _OneStratum(totals[0]) if len(totals) == 1 else StratifiedSampled(totals, weights, SHARES, LEVEL)


def _first(units: Iterable[tuple[str, int]], counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """So many documents of each task at most."""
    taken: Counter[str] = Counter()
    for name, doc_id in units:
        if taken[name] < counts[name]:
            taken[name] += 1
            yield name, doc_id


@dataclass(slots=True)
class _Moments:
    """Sums over the shares of the documents of a part, or of one of its strata."""

    span: float
    """Weight of their mean in the number."""
    count: int = 0
    total: float = 0.0
    squares: float = 0.0


@dataclass(frozen=True, slots=True)
class _Cell:
    """A stratum of the interval: a part, or a stratum of one."""

    number: int
    moments: _Moments
    """Of all strata of a part together, where the part is the mean of their documents."""


class Prefix:
    """The first documents of a headline number, as far as all of them are finished.

    Args:
        parts: the tasks in it, their means weighted.
        orders: the documents of each of these tasks in random order.
        counts: of each task so many documents at most; without it all.
    """

    def __init__(
        self, parts: Sequence[Part], orders: Mapping[str, Sequence[int]], counts: Mapping[str, int] | None = None
    ) -> None:
        self._parts = {part.task: part for part in parts}
        units = interleaved({name: orders[name] for name in self._parts})
        self._units = list(units if counts is None else _first(units, counts))
        self._whole = sum(len(orders[name]) for name in self._parts)
        self.taken = dict.fromkeys(self._parts, 0)
        """Documents of each task that are in it."""
        self.length = 0
        self.counted = 0
        """Documents that the number rests on: without those that the baseline lacks."""
        self._next_look = LEAST
        self.lies_outside = False
        """A number lies outside of its stated range, so that no interval holds."""
        whole = math.fsum(part.weight for part in parts)
        self._low = math.fsum(part.weight / whole * part.ends.low for part in parts)
        spans = [part.weight / whole * (part.ends.high - part.ends.low) for part in parts]
        self._span = math.fsum(spans)
        self._cells: dict[tuple[str, str], _Cell] = {}
        totals: list[int] = []
        weights: list[float] = []
        for part, span in zip(parts, spans, strict=True):
            sizes = Counter(part.stratum(doc_id) for doc_id in orders[part.task] if part.counts(doc_id))
            together = _Moments(span)
            for name, size in sizes.items():
                share = 1 / len(sizes) if part.is_macro else size / sizes.total()
                moments = _Moments(span * share) if part.is_macro else together
                self._cells[part.task, name] = _Cell(len(totals), moments)
                totals.append(size)
                weights.append(span * share / self._span)
        self._sampled = _strata(totals, weights)
        self._moments = list({id(cell.moments): cell.moments for cell in self._cells.values()}.values())
        self._not_begun = {*self._cells}

    @property
    def is_whole(self) -> bool:
        """Every document of every task is in it."""
        return self.length == self._whole

    def advance(self, find: Find, statement: Statement | None = None) -> bool:
        """Take in what is finished, up to the first document at which the statement holds; ``True`` if it does."""
        while self.length < len(self._units):
            name, doc_id = self._units[self.length]
            part = self._parts[name]
            try:
                number = find(part, doc_id)
            except KeyError:
                return False
            self.length += 1
            self.taken[name] += 1
            if not part.counts(doc_id):
                continue
            self._add(part, doc_id, number)
            if statement is not None and self._is_look() and statement.holds(self.interval()):
                return True
        return False

    def _is_look(self) -> bool:
        """A statement is looked at here: every time at first, then each time that half a percent more is known.

        An interval costs as much as some twenty documents. Where the looks are depends on nothing but the number of
        documents, so the decision is always the same. A stratum without a document would be missing in the number.
        """
        if self.lies_outside or self._not_begun or self.counted < self._next_look:
            return False
        self._next_look = self.counted + max(1, self.counted // LOOKS)
        return True

    def _add(self, part: Part, doc_id: int, number: float | None) -> None:
        self.counted += 1
        key = part.task, part.stratum(doc_id)
        self._not_begun.discard(key)
        if number is not None and not part.holds(number):
            self.lies_outside, number = True, None
        low, high = (0.0, 1.0) if number is None else (part.share(doc_id, number),) * 2
        cell = self._cells[key]
        self._sampled.add(cell.number, low, high)
        if number is not None:
            cell.moments.count += 1
            cell.moments.total += low
            cell.moments.squares += low * low

    def value(self) -> float | None:
        """The number over the documents that have one; ``None`` while a task, or a stratum of a mean over these, has
        none."""
        if not all(one.count for one in self._moments):
            return None
        return self._low + math.fsum(one.span * one.total / one.count for one in self._moments)

    def interval(self) -> stats.Interval:
        """The interval for the number over all documents, valid at every look at once."""
        return self._mapped(self._sampled.interval())

    def shown_interval(self) -> stats.Interval | None:
        """The same; of all documents the ordinary one, where there is one."""
        if self.lies_outside or not self.counted:
            return None
        if not self.is_whole:
            return self.interval()
        value = self.value()
        if value is None or any(part.is_clustered for part in self._parts.values()):
            return None
        spreads = [stats.Spread.of_moments(one.count, one.total, one.squares, SHARES) for one in self._moments]
        spread = stats.Spread.stratified(spreads, [one.span for one in self._moments])
        found = stats.score_interval((value - self._low) / self._span, spread, SHARES)
        return None if isinstance(found, stats.NoInterval) else self._mapped(found)

    def _mapped(self, found: stats.Interval) -> stats.Interval:
        low, high = (self._low + self._span * end for end in (found.low, found.high))
        return stats.Interval(low, high, found.method)
