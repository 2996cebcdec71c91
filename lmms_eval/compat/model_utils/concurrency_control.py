"""Concurrency and order of calls, by the names that API plugins of the family import."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from msgspec.structs import replace

from lmms_eval.utils.concurrency import AdaptiveConfig, LatencyWindow, compute_p95, decide, is_rate_limit_error
from lmms_eval.utils.concurrency import Decision as AdaptiveConcurrencyDecision

__all__ = [
    "AdaptiveConcurrencyConfig",
    "AdaptiveConcurrencyDecision",
    "compute_p95",
    "decide_next_concurrency",
    "extract_text_prefix_from_chat_messages",
    "is_rate_limit_error",
    "make_prefix_hash",
    "parse_bool",
]


class AdaptiveConcurrencyConfig(AdaptiveConfig, frozen=True):
    """Limits and steps of the adaptation, as model arguments state them."""

    @classmethod
    def from_raw(
        cls,
        min_concurrency: Any,
        max_concurrency: Any,
        target_latency_s: Any,
        increase_step: Any,
        decrease_factor: Any,
        failure_threshold: Any,
    ) -> Self:
        """Read numbers or texts of numbers, and replace each by the nearest allowed value.

        Raises:
            ValueError: a text is not a number.
        """
        return cls(
            int(min_concurrency),
            int(max_concurrency),
            float(target_latency_s),
            float(increase_step),
            float(decrease_factor),
            float(failure_threshold),
        ).sanitized()


def decide_next_concurrency(
    *,
    current_concurrency: int,
    total_requests: int,
    failed_requests: int,
    rate_limited_requests: int,
    latencies: Sequence[float],
    config: AdaptiveConfig,
) -> AdaptiveConcurrencyDecision:
    """Decide as the project's own back ends do. Without requests nothing changes; the minimum always holds."""
    if total_requests <= 0:
        return AdaptiveConcurrencyDecision(current_concurrency, current_concurrency, 0.0, 0.0, 0.0, False)
    window = LatencyWindow(total_requests, failed_requests, rate_limited_requests, latencies)
    decision = decide(current_concurrency, window, config)
    return replace(decision, next_concurrency=max(config.min_concurrency, decision.next_concurrency))


def make_prefix_hash(text: str | None, prefix_chars: int | str = 256) -> str:
    """Return the SHA-1 of the first characters (at least one), which groups requests with a common prefix."""
    prefix = (text or "")[: max(1, int(prefix_chars))]
    return hashlib.sha1(prefix.encode("utf-8", "ignore"), usedforsecurity=False).hexdigest()


def extract_text_prefix_from_chat_messages(messages: Sequence[Any] | None, max_chars: int = 256) -> str:
    """Return the first characters, at least one, of the texts of messages; parts are joined without a separator."""
    missing = max(1, int(max_chars))
    found: list[str] = []
    for text in _texts(messages or ()):
        found.append(text[:missing])
        missing -= len(found[-1])
        if missing <= 0:
            break
    return "".join(found)


def _texts(messages: Sequence[Any]) -> Iterator[str]:
    for content in (message.get("content") for message in messages if isinstance(message, Mapping)):
        for part in [content] if isinstance(content, str) else content if isinstance(content, list | tuple) else ():
            text = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(text, str):
                yield text


def parse_bool(value: Any) -> bool:
    """Return whether the text of a model argument is ``1``, ``true``, ``yes`` or ``on``, in any case."""
    return str(value).strip().lower() in {"1", "true", "yes", "on"}
