"""Rates of a run, as far as it was watched."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

WINDOW_S = 60.0
"""Time over which the present rate is taken."""
LEAST_S = 3.0
"""Less time than this gives no rate."""


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
