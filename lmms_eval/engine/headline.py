"""Headline numbers with intervals over the first documents of a random order.

A document counts once all documents before it are finished. So the numbers depend only on the order and the answers,
not on concurrency, the number of processes or kills.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge

from msgspec import Struct, field, structs

from lmms_eval import stats
from lmms_eval.engine.conversations import Unit
from lmms_eval.engine.plan import TaskPlan, draw_place
from lmms_eval.stats.earlier import Fit
from lmms_eval.stats.interval import WITH_ANCHORS
from lmms_eval.utils.numbers import SHARES, ScoreRange

RANDOM, STRATA = "random:", "strata:"
"""Prefixes of the names of orders: over all documents of a task, and over those of each stratum."""


class RandomOrder(Struct, frozen=True):
    """A random order of each task's documents, determined by a seed, the task's name and the documents' numbers.

    If a task has strata, each stratum is in random order, and they are interleaved evenly. That gives the tightest
    interval, and the next stratum never depends on an answer.
    """

    seed: int = 0

    def of(self, plan: TaskPlan) -> list[int]:
        """Return the documents of a task in this order; without strata a subset of documents has the same order."""
        order = sorted(plan.doc_ids, key=partial(draw_place, f"{self.seed}:{plan.task.name}"))
        names = plan.task.strata(order)
        if names is None:
            return order
        strata: dict[str, list[int]] = {}
        for name, doc_id in zip(names, order, strict=True):
            strata.setdefault(name, []).append(doc_id)
        return [doc_id for _, doc_id in interleaved(strata)]

    def name(self, plan: TaskPlan) -> str:
        """Return a name for the order of a task's documents: equal names mean equal orders."""
        names = plan.task.strata(plan.doc_ids)
        content = ",".join(map(str, plan.doc_ids)) + ("" if names is None else json.dumps([*names]))
        digest = hashlib.sha256(content.encode()).hexdigest()
        return f"{RANDOM if names is None else STRATA}{self.seed}:{digest[:8]}"

    def units(self, plans: Sequence[TaskPlan]) -> Iterator[Unit]:
        """Yield all documents of a run; those that are asked again come last."""
        tasks = {plan.task.name: plan.task for plan in plans}
        for asks_again in (False, True):
            part = [plan for plan in plans if plan.task.asks_again == asks_again]
            for name, doc_id in interleaved({plan.task.name: self.of(plan) for plan in part}):
                yield Unit(tasks[name], doc_id, tasks[name].repeats)


def interleaved(orders: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int]]:
    """Merge the documents of several tasks or strata, so that their shares are about equal at any point.

    Leaving a task out does not change the order of the others.
    """

    def places(name: str, doc_ids: Sequence[int]) -> Iterator[tuple[float, str, int]]:
        return (((number + 0.5) / len(doc_ids), name, doc_id) for number, doc_id in enumerate(doc_ids))

    for _, name, doc_id in merge(*(places(name, doc_ids) for name, doc_ids in orders.items())):
        yield name, doc_id


def place_in(order: str, task: str, doc_id: str) -> bytes:
    """Return a document's place in an order by name. Raises ``ValueError`` if either is not of a random order."""
    kind, seed, *_ = [*order.split(":"), ""]
    if f"{kind}:" != RANDOM:
        raise ValueError(f"no random order: {order}")
    return draw_place(f"{int(seed)}:{task}", int(doc_id))


LEVEL = 0.95
LEAST = 10
"""Minimum number of documents for a decision."""
LOOKS = 200
"""Number of documents above which the next look waits until their number has grown by one part in ``LOOKS``."""
AT_ONCE = 256
"""Most documents that are added at once: more may be drawn than count if a statement holds."""
_SLACK = 1e-12


class Anchors(Struct, frozen=True):
    """Numbers that earlier runs predict for a metric of a task, fixed before the run (``--anchors``)."""

    runs: tuple[str, ...]
    """The earlier runs, as ``--anchors`` names them."""
    shares: Mapping[int, float]
    """Predicted numbers by document, as fractions of the range from 0 to 1; every document of the task has one."""
    known: int
    """Number of documents with a number in an earlier run. The others have the mean."""
    fit: Fit = "mean"
    """How the numbers of the runs were combined."""
    cross_validated: float | None = None
    """R² over earlier runs that were held out, each predicted from the others; ``None`` for a single run."""

    @property
    def digest(self) -> str:
        """SHA-256 of the predicted numbers: equal digests mean equal anchors."""
        content = json.dumps([[doc_id, share.hex()] for doc_id, share in sorted(self.shares.items())])
        return hashlib.sha256(content.encode()).hexdigest()


class HeadlinePart(Struct, frozen=True):
    """One task's part of a headline number: the mean of a metric over its documents, or over its strata."""

    task: str
    metric: str
    filter: str
    within: ScoreRange
    """Finite range of the documents' numbers after multiplication by ``scale``."""
    score_key: str = "score"
    weight: float = 1.0
    in_percent: bool = False
    """The range is first rescaled to 0 to 100."""
    baseline: Mapping[int, float] | None = None
    """Numbers to subtract, by document; a document without one may have any number of the range in the baseline."""
    is_binary: bool = False
    """The range is not stated; it is assumed to be right or wrong unless another number appears."""
    is_clustered: bool = False
    """The task's documents form clusters, so the interval over all documents is computed over clusters."""
    strata: Mapping[int, str] | None = None
    """Stratum by document, if each stratum has its own random order."""
    is_macro: bool = False
    """The part is the mean over the strata of their documents' means."""
    scale: float = 1.0
    anchors: Anchors | None = None
    """Predicted numbers to subtract, whose mean is added again; no effect with a ``baseline``."""

    @property
    def key(self) -> str:
        """``TASK,METRIC,FILTER``."""
        return f"{self.task},{self.metric},{self.filter}"

    @property
    def unit(self) -> float:
        """Width of the range in units of the headline number."""
        return 100.0 if self.in_percent else self.within.high - self.within.low

    @property
    def ends(self) -> ScoreRange:
        """Range of the part's mean in units of the headline number."""
        if self.baseline is not None:
            return ScoreRange(-self.unit, self.unit)
        return ScoreRange(0.0, self.unit) if self.in_percent else self.within

    def drawn_ends(self, doc_ids: Sequence[int]) -> ScoreRange:
        """Return the numbers that the mean shares 0 and 1 represent (``shares``), in units of the headline number."""
        if self.baseline is not None or self.anchors is None:
            return self.ends
        by_stratum: dict[str, list[float]] = {}
        for doc_id in doc_ids:
            name = self.stratum(doc_id) if self.is_macro else ""
            by_stratum.setdefault(name, []).append(self.anchors.shares[doc_id])
        mean = math.fsum(math.fsum(each) / len(each) for each in by_stratum.values()) / len(by_stratum)
        middle = self.ends.low + self.unit * mean
        return ScoreRange(middle - self.unit, middle + self.unit)

    def holds(self, number: float) -> bool:
        """Return whether a number is possible for a document."""
        return number in self.within and (not self.is_binary or number in (self.within.low, self.within.high))

    def stratum(self, doc_id: int) -> str:
        return "" if self.strata is None else self.strata[doc_id]

    def shares(self, doc_id: int, number: float | None) -> tuple[float, float]:
        """Return the least and the greatest possible number of a document as fractions of the range, from 0 to 1.

        They are equal if the number, and the baseline's if there is one, is known. If something is subtracted, 0 and 1
        are the ends of the differences.
        """
        width = self.within.high - self.within.low
        low, high = (0.0, 1.0) if number is None else ((number - self.within.low) / width,) * 2
        if self.baseline is not None:
            other = self.baseline.get(doc_id)
            least, greatest = (0.0, 1.0) if other is None else ((other - self.within.low) / width,) * 2
            low, high = (low - greatest + 1) / 2, (high - least + 1) / 2
        elif self.anchors is not None:
            anchor = self.anchors.shares[doc_id]
            low, high = (low - anchor + 1) / 2, (high - anchor + 1) / 2
        return min(1.0, max(0.0, low)), min(1.0, max(0.0, high))


Find = Callable[[HeadlinePart, int], float | None]
"""Returns the number of a finished document, or ``None`` without one; raises ``KeyError`` for an unfinished document.
"""


Statement = Callable[[stats.Interval], bool]
"""Condition on the interval of a headline number."""


def half_width(limit: float) -> Statement:
    """Return the condition that half the width of an interval is at most ``limit``."""
    return lambda interval: (interval.high - interval.low) / 2 <= limit + _SLACK


def excludes(number: float) -> Statement:
    """Return the condition that an interval does not contain a number."""
    return lambda interval: not interval.low - _SLACK <= number <= interval.high + _SLACK


def _first(units: Iterable[tuple[str, int]], counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield at most ``counts`` documents of each task."""
    taken: Counter[str] = Counter()
    for name, doc_id in units:
        if taken[name] < counts[name]:
            taken[name] += 1
            yield name, doc_id


class _Sums(Struct):
    """Sums over the shares of some documents."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, share: float) -> None:
        self.count += 1
        self.total += share
        self.squares += share * share


class _Scale(Struct):
    """Maps shares to headline numbers."""

    low: float
    span: float

    def of(self, found: stats.Interval) -> stats.Interval:
        low, high = (self.low + self.span * end for end in (found.low, found.high))
        return stats.Interval(low, high, found.method)


class _Moments(Struct):
    """Sums over the documents of a part or of one of its strata."""

    span: float
    """Weight of their mean share in the headline number."""
    plain_span: float
    """The same without anchors."""
    size: int
    """Number of documents in all."""
    known: _Sums = field(default_factory=_Sums)
    """Of the documents with a number, after subtracting their anchors."""
    least: _Sums = field(default_factory=_Sums)
    """Of all documents without anchors, with the least possible share for those without a number."""
    greatest: _Sums = field(default_factory=_Sums)


class _Finished(Struct, frozen=True):
    """A finished document of a part."""

    part: HeadlinePart
    doc_id: int
    number: float | None
    is_outside: bool
    """Its number lies outside the range, and is not used."""
    low: float
    high: float
    """``HeadlinePart.shares``."""


class Prefix:
    """The longest sequence of finished documents at the start of a random order, with its headline number.

    ``orders`` has the documents of each task in random order; ``counts`` limits their number (default: all).
    """

    def __init__(
        self,
        parts: Sequence[HeadlinePart],
        orders: Mapping[str, Sequence[int]],
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self._parts = {part.task: part for part in parts}
        units = interleaved({name: orders[name] for name in self._parts})
        self._units = list(units if counts is None else _first(units, counts))
        self._whole = sum(len(orders[name]) for name in self._parts)
        self.taken = dict.fromkeys(self._parts, 0)
        """Number of documents by task."""
        self.length = 0
        self.counted = 0
        """Number of documents with or without a number; ``missing`` of them have none, here or in the baseline."""
        self.missing = 0
        self._next_look = LEAST
        self.lies_outside = False
        """A number is outside its stated range, so there is no valid interval."""
        whole = math.fsum(part.weight for part in parts)
        drawn = [(part.weight / whole, part.drawn_ends(orders[part.task])) for part in parts]
        spans = [weight * (ends.high - ends.low) for weight, ends in drawn]
        self._scale = _Scale(math.fsum(weight * ends.low for weight, ends in drawn), math.fsum(spans))
        self._bare = {part.task: structs.replace(part, anchors=None) for part in parts}
        plain = [(part.weight / whole, part.ends) for part in self._bare.values()]
        plain_spans = [weight * (ends.high - ends.low) for weight, ends in plain]
        self._plain = _Scale(math.fsum(weight * ends.low for weight, ends in plain), math.fsum(plain_spans))
        self._has_anchors = any(part.anchors is not None for part in parts)
        self._cells: dict[tuple[str, str], tuple[int, _Moments]] = {}
        """Number and sums of each stratum by task and name; strata share their sums unless their means are averaged."""
        totals: list[int] = []
        weights: list[float] = []
        for part, span, plain_span in zip(parts, spans, plain_spans, strict=True):
            sizes = Counter(part.stratum(doc_id) for doc_id in orders[part.task])
            together = _Moments(span, plain_span, sizes.total())
            for name, size in sizes.items():
                share = 1 / len(sizes) if part.is_macro else size / sizes.total()
                moments = _Moments(span * share, plain_span * share, size) if part.is_macro else together
                self._cells[part.task, name] = len(totals), moments
                totals.append(size)
                weights.append(span * share / self._scale.span)
        from lmms_eval.stats.sequence import Sampled, StratifiedSampled

        self._one = Sampled(totals[0], SHARES, LEVEL) if len(totals) == 1 else None
        """The interval of a number without strata."""
        self._several = StratifiedSampled(totals, weights, SHARES, LEVEL) if self._one is None else None
        self._last: stats.Interval | None = None
        """Of a number without strata: the interval over the documents that count, in shares, if it is known."""
        self._moments = list({id(moments): moments for _, moments in self._cells.values()}.values())
        self._not_begun = {*self._cells}

    @property
    def is_whole(self) -> bool:
        """Whether all documents of all tasks are included."""
        return self.length == self._whole

    def advance(self, find: Find, statement: Statement | None = None) -> bool:
        """Add finished documents until the statement holds; returns whether it does.

        Intervals of a number without strata are computed for many documents at once, which takes a twentieth of the
        time, and equal those after each of them.
        """
        while documents := self._finished(find):
            ends = self._draw(documents, statement is not None)
            for place, one in enumerate(documents):
                self._last = None if ends is None else stats.Interval(*ends[place], "betting")
                self._add(one)
                if statement is not None and self._is_look() and statement(self.interval()):
                    return True
        return False

    def _finished(self, find: Find) -> list[_Finished]:
        """Return the next finished documents, up to a number."""
        found: list[_Finished] = []
        for name, doc_id in self._units[self.length : self.length + AT_ONCE]:
            part = self._parts[name]
            try:
                number = find(part, doc_id)
            except KeyError:
                break
            is_outside = number is not None and not part.holds(number)
            number = None if is_outside else number
            found.append(_Finished(part, doc_id, number, is_outside, *part.shares(doc_id, number)))
        return found

    def _draw(self, documents: Sequence[_Finished], is_looking: bool) -> list[tuple[float, float]] | None:
        """Add documents to the interval of a number without strata; return its ends after each, if there is a look."""
        if self._one is None:
            return None
        if is_looking and not self.lies_outside and self.counted + len(documents) >= self._next_look:
            return self._one.after_each([one.low for one in documents], [one.high for one in documents])
        for one in documents:
            self._one.add(one.low, one.high)
        return None

    def _is_look(self) -> bool:
        """Return whether to test the statement now: always at first, then whenever half a percent was added.

        An interval over strata takes as much time as about twenty documents. The looks depend only on the number of
        documents, so the decision is reproducible. There is no look while a stratum has no document, since the number
        lacks it.
        """
        if self.lies_outside or self._not_begun or self.counted < self._next_look:
            return False
        self._next_look = self.counted + max(1, self.counted // LOOKS)
        return True

    def _add(self, one: _Finished) -> None:
        part = one.part
        self.length += 1
        self.taken[part.task] += 1
        self.counted += 1
        key = part.task, part.stratum(one.doc_id)
        self._not_begun.discard(key)
        self.lies_outside = self.lies_outside or one.is_outside
        stratum, moments = self._cells[key]
        if self._several is not None:
            self._several.add(stratum, one.low, one.high)
        plain = one.low, one.high
        if part.anchors is not None:
            plain = self._bare[part.task].shares(one.doc_id, one.number)
        moments.least.add(plain[0])
        moments.greatest.add(plain[1])
        if one.low == one.high:
            moments.known.add(one.low)
        else:
            self.missing += 1

    def value(self) -> float | None:
        """Return the headline number; ``None`` while a task, or a stratum whose mean counts, has no number."""
        if not all(one.known.count for one in self._moments):
            return None
        return self._scale.low + math.fsum(one.span * one.known.total / one.known.count for one in self._moments)

    def interval(self) -> stats.Interval:
        """Return the interval for the number over all documents, which is valid at all looks simultaneously."""
        found = self._last
        if found is None:
            sampled = self._one or self._several
            assert sampled is not None
            found = sampled.interval()
        found = self._scale.of(found)
        return self._clipped(found) if self._has_anchors else found

    def _clipped(self, found: stats.Interval) -> stats.Interval:
        """Cut an interval to the numbers that the known documents and the range allow, whatever the anchors are."""
        least = math.fsum(one.plain_span * one.least.total / one.size for one in self._moments)
        most = math.fsum(
            one.plain_span * (one.greatest.total + one.size - one.greatest.count) / one.size for one in self._moments
        )
        ends = self._plain.low + least, self._plain.low + most
        low, high = max(found.low, ends[0]), min(found.high, ends[1])
        return stats.Interval(*((low, high) if low <= high else ends), found.method + WITH_ANCHORS)

    def shown_interval(self) -> stats.Interval | None:
        """Return the interval to show: if all documents are included, the ordinary one; ``None`` without one.

        Documents without a number widen it: it reaches from the interval with their least possible numbers to that
        with their greatest ones.
        """
        if self.lies_outside or not self.counted:
            return None
        if not self.is_whole:
            return self.interval()
        if self.value() is None or any(part.is_clustered for part in self._parts.values()):
            return None
        low = self._ordinary([one.least for one in self._moments])
        high = self._ordinary([one.greatest for one in self._moments]) if self.missing else low
        if isinstance(low, stats.NoInterval) or isinstance(high, stats.NoInterval):
            return None
        return self._plain.of(stats.Interval(low.low, high.high, low.method))

    def _ordinary(self, sums: Sequence[_Sums]) -> stats.Interval | stats.NoInterval:
        """Return the interval of a plain sample, in shares of the number's range."""
        spans = [one.plain_span for one in self._moments]
        spreads = [stats.MeanSpread.of_moments(one.count, one.total, one.squares, SHARES) for one in sums]
        mean = math.fsum(span * one.total / one.count for span, one in zip(spans, sums, strict=True)) / math.fsum(spans)
        return stats.score_interval(mean, stats.MeanSpread.stratified(spreads, spans), SHARES)
