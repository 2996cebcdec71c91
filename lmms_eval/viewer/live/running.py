"""Numbers of a run that is still going: running scores with intervals that hold at every look, and the pace."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.engine.early import number_of
from lmms_eval.engine.headline import Part, Prefix

WINDOW_S = 60.0
"""Time over which the present rate is taken."""
LEAST_S = 3.0
"""Less time than this gives no rate."""
REST = 20
"""After numbers were counted anew from the first document, so many times as long passes before the next time."""
OUTSIDE = "a score lies outside of the range that its metric states"
WAITS = "the first documents of the random order are not finished yet"
AT_END = "the interval over all documents comes with the results"


class RunningScore:
    """A number over the first documents of the random order, with the interval that may be watched.

    Args:
        parts: the tasks in it.
        orders: the documents of these tasks in random order.
    """

    def __init__(self, parts: Sequence[Part], orders: Mapping[str, Sequence[int]]) -> None:
        self._parts, self._orders = {part.task: part for part in parts}, orders
        self._numbers: dict[str, dict[int, float | None]] = {part.task: {} for part in parts}
        self._prefix = self._begun()
        self._is_stale = False
        self._next_begin = 0.0

    def note(self, record: Mapping[str, Any]) -> None:
        """A document is finished, or finished once more; ``record`` is its journal record."""
        part = self._parts.get(record["task"])
        if part is None:
            return
        numbers, doc_id, number = self._numbers[part.task], record["doc_id"], number_of(record, part)
        self._is_stale |= doc_id in numbers and numbers[doc_id] != number
        numbers[doc_id] = number

    def shown(self) -> dict[str, Any]:
        """The number as the page reads it: ``value``, ``low``, ``high``, ``n`` first documents ``of`` all, ``reason``
        for which there is no interval."""
        begin = time.monotonic()
        if self._is_stale and begin >= self._next_begin:  # an answer that has failed was asked again
            self._prefix, self._is_stale = self._begun(), False
            self._prefix.advance(self._find)
            end = time.monotonic()
            self._next_begin = end + REST * (end - begin)
        prefix = self._prefix
        prefix.advance(self._find)
        value, interval = prefix.value(), prefix.shown_interval()
        reason = ""
        if interval is None:
            reason = OUTSIDE if prefix.lies_outside else WAITS if not prefix.counted else AT_END
        return {
            "value": value,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "n": prefix.length,
            "of": sum(len(self._orders[task]) for task in self._parts),
            "reason": reason,
        }

    def _begun(self) -> Prefix:
        return Prefix([*self._parts.values()], self._orders)

    def _find(self, part: Part, doc_id: int) -> float | None:
        return self._numbers[part.task][doc_id]


@dataclass(frozen=True, slots=True)
class _Seen:
    time: float
    done: int
    tokens: int


class Pace:
    """Rates over the last minute, as far as it was watched."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[_Seen] = deque()

    def see(self, done: int, tokens: int) -> None:
        """Note how far the run is."""
        now = self._clock()
        self._seen.append(_Seen(now, done, tokens))
        while len(self._seen) > 2 and self._seen[1].time <= now - WINDOW_S:
            self._seen.popleft()

    def rates(self) -> tuple[float, float] | None:
        """Documents and tokens a second; ``None`` while too little time was watched."""
        if not self._seen:
            return None
        first, last = self._seen[0], self._seen[-1]
        span = last.time - first.time
        if span < LEAST_S:
            return None
        return max(0, last.done - first.done) / span, max(0, last.tokens - first.tokens) / span
