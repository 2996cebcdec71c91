"""Running scores with intervals that hold at every look."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.engine.early import number_of
from lmms_eval.engine.headline import Part, Prefix

REST = 20
"""After numbers were counted anew from the first document, so many times as long passes before the next time."""
OUTSIDE = "a score lies outside of the range that its metric states"
WAITS = "the first documents of the random order are not finished yet"
AT_END = "the interval over all documents comes with the results"


@dataclass(frozen=True, slots=True)
class ScoreSoFar:
    """A number over the first ``n`` documents of the random order, of ``of`` in all."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    of: int
    reason: str
    """Reason for which there is no interval."""


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

    def shown(self) -> ScoreSoFar:
        """Return the number as it is now."""
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
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        of = sum(len(self._orders[task]) for task in self._parts)
        return ScoreSoFar(value, low, high, prefix.length, of, reason)

    def _begun(self) -> Prefix:
        return Prefix([*self._parts.values()], self._orders)

    def _find(self, part: Part, doc_id: int) -> float | None:
        return self._numbers[part.task][doc_id]
