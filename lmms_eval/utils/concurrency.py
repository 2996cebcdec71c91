"""Adaptive concurrency of API back ends (harness specification §10.6), and closing of asynchronous generators."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from msgspec import Struct, structs

_RATE_LIMIT_MARKS = (
    "429", "rate limit", "too many requests", "quota", "rate_limit", "throttle", "requests per min",
    "tokens per min", "rpm", "tpm",
)  # fmt: skip


@asynccontextmanager
async def closed_on_error(items: AsyncIterator[Any]) -> AsyncIterator[None]:
    """Close an iterator if the block raises an exception.

    The event loop closes open generators in any order, and asyncio prints a traceback if a generator that another one
    uses is still running. ``KeyboardInterrupt`` and similar exceptions pass through without waiting.
    """
    try:
        yield
    except Exception:  # re-raised below
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
        raise


class AdaptiveConfig(Struct, frozen=True):
    """Limits and steps of the adaptation. Latencies are in seconds, rates are shares of requests."""

    min_concurrency: int = 1
    max_concurrency: int = 128
    target_latency_s: float = 15.0
    increase_step: float = 0.1
    decrease_factor: float = 0.7
    failure_threshold: float = 0.05

    @classmethod
    def from_raw(cls, *values: Any, **named: Any) -> Self:
        """Read numbers or texts of numbers, as model arguments state them. Raises ``ValueError`` for another text."""
        return cls(*values, **named).sanitized()

    def sanitized(self) -> Self:
        """Return the nearest allowed values."""
        least = max(1, int(self.min_concurrency))
        return structs.replace(
            self,
            min_concurrency=least,
            max_concurrency=max(least, int(self.max_concurrency)),
            target_latency_s=max(0.1, float(self.target_latency_s)),
            increase_step=max(0.01, float(self.increase_step)),
            decrease_factor=min(0.95, max(0.1, float(self.decrease_factor))),
            failure_threshold=min(1.0, max(0.0, float(self.failure_threshold))),
        )


class Decision(Struct, frozen=True):
    """Rates of the last requests, and the number of requests in flight from now on."""

    current_concurrency: int
    next_concurrency: int
    failure_rate: float
    rate_limit_rate: float
    p95_latency_s: float
    should_reduce: bool


class LatencyWindow(Struct, frozen=True):
    """The requests completed since the last decision; ``latencies`` in seconds."""

    total_requests: int
    failed_requests: int
    rate_limited_requests: int
    latencies: Sequence[float]


def requests_before_decision(current: int) -> int:
    """Return the number of completed requests until the next decision."""
    return max(4, current)


def compute_p95(values: Sequence[float]) -> float:
    """Return the 95th percentile, rounded down to one of the values; 0 without values."""
    ordered = sorted(values)
    return ordered[int(0.95 * (len(ordered) - 1))] if ordered else 0.0


def decide(current: int, window: LatencyWindow, config: AdaptiveConfig) -> Decision:
    """Decide the number of requests in flight: fewer after rate limits, failures or slow answers, else more."""
    total = max(1, window.total_requests)
    failure_rate, limit_rate = window.failed_requests / total, window.rate_limited_requests / total
    p95 = compute_p95(window.latencies)
    threshold, target = config.failure_threshold, config.target_latency_s
    reduce = limit_rate >= max(0.02, threshold) or failure_rate > threshold or p95 > 1.1 * target
    following = current
    if reduce:
        following = max(config.min_concurrency, int(current * config.decrease_factor))
    elif window.rate_limited_requests == 0 and failure_rate <= threshold / 2 and p95 < 0.85 * target:
        following = min(config.max_concurrency, current + max(1, int(current * config.increase_step)))
    return Decision(current, following, failure_rate, limit_rate, p95, reduce)


def is_rate_limit_error(text: str) -> bool:
    """Return whether an error text mentions a rate limit."""
    lowered = text.lower()
    return any(mark in lowered for mark in _RATE_LIMIT_MARKS)
