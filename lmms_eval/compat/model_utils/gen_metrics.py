"""Throughput as plugins of the family report it: ``log_metrics`` after each batch, ``GenMetrics`` around it."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from lmms_eval.compat.model_utils.numbers import number_of
from lmms_eval.utils.reported import offer


class MetricsCollector:
    """Metrics that this process has logged so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything: at the start of a run."""
        self._tokens: list[float] = []
        self._seconds: list[float] = []
        self._requests: list[float] = []
        self._extra: dict[str, list[float]] = defaultdict(list)

    def add(self, tokens: float, seconds: float, requests: float | None, extra: Mapping[str, Any]) -> None:
        with self._lock:
            self._tokens.append(tokens)
            self._seconds.append(seconds)
            if requests is not None:
                self._requests.append(requests)
            for key, value in extra.items():
                number = number_of(value)
                if number is not None and key != "rank":
                    self._extra[key].append(number)

    def summary(self) -> dict[str, float]:
        """``throughput`` of the results: tokens, seconds, tokens per second, seconds per request, means of the rest.

        Empty if nothing was logged.
        """
        with self._lock:
            if not self._tokens:
                return {}
            tokens, seconds = math.fsum(self._tokens), math.fsum(self._seconds)
            found = {
                "total_gen_tokens": tokens,
                "total_elapsed_time": seconds,
                "avg_speed": tokens / seconds if seconds > 0 else 0.0,
            }
            requests = math.fsum(self._requests)
            if requests > 0:
                found["avg_latency"] = seconds / requests
            for key, values in self._extra.items():
                found[key if key.startswith("avg_") else f"avg_{key}"] = math.fsum(values) / len(values)
            return found


COLLECTOR = MetricsCollector()
offer("throughput", COLLECTOR.summary, COLLECTOR.reset)


def log_metrics(
    total_elapsed_time: float = 0.0,
    total_gen_tokens: float = 0,
    avg_speed: float | None = None,  # noqa: ARG001 - part of the call that plugins make; computed from the sums
    additional_metrics: Mapping[str, Any] | None = None,
    **extra: Any,
) -> None:
    """Log one batch: seconds, tokens generated, and anything else (``total_requests``, ``ttft``, ``tpot``, ...).

    ``avg_speed`` is ignored and computed from the sums, since means of rates would be wrong.
    """
    merged = {**(additional_metrics or {}), **extra}
    requests = number_of(merged.pop("total_requests", None))
    COLLECTOR.add(number_of(total_gen_tokens) or 0.0, number_of(total_elapsed_time) or 0.0, requests, merged)


class GenMetrics:
    """Times a block of generation and logs it at its end.

    Example::

        with GenMetrics(tokenize_fn=tokenizer.encode) as metrics:
            texts = generate(...)
            metrics.log_metric(texts)
    """

    def __init__(self, tokenize_fn: Callable[[str], Any] | None = None) -> None:
        self._tokenize = tokenize_fn
        self._started = 0.0
        self._seconds: float | None = None
        self._logged = False

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_timer()

    def stop_timer(self) -> float:
        """Seconds since the block began; later calls give the same."""
        if self._seconds is None:
            self._seconds = time.perf_counter() - self._started
        return self._seconds

    def log_metric(self, content: str | list[str] | None = None, num_tokens: float | None = None, **extra: Any) -> None:
        """Log the block: the tokens of the texts by ``tokenize_fn`` (words without one), or ``num_tokens``."""
        texts = [content] if isinstance(content, str) else list(content or ())
        count = self._tokenize or str.split
        tokens = num_tokens if num_tokens is not None else sum(len(count(text)) for text in texts)
        log_metrics(self.stop_timer(), tokens, total_requests=len(texts) or None, **extra)
