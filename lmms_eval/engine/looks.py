"""Looks at a run while it goes on: the running number with its interval, and the tasks whose statements hold."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loguru import logger

from lmms_eval.engine.early import Sampling, Stop, number_of
from lmms_eval.engine.ends import TaskEnds
from lmms_eval.engine.headline import Part, Prefix
from lmms_eval.engine.plan import TaskPlan

REST = 20
"""After a look so many times its length passes before the next one: it takes the time of a thread that scores."""
LONGEST_REST_S = 0.25

News = tuple[str, int, list[float | None]]
"""Task, document, and its number in each column of the task, as other processes get them."""


@dataclass(frozen=True, slots=True)
class _Column:
    """Numbers of one metric, by document."""

    part: Part
    numbers: dict[int, float | None]


@dataclass(slots=True)
class _Open:
    """A rule that has not held yet."""

    stop: Stop
    prefix: Prefix


class Looks:
    """Gets the finished documents of a run; safe from several threads.

    Args:
        plans: the tasks.
        sampling: what is to be looked at.
        ends: gets the tasks whose statements hold.
        decides: this process looks for that; others are told.
        tells: other processes get the numbers of this one.
    """

    def __init__(
        self, plans: Sequence[TaskPlan], sampling: Sampling, ends: TaskEnds, decides: bool = True, tells: bool = False
    ) -> None:
        self._ends, self._lock = ends, threading.Lock()
        self._sizes = {plan.task.name: plan.requested for plan in plans}
        self._columns: dict[str, list[_Column]] = {}
        parts = [*sampling.shown, *(part for stop in sampling.stops for part in stop.parts)]
        for part in parts:
            self._column(part)
        orders = {plan.task.name: sampling.order.of(plan) for plan in plans if plan.task.name in self._columns}
        self._shown = Prefix(sampling.shown, orders) if decides and sampling.shown else None
        self._open = [_Open(stop, Prefix(stop.parts, orders)) for stop in sampling.stops] if decides else []
        self._inbox: deque[News] = deque()
        self._news: deque[News] | None = deque() if tells else None
        self._next_look = 0.0

    def note(self, record: Mapping[str, Any]) -> None:
        """A document is finished; ``record`` is its journal record."""
        columns = self._columns.get(record["task"])
        if columns is None:
            return
        news = record["task"], record["doc_id"], [number_of(record, column.part) for column in columns]
        self._inbox.append(news)
        if self._news is not None:
            self._news.append(news)
        if self._open and time.monotonic() >= self._next_look:
            self.look()

    def take(self, news: Iterable[News]) -> None:
        """Take the numbers of another process."""
        self._inbox.extend(news)

    def news(self) -> list[News]:
        """Numbers for the other processes since the last call."""
        return [] if self._news is None else [self._news.popleft() for _ in range(len(self._news))]

    def look(self) -> None:
        """End the tasks whose statements hold by now; without effect while another thread looks."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            begin = time.monotonic()
            self._take_in()
            for one in list(self._open):
                if one.prefix.advance(self._find, one.stop.statement):
                    self._open.remove(one)
                    self._note_end(one)
            end = time.monotonic()
            self._next_look = end + min(LONGEST_REST_S, REST * (end - begin))
        finally:
            self._lock.release()

    def shown(self) -> str:
        """The running number of the first documents, with its interval; empty where there is none."""
        prefix = self._shown
        if prefix is None:
            return ""
        with self._lock:
            self._take_in()
            prefix.advance(self._find)
            value, interval = prefix.value(), prefix.shown_interval()
        if value is None or interval is None:
            return ""
        first = "" if prefix.is_whole else f" over the first {prefix.length:,}"
        return f"score {value:.4f} [{interval.low:.4f}, {interval.high:.4f}]{first}"

    def _column(self, part: Part) -> None:
        columns = self._columns.setdefault(part.task, [])
        if not any(_is_same(column.part, part) for column in columns):
            columns.append(_Column(part, {}))

    def _take_in(self) -> None:
        while self._inbox:
            task, doc_id, numbers = self._inbox.popleft()
            for column, number in zip(self._columns[task], numbers, strict=True):
                column.numbers[doc_id] = number

    def _find(self, part: Part, doc_id: int) -> float | None:
        for column in self._columns[part.task]:
            if _is_same(column.part, part):
                return column.numbers[doc_id]
        raise KeyError(part)

    def _note_end(self, one: _Open) -> None:
        whole = sum(self._sizes[part.task] for part in one.stop.parts)
        if one.prefix.is_whole:
            return
        logger.info(
            "{}: {} holds over the first {:,} of {:,} documents: not asked any further",
            one.stop.name, one.stop.text, one.prefix.length, whole,
        )  # fmt: skip
        still_open = {part.task for other in self._open for part in other.stop.parts}
        for part in one.stop.parts:
            if part.task not in still_open:
                self._ends.end(part.task, f"{one.stop.described()} holds", in_all=True)


def _is_same(one: Part, other: Part) -> bool:
    return (one.metric, one.filter, one.score_key, one.scale) == (
        other.metric, other.filter, other.score_key, other.scale
    )  # fmt: skip
