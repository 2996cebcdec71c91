"""The number of open requests: a gate whose width follows what the server takes."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Any

from lmms_eval.models.remote.arguments import RemoteArguments
from lmms_eval.utils.concurrency import AdaptiveConfig, Window, decide, requests_before_decision

DEFAULT_TARGET_LATENCY_S = 15.0
BURST_SHARE = 4
"""One burst of 429 narrows the gate to no less than a quarter."""
RESUME_JITTER_S = 1.0
"""After a pause, requests start again spread over a tenth of it, at most over this."""


class Gate:
    """Slots for open requests, and admission of single attempts.

    ``limit`` starts at ``num_concurrent`` and never exceeds the ceiling. Two rules move it:

    * ``decide`` (the adaptive rule of the family) after each window of completions. Its latency clause applies with
      ``adaptive_concurrency`` or an explicit target only: a model that thinks for a minute is not an overloaded one.
      While nothing has ever succeeded the limit stays: a dead server is not an overloaded one either.
    * A 429 narrows it at once, by the decrease factor and by at least one for each rejected request of the same burst
      (the requests that were under way when the first was rejected), and with ``Retry-After`` it holds all back.
    """

    def __init__(self, arguments: RemoteArguments) -> None:
        self.config = AdaptiveConfig(
            min_concurrency=arguments.adaptive_min_concurrency if arguments.adaptive_concurrency else 1,
            max_concurrency=arguments.ceiling,
            target_latency_s=arguments.adaptive_target_latency_s or DEFAULT_TARGET_LATENCY_S,
            increase_step=arguments.adaptive_increase_step,
            decrease_factor=arguments.adaptive_decrease_factor,
            failure_threshold=arguments.adaptive_failure_threshold,
        ).sanitized()
        self._heeds_latency = arguments.adaptive_concurrency or arguments.adaptive_target_latency_s is not None
        self.limit = min(max(arguments.num_concurrent, self.config.min_concurrency), self.config.max_concurrency)
        self.lowest = self.highest = self.limit
        self.open = self.active = self.peak_open = 0
        self._burst = 0
        self._burst_limit = self.limit
        self._burst_rejected = 0
        self._succeeded = False
        self._total = self._failed = self._rate_limited = 0
        self._latencies: list[float] = []
        self._paused_until = 0.0
        self._pause_jitter = 0.0
        self._random = random.Random()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._room_wanted: asyncio.Future[None] | None = None

    async def room(self) -> int:
        """Wait until a slot is free; the number of free slots."""
        while self.open >= self.limit:
            self._room_wanted = asyncio.get_running_loop().create_future()
            await self._room_wanted
        return self.limit - self.open

    def opened(self) -> None:
        """A request was taken."""
        self.open += 1
        self.peak_open = max(self.peak_open, self.open)

    def closed(self) -> None:
        """A request ended."""
        self.open -= 1
        self._wake()

    async def admit(self) -> int:
        """Wait until an attempt may start; a ticket for ``rate_limited``. ``release`` ends the attempt."""
        loop = asyncio.get_running_loop()
        while True:
            if (wait := self._paused_until - loop.time()) > 0:
                await asyncio.sleep(wait + self._random.uniform(0.0, self._pause_jitter))
            elif self.active >= self.limit:
                future = loop.create_future()
                self._waiting.append(future)
                await future
            else:
                self.active += 1
                return self._burst

    def release(self) -> None:
        """An attempt ended."""
        self.active -= 1
        self._wake()

    def rate_limited(self, ticket: int, pause_s: float) -> None:
        """An attempt with this ticket got a 429 that asks to wait ``pause_s`` seconds (0: it does not say)."""
        if pause_s > 0:
            until = asyncio.get_running_loop().time() + pause_s
            if until > self._paused_until:
                self._paused_until, self._pause_jitter = until, min(RESUME_JITTER_S, pause_s / 10)
        if ticket == self._burst:
            self._burst += 1
            self._burst_limit, self._burst_rejected = self.limit, 0
        elif ticket < self._burst - 1:
            return
        self._burst_rejected += 1
        by_factor = int(self._burst_limit * self.config.decrease_factor)
        narrowed = min(by_factor, self._burst_limit - self._burst_rejected)
        self._set_limit(min(self.limit, max(narrowed, self._burst_limit // BURST_SHARE)))
        self._take_window()

    def completed(self, latency: float | None, *, failed: bool = False, rate_limited: bool = False) -> None:
        """A request ended for good; ``latency`` of its last attempt in seconds, ``None`` without an answer."""
        self._total += 1
        self._failed += failed
        self._rate_limited += rate_limited
        self._succeeded = self._succeeded or latency is not None
        if latency is not None and self._heeds_latency:
            self._latencies.append(latency)
        if self._total < requests_before_decision(self.limit):
            return
        window = self._take_window()
        if self._succeeded or window.rate_limited_requests:
            self._set_limit(decide(self.limit, window, self.config).next_concurrency)

    def describe(self) -> dict[str, Any]:
        """Concurrency as it was used."""
        return {
            "ceiling": self.config.max_concurrency,
            "lowest": self.lowest,
            "highest": self.highest,
            "last": self.limit,
            "peak_open": self.peak_open,
        }

    def _take_window(self) -> Window:
        """The completions since the last decision; counting starts anew."""
        window = Window(self._total, self._failed, self._rate_limited, self._latencies)
        self._total = self._failed = self._rate_limited = 0
        self._latencies = []
        return window

    def _set_limit(self, limit: int) -> None:
        self.limit = min(max(limit, self.config.min_concurrency), self.config.max_concurrency)
        self.lowest, self.highest = min(self.lowest, self.limit), max(self.highest, self.limit)
        self._wake()

    def _wake(self) -> None:
        if self._room_wanted is not None and self.open < self.limit:
            if not self._room_wanted.done():
                self._room_wanted.set_result(None)
            self._room_wanted = None
        free = self.limit - self.active
        while free > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1
