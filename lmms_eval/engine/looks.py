"""Looks at a run while it goes on: the running number with its interval, and the tasks whose statements hold."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loguru import logger

from lmms_eval import stats
from lmms_eval.api.task import MetricDefinition, Task
from lmms_eval.engine.headline import Find, Part, Prefix, RandomOrder, Statement
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.stopping import TaskEnds
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.team import Team

NO_EARLY_INTERVAL = "stopped early"
"""Reason for which a number has no interval: the usual ones do not hold where the data decided how many they are."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A rule by which tasks are not asked any further."""

    name: str
    """Task or group."""
    parts: tuple[Part, ...]
    statement: Statement
    text: str
    """The rule as it was written."""

    def described(self) -> str:
        """Text of the rule, with its group where it has one."""
        return self.text if [part.task for part in self.parts] == [self.name] else f"{self.name}: {self.text}"


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """The end of a task at the first documents of its random order."""

    rule: str
    order: str
    """Name of the random order."""
    of: int
    doc_ids: tuple[int, ...]
    """The documents that count, in that order."""
    difference: stats.Interval | None = None
    """Of the score less the baseline's, where the rule was about that."""

    @property
    def asked(self) -> int:
        return len(self.doc_ids)

    @property
    def mark(self) -> str:
        """Text beside every number that rests on these documents alone."""
        return stop_mark(self.asked, self.of)

    def as_record(self) -> dict[str, object]:
        """JSON by which ``lmms-eval score`` and comparisons find the documents again."""
        return {"rule": self.rule, "order": self.order, "asked": self.asked, "of": self.of}


def stop_mark(asked: int, of: int) -> str:
    return f"stopped early: {asked:,} of {of:,}"


@dataclass(frozen=True, slots=True)
class Sampling:
    """The way of a run through its documents, where that is random."""

    order: RandomOrder
    stops: tuple[Stop, ...] = ()
    shown: tuple[Part, ...] = ()
    """Parts of the number that is shown while the run goes on; empty where none can have an interval."""
    recorded: Mapping[str, Mapping[str, object]] | None = None
    """Early stops of a recorded run that is only scored again, in place of ``stops``."""

    def early_stops(self, plans: Sequence[TaskPlan], store: RunStore) -> dict[str, EarlyStop]:
        """Find the tasks that have ended early, by what the journals hold."""
        by_name = {plan.task.name: plan for plan in plans}
        if self.recorded is not None:
            return {
                name: self._ended(by_name[name], str(said["rule"]), int(str(said["asked"])))
                for name, said in self.recorded.items()
                if name in by_name
            }
        orders = {name: self.order.of(by_name[name]) for stop in self.stops for name in _tasks(stop)}
        held: dict[str, list[tuple[Stop, Prefix]]] = {}
        open_tasks: set[str] = set()
        for stop in self.stops:
            prefix = Prefix(stop.parts, orders)
            if prefix.advance(_in_journal(store), stop.statement):
                for name in _tasks(stop):
                    held.setdefault(name, []).append((stop, prefix))
            else:
                open_tasks.update(_tasks(stop))
        found = {}
        for name, prefixes in held.items():
            asked = max(prefix.taken[name] for _, prefix in prefixes)
            if name not in open_tasks and asked < by_name[name].requested:
                rule = "; ".join(stop.described() for stop, _ in prefixes)
                compared = [
                    prefix for stop, prefix in prefixes if any(part.baseline is not None for part in stop.parts)
                ]
                difference = compared[0].interval() if compared else None
                found[name] = self._ended(by_name[name], rule, asked, difference)
        return found

    def _ended(self, plan: TaskPlan, rule: str, asked: int, difference: stats.Interval | None = None) -> EarlyStop:
        doc_ids = tuple(self.order.of(plan)[:asked])
        return EarlyStop(rule, self.order.name(plan), plan.requested, doc_ids, difference)


def _tasks(stop: Stop) -> list[str]:
    return [part.task for part in stop.parts]


def _in_journal(store: RunStore) -> Find:
    def find(part: Part, doc_id: int) -> float | None:
        record = store.score(part.task, doc_id)
        if record is None:
            raise KeyError(doc_id)
        return number_of(record, part)

    return find


def headline_metric(task: Task) -> MetricDefinition:
    """The metric that a task is looked at for: its mean over strata where it has one, else its first."""
    return next((metric for metric in task.metrics if metric.macro_scale), task.metrics[0])


def strata_of(task: Task, doc_ids: Sequence[int]) -> dict[int, str] | None:
    """The stratum of each document; ``None`` where the task has none."""
    names = task.strata(doc_ids)
    return None if names is None else dict(zip(doc_ids, names, strict=True))


def number_of(record: Mapping[str, Any], part: Part) -> float | None:
    """A document's number of a part's metric, scaled, from its journal record; ``None``: failed, or not scored."""
    for score in record.get("scores", ()):
        if score["filter"] == part.filter:
            number = stats.item_number(score["metrics"].get(part.metric), part.score_key)
            return None if number is None or number != number else part.scale * float(number)
    return None


@dataclass(frozen=True, slots=True)
class Counted:
    """The way of a run through a task's documents, and how far it went."""

    order: Sequence[int]
    """All of them in random order."""
    stop: EarlyStop | None = None

    @property
    def asked(self) -> int:
        return len(self.order) if self.stop is None else self.stop.asked


@dataclass(frozen=True, slots=True)
class Looked:
    """The numbers of a metric over a task's first documents, for intervals that are valid at every look."""

    part: Part
    order: Sequence[int]
    """All documents of the task in random order."""
    asked: int
    """So many of the first count."""
    numbers: Mapping[int, float]
    """By document; those without one are absent."""

    def gives(self, value: object) -> bool:
        """The aggregation's number is that of the part, as far as it can be told: all documents have a number."""
        if len(self.numbers) < self.asked or not isinstance(value, int | float):
            return True
        found = _prefix([self]).value()
        return found is None or math.isclose(found, value, rel_tol=1e-9, abs_tol=1e-9)


def looked_interval(looked: Sequence[Looked]) -> stats.Interval | None:
    """The interval of the weighted mean of these metrics; ``None`` where a number lies outside of its range."""
    prefix = _prefix(looked)
    return None if prefix.lies_outside else prefix.interval()


def _prefix(looked: Sequence[Looked]) -> Prefix:
    orders = {one.part.task: one.order for one in looked}
    numbers = {one.part.task: one.numbers for one in looked}
    prefix = Prefix([one.part for one in looked], orders, {one.part.task: one.asked for one in looked})
    prefix.advance(lambda part, doc_id: numbers[part.task].get(doc_id))
    return prefix


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


EXCHANGE_S = 0.2
"""What is asked beyond a decision is what is asked within this time, and what is in flight."""


class LookExchange:
    """A process that is not the first sends from time to time what it has finished since, in one message."""

    def __init__(self, team: Team, looks: Looks, ends: TaskEnds) -> None:
        self._team, self._looks, self._ends = team, looks, ends
        self._heard: Counter[int] = Counter()
        """Messages from each process."""
        self._sent = 0
        self._published: set[str] = set()

    def begin(self) -> None:
        """Exchange what earlier starts have finished, so that no process asks what need not be asked any more.

        Raises:
            TeamError: another process has failed or vanished.
        """
        team = self._team
        if team.is_first:
            for rank in range(1, team.place.size):
                self._looks.take(team.receive(f"numbers/{rank}/0", rank))
                self._heard[rank] += 1
            self._looks.look()
            self._tell_ends()
        else:
            self._tell_numbers()
            self._take_ends(team.receive("ends/0", 0))
        team.each_beat(self.exchange, EXCHANGE_S)

    def exchange(self) -> None:
        """Send and take what there is. Raises ``TeamError``."""
        team = self._team
        if not team.is_first:
            self._tell_numbers()
            while (ends := team.poll(f"ends/{self._heard[0]}", 0)) is not None:
                self._take_ends(ends)
            return
        for rank in range(1, team.place.size):
            while (news := team.poll(f"numbers/{rank}/{self._heard[rank]}", rank)) is not None:
                self._looks.take(news)
                self._heard[rank] += 1
        self._looks.look()
        self._tell_ends()

    def _tell_numbers(self) -> None:
        news = self._looks.news()
        if news or not self._sent:
            self._team.publish(f"numbers/{self._team.place.rank}/{self._sent}", news)
            self._sent += 1

    def _tell_ends(self) -> None:
        news = {task: reason for task, reason in self._ends.common().items() if task not in self._published}
        if news or not self._sent:
            self._team.publish(f"ends/{self._sent}", news)
            self._sent += 1
            self._published.update(news)

    def _take_ends(self, ends: dict[str, str]) -> None:
        self._heard[0] += 1
        for task, reason in ends.items():
            self._ends.end(task, reason, in_all=True)
