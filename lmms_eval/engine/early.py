"""Tasks that end before their documents do, since a statement about a score holds at a look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval import stats
from lmms_eval.api.task import MetricDefinition, Task
from lmms_eval.engine.headline import Find, Part, Prefix, Statement
from lmms_eval.engine.order import RandomOrder
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.store import RunStore

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
