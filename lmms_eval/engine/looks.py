"""Sequential looks at a running evaluation: the running number with its interval, and rules for stopping early."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from loguru import logger
from msgspec import Struct, structs

from lmms_eval import stats
from lmms_eval.api.task import MetricDefinition, Task
from lmms_eval.engine.conversations import Unit
from lmms_eval.engine.headline import Anchors, HeadlinePart, Prefix, RandomOrder, Statement, interleaved
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.stopping import TaskEnds
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.team import Team

NO_EARLY_INTERVAL = "stopped early"
"""Reason for a missing interval: the usual intervals are not valid if the data determined when to stop."""


class Stop(Struct, frozen=True):
    """A rule for stopping tasks early."""

    name: str
    """Name of the task or group."""
    parts: tuple[HeadlinePart, ...]
    statement: Statement
    text: str
    """The rule as the user wrote it."""

    def described(self) -> str:
        """Return the text of the rule, with the name of its group if it has one."""
        return self.text if [part.task for part in self.parts] == [self.name] else f"{self.name}: {self.text}"


class LookStop(Struct, frozen=True):
    """The early stop of a task after the first documents of its random order."""

    rule: str
    order: str
    """Name of the random order."""
    of: int
    """Number of the task's documents."""
    doc_ids: tuple[int, ...]
    """The documents that count, in random order."""
    difference: stats.Interval | None = None
    """Interval of the difference from the baseline, if the rule was about that."""

    @property
    def asked(self) -> int:
        return len(self.doc_ids)

    @property
    def mark(self) -> str:
        """Text to show with every number that is based only on these documents."""
        return stop_mark(self.asked, self.of)

    def as_record(self) -> dict[str, object]:
        """Return JSON that lets ``lmms-eval score`` and comparisons identify the documents."""
        return {"rule": self.rule, "order": self.order, "asked": self.asked, "of": self.of}


def stop_mark(asked: int, of: int) -> str:
    return f"stopped early: {asked:,} of {of:,}"


class Sampling(Struct, frozen=True):
    """A random order of the documents, with rules for stopping early."""

    order: RandomOrder
    stops: tuple[Stop, ...] = ()
    shown: tuple[HeadlinePart, ...] = ()
    """Parts of the number that is shown during the run; empty if it cannot have an interval."""
    recorded: Mapping[str, Mapping[str, object]] | None = None
    """Early stops of a recorded run that is scored again, instead of ``stops``."""
    anchors: Mapping[str, Anchors] = MappingProxyType({})
    """By ``HeadlinePart.key``."""

    def with_anchors(self, anchors: Mapping[str, Anchors]) -> Sampling:
        """Return the same sampling with anchors in every number that they are for."""
        found = structs.replace(self, anchors=anchors)
        stops = tuple(structs.replace(one, parts=tuple(map(found.anchored, one.parts))) for one in self.stops)
        return structs.replace(found, stops=stops, shown=tuple(map(found.anchored, self.shown)))

    def anchored(self, part: HeadlinePart) -> HeadlinePart:
        """Return a part with its anchors, if there are any."""
        return structs.replace(part, anchors=self.anchors.get(part.key))

    def early_stops(self, plans: Sequence[TaskPlan], store: RunStore) -> dict[str, LookStop]:
        """Return the tasks that ended early according to the journals."""
        by_name = {plan.task.name: plan for plan in plans}
        if self.recorded is not None:
            return {
                name: self._ended(by_name[name], str(stop["rule"]), int(str(stop["asked"])))
                for name, stop in self.recorded.items()
                if name in by_name
            }

        def find(part: HeadlinePart, doc_id: int) -> float | None:
            record = store.score(part.task, doc_id)
            if record is None:
                raise KeyError(doc_id)
            return number_of(record, part)

        orders = {name: self.order.of(by_name[name]) for stop in self.stops for name in _tasks(stop)}
        held: dict[str, list[tuple[Stop, Prefix]]] = {}
        open_tasks: set[str] = set()
        for stop in self.stops:
            prefix = Prefix(stop.parts, orders)
            if prefix.advance(find, stop.statement):
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

    def _ended(self, plan: TaskPlan, rule: str, asked: int, difference: stats.Interval | None = None) -> LookStop:
        doc_ids = tuple(self.order.of(plan)[:asked])
        return LookStop(rule, self.order.name(plan), plan.requested, doc_ids, difference)


def _tasks(stop: Stop) -> list[str]:
    return [part.task for part in stop.parts]


def headline_metric(task: Task) -> MetricDefinition:
    """Return the headline metric of a task: its mean over strata if it has one, else its first metric."""
    return next((metric for metric in task.metrics if metric.macro_scale), task.metrics[0])


def strata_of(task: Task, doc_ids: Sequence[int]) -> dict[int, str] | None:
    """Return the stratum of each document; ``None`` if the task has no strata."""
    names = task.strata(doc_ids)
    return None if names is None else dict(zip(doc_ids, names, strict=True))


def number_of(record: Mapping[str, Any], part: HeadlinePart) -> float | None:
    """Return a document's scaled number for a part from its journal record; ``None`` if it failed or is unscored."""
    for score in record.get("scores", ()):
        if score["filter"] == part.filter:
            number = stats.item_number(score["metrics"].get(part.metric), part.score_key)
            return None if number is None or number != number else part.scale * float(number)
    return None


class Looked(Struct, frozen=True):
    """The numbers of a metric over a task's first documents, for intervals that are valid at every look."""

    part: HeadlinePart
    order: Sequence[int]
    """All documents of the task in random order."""
    asked: int
    """Number of first documents that count."""
    numbers: Mapping[int, float]
    """Numbers by document; documents without a number are absent."""

    def gives(self, value: object) -> bool:
        """Return whether the aggregation's value equals the part's mean; ``True`` if a document has no number."""
        if len(self.numbers) < self.asked or not isinstance(value, int | float):
            return True
        plain = structs.replace(self, part=structs.replace(self.part, anchors=None))
        found = _prefix([plain]).value()
        return found is None or math.isclose(found, value, rel_tol=1e-9, abs_tol=1e-9)

    def anchored(self) -> AnchoredMean | None:
        """Return the estimate with anchors, and what they explain; ``None`` without anchors or numbers."""
        anchors, within = self.part.anchors, self.part.within
        prefix = _prefix([self])
        estimate = prefix.value()
        if anchors is None or estimate is None or prefix.lies_outside:
            return None
        shares = {doc: (number - within.low) / (within.high - within.low) for doc, number in self.numbers.items()}
        spread = _squares(list(shares.values()))
        left = _squares([share - anchors.shares[doc] for doc, share in shares.items()])
        return AnchoredMean(anchors, estimate, 1 - left / spread if spread > 0 else None)


class AnchoredMean(Struct, frozen=True):
    """Estimate of a score over all documents: mean anchor + mean of (number − anchor) over those that were asked."""

    anchors: Anchors
    estimate: float
    r_squared: float | None
    """Share of the numbers' variance that the anchors explain over what was asked; negative if they add to it, and
    ``None`` if all numbers are equal."""


def _squares(numbers: Sequence[float]) -> float:
    mean = math.fsum(numbers) / len(numbers)
    return math.fsum((number - mean) ** 2 for number in numbers)


def looked_interval(looked: Sequence[Looked]) -> stats.Interval | None:
    """Return the interval of the weighted mean of these metrics; ``None`` if a number is outside its range."""
    prefix = _prefix(looked)
    return None if prefix.lies_outside else prefix.interval()


def _prefix(looked: Sequence[Looked]) -> Prefix:
    orders = {one.part.task: one.order for one in looked}
    numbers = {one.part.task: one.numbers for one in looked}
    prefix = Prefix([one.part for one in looked], orders, {one.part.task: one.asked for one in looked})
    prefix.advance(lambda part, doc_id: numbers[part.task].get(doc_id))
    return prefix


REST = 100
"""Pause between two looks as a multiple of the length of a look, which takes the time of a scoring thread."""
LONGEST_REST_S = 0.25

News = tuple[str, int, list[float | None]]
"""Task, document, and its number in each column of the task, as processes exchange them."""


class Looks:
    """Watches the finished documents of a run; thread-safe.

    Args:
        ends: receives the tasks that stop early.
        decides: this process applies the rules.
        sends: other processes need the numbers of this one.
    """

    def __init__(
        self, plans: Sequence[TaskPlan], sampling: Sampling, ends: TaskEnds, decides: bool = True, sends: bool = False
    ) -> None:
        self._ends, self._lock = ends, threading.Lock()
        self._sizes = {plan.task.name: plan.requested for plan in plans}
        self.ruled = frozenset(name for stop in sampling.stops for name in _tasks(stop))
        """The tasks with rules."""
        self._columns: dict[str, list[tuple[HeadlinePart, dict[int, float | None]]]] = {}
        """By task the parts with different numbers, each with its numbers by document."""
        for part in (*sampling.shown, *(part for stop in sampling.stops for part in stop.parts)):
            columns = self._columns.setdefault(part.task, [])
            if not any(_is_same(known, part) for known, _ in columns):
                columns.append((part, {}))
        orders = {plan.task.name: sampling.order.of(plan) for plan in plans if plan.task.name in self._columns}
        self._shown = Prefix(sampling.shown, orders) if decides and sampling.shown else None
        self._open = [(stop, Prefix(stop.parts, orders)) for stop in sampling.stops] if decides else []
        """The rules that do not hold yet."""
        self._decides = decides
        self._order = interleaved({name: orders[name] for stop in sampling.stops for name in _tasks(stop)})
        """The documents with rules, in the order of asking."""
        self._next = next(self._order, None)
        """The first document that is not finished."""
        self._finished = 0
        """Number of the documents before it."""
        self._whole = sum(self._sizes[name] for name in self.ruled)
        self.front = 0
        """Number of the first documents with rules that are finished and looked at, or not asked any further."""
        self.left: set[str] = set()
        """Tasks that another process does not ask any further."""
        self._awaited = 0
        """The asking waits for the front to be there; 0 if it does not wait."""
        self.wake: Callable[[], None] = lambda: None
        """Called when the front may have moved on."""
        self._inbox: deque[News] = deque()
        self._news: deque[News] | None = deque() if sends else None
        self._next_look = 0.0

    def note(self, record: Mapping[str, Any]) -> None:
        """Add a finished document by its journal record."""
        columns = self._columns.get(record["task"])
        if columns is None:
            return
        news = record["task"], record["doc_id"], [number_of(record, part) for part, _ in columns]
        self._inbox.append(news)
        if self._news is not None:
            self._news.append(news)
        if self._open and (self._can_reach() or time.monotonic() >= self._next_look):
            self.look()

    def take(self, news: Iterable[News]) -> None:
        """Add the numbers of another process."""
        self._inbox.extend(news)

    def news(self) -> list[News]:
        """Return the numbers for other processes since the last call."""
        return [] if self._news is None else [self._news.popleft() for _ in range(len(self._news))]

    def look(self) -> None:
        """End the tasks whose rules hold by now; does nothing while another thread looks."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            begin = time.monotonic()
            self._take_in()
            for stop, prefix in list(self._open):
                if prefix.advance(self._find, stop.statement):
                    self._open.remove((stop, prefix))
                    if not prefix.is_whole:
                        self._end(stop, prefix.length)
            if self._decides:
                self._count_finished()
                self.front = self._finished if self._open else self._whole
            end = time.monotonic()
            self._next_look = end + min(LONGEST_REST_S, REST * (end - begin))
        finally:
            self._lock.release()

    def reach(self, front: int) -> bool:
        """Return whether the front is there by now; from then on, a look is not delayed if it gets there."""
        self._awaited = front if self.front < front else 0
        if self._can_reach():
            self.look()
        return self.front >= front

    @property
    def is_reached(self) -> bool:
        """The asking waits for a front that is there by now."""
        return 0 < self._awaited <= self.front

    def _can_reach(self) -> bool:
        """Return whether enough documents are finished for the front that is waited for."""
        if self._awaited <= self.front or not (self._decides and self._lock.acquire(blocking=False)):
            return False
        try:
            self._take_in()
            self._count_finished()
            return self._finished >= self._awaited
        finally:
            self._lock.release()

    def _count_finished(self) -> None:
        while self._next is not None:
            name, doc_id = self._next
            is_left = name in self.left or bool(self._ends.reason(name))
            if not is_left and doc_id not in self._columns[name][0][1]:
                return
            self._finished += 1
            self._next = next(self._order, None)

    def shown(self) -> str:
        """Return the running number of the first documents with its interval; empty without an interval."""
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

    def _take_in(self) -> None:
        while self._inbox:
            task, doc_id, found = self._inbox.popleft()
            for (_, numbers), number in zip(self._columns[task], found, strict=True):
                numbers[doc_id] = number

    def _find(self, part: HeadlinePart, doc_id: int) -> float | None:
        for known, numbers in self._columns[part.task]:
            if _is_same(known, part):
                return numbers[doc_id]
        raise KeyError(part)

    def _end(self, stop: Stop, length: int) -> None:
        whole = sum(self._sizes[part.task] for part in stop.parts)
        logger.info(
            "{}: {} holds over the first {:,} of {:,} documents: not asked any further",
            stop.name, stop.text, length, whole,
        )  # fmt: skip
        still_open = {task for other, _ in self._open for task in _tasks(other)}
        for task in _tasks(stop):
            if task not in still_open:
                self._ends.end(task, f"{stop.described()} holds", in_all=True)


_REST = 4
"""A run that was too far ahead asks again when it is less far ahead by one part in ``_REST``: several documents at a
time, so that fewer intervals are computed and threads woken."""


class Lead:
    """Limits how far the asking is ahead of the documents that count (a ``stream.Brake``); thread-safe.

    A decision needs all first documents of the order. While one of them takes long, a run without this limit would ask
    documents that do not count after the decision.
    """

    def __init__(self, looks: Looks, most: int) -> None:
        """Begin at the front of ``looks``; at most ``most`` documents beyond it may be begun."""
        self._looks, self._most = looks, most
        self._is_resting = False
        self.forms_batches: Callable[[], bool] = lambda: True
        """Returns whether the model asks for whole batches, which must not depend on how fast documents are scored."""
        self.has_failed: Callable[[], bool] = lambda: False
        """Returns whether documents are no longer scored, so that the front does not move on."""
        self._lock = threading.Lock()
        self._passed = 0
        """Number of first documents with rules that were begun, here or in another process or start."""
        self._unscored = 0

    def passing(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """Yield all documents of the run, and note how far they are."""
        for unit in units:
            self._passed += unit.task.name in self._looks.ruled
            yield unit

    def is_ahead(self) -> bool:
        if self.has_failed():
            return False
        least = self._passed - self._most + 1
        rested = least if self.forms_batches() else least + self._most // _REST
        self._is_resting = (self._is_resting or self._looks.front < least) and not self._looks.reach(rested)
        return self._is_resting

    def is_settling(self) -> bool:
        """Return whether an answered document is not scored yet."""
        return self._unscored > 0

    def answered(self) -> None:
        """Note a document that is about to be scored."""
        with self._lock:
            self._unscored += 1

    def scored(self) -> None:
        """Note a document that was scored, after ``Looks.note``."""
        with self._lock:
            self._unscored -= 1
            is_settled = not self._unscored
        if (is_settled and self.forms_batches()) or self._looks.is_reached:
            self._looks.wake()


def _is_same(one: HeadlinePart, other: HeadlinePart) -> bool:
    return (one.metric, one.filter, one.score_key, one.scale) == (
        other.metric, other.filter, other.score_key, other.scale
    )  # fmt: skip


EXCHANGE_S = 0.2
"""Interval of the exchange. The front reaches the other processes after one or two of them."""


class LookExchange:
    """Exchange between processes: the others send the numbers of finished documents, the first one its decisions."""

    def __init__(self, team: Team, looks: Looks, ends: TaskEnds) -> None:
        self._team, self._looks, self._ends = team, looks, ends
        self._received: Counter[int] = Counter()
        """Number of messages received from each process."""
        self._sent = 0
        self._published: set[str] = set()
        self._front = 0
        """The front that the first process has published."""
        self._left: set[str] = set()
        """Tasks that this process has reported as not asked any further."""

    def begin(self) -> None:
        """Exchange what earlier starts finished, so that no process asks documents of tasks that already ended.

        Raises ``TeamError`` if another process failed or vanished.
        """
        team = self._team
        if team.is_first:
            for rank in range(1, team.place.size):
                self._take_numbers(team.receive(f"numbers/{rank}/0", rank), rank)
            self._looks.look()
            self._send_ends()
        else:
            self._send_numbers()
            self._take_ends(team.receive("ends/0", 0))
        team.each_beat(self.exchange, EXCHANGE_S)

    def exchange(self) -> None:
        """Send and receive what is new. Raises ``TeamError``."""
        team = self._team
        if not team.is_first:
            self._send_numbers()
            while (ends := team.poll(f"ends/{self._received[0]}", 0)) is not None:
                self._take_ends(ends)
            self._looks.front = team.add("front", 0)
            self._looks.wake()
            return
        for rank in range(1, team.place.size):
            while (news := team.poll(f"numbers/{rank}/{self._received[rank]}", rank)) is not None:
                self._take_numbers(news, rank)
        self._looks.look()
        self._send_ends()
        self._looks.wake()

    def _send_numbers(self) -> None:
        news = self._looks.news()
        left = {task for task in self._looks.ruled if self._ends.reason(task)} - self._left
        if news or left or not self._sent:
            message = {"numbers": news, "left": sorted(left)}
            self._team.publish(f"numbers/{self._team.place.rank}/{self._sent}", message)
            self._sent += 1
            self._left |= left

    def _take_numbers(self, message: Mapping[str, Any], rank: int) -> None:
        self._looks.take(message["numbers"])
        self._looks.left.update(message["left"])
        self._received[rank] += 1

    def _send_ends(self) -> None:
        news = {task: reason for task, reason in self._ends.common().items() if task not in self._published}
        if news or not self._sent:
            self._team.publish(f"ends/{self._sent}", news)
            self._sent += 1
            self._published.update(news)
        if (front := self._looks.front) > self._front:
            self._team.add("front", front - self._front)
            self._front = front

    def _take_ends(self, ends: dict[str, str]) -> None:
        self._received[0] += 1
        for task, reason in ends.items():
            self._ends.end(task, reason, in_all=True)
