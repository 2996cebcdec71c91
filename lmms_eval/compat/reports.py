"""Token use and throughput as plugins and judges of the family report them, kept as running sums."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from lmms_eval.utils.reported import offer


def number_of(value: Any) -> float | None:
    """Return a value as a finite number, also from numpy and torch scalars; ``None`` for anything else."""
    if value is None or isinstance(value, str | bytes | bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


UNKNOWN_TASK = "_unknown"

SUMMED = ("input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "n_api_calls")
"""Sums over calls. Reasoning tokens are part of the output tokens and are not added to the total."""


def _no_calls() -> dict[str, float]:
    return dict.fromkeys(SUMMED, 0)


class UsageCollector:
    """Usage that this process has logged so far, and the budget for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget all calls, the task and the budget."""
        self.task: str | None = None
        self.budget: float | None = None
        self.forget_calls()

    def forget_calls(self) -> None:
        """Reset the sums, at the start of a run."""
        self.is_exceeded = False
        self.total = _no_calls()
        self._by_task: dict[str, dict[str, float]] = defaultdict(_no_calls)
        self._by_source: dict[str, dict[str, float]] = defaultdict(_no_calls)

    def add(self, task: str, source: str, inputs: float, outputs: float, reasoning: float) -> None:
        """Count one call. A budget that it reaches stays exceeded."""
        with self._lock:
            for sums in (self.total, self._by_task[task], self._by_source[source]):
                for name, tokens in zip(SUMMED, (inputs, outputs, reasoning, inputs + outputs, 1), strict=True):
                    sums[name] += tokens
            self.is_exceeded |= self.budget is not None and self.total["total_tokens"] >= self.budget

    def summary(self) -> dict[str, Any]:
        """Return the sums over all calls, by task and by source, and the budget; empty if no call was logged."""
        with self._lock:
            if not self.total["n_api_calls"]:
                return {}
            return {
                "total": dict(self.total),
                "by_task": {name: dict(sums) for name, sums in sorted(self._by_task.items())},
                "by_source": {name: dict(sums) for name, sums in sorted(self._by_source.items())},
                "budget_exceeded": self.is_exceeded,
                "budget_total_tokens": self.budget,
            }


USAGE = UsageCollector()
offer("usage", USAGE.summary, USAGE.forget_calls)


def log_usage(
    model_name: str | None = None,  # noqa: ARG001 - part of the call that plugins make; sums are by task and source
    task_name: str | None = None,
    input_tokens: float | None = 0,
    output_tokens: float | None = 0,
    reasoning_tokens: float | None = 0,
    source: str = "model",
) -> None:
    """Count one call of a model or judge (``source``: ``model`` or ``judge``).

    Without ``task_name`` it counts towards the task of :func:`set_task_context`.
    """
    tokens = map(_count, (input_tokens, output_tokens, reasoning_tokens))
    USAGE.add(task_name or USAGE.task or UNKNOWN_TASK, source, *tokens)


def set_task_context(task_name: str | None) -> None:
    """Set the task towards which calls count from now on."""
    USAGE.task = task_name


def set_budget(max_tokens: float | None = None) -> None:
    """Set a budget for the tokens of all calls together; ``None`` removes it.

    The budget is checked after each logged call. Once exceeded, it stays exceeded until :func:`reset_usage_metrics`.
    """
    USAGE.budget = max_tokens


def is_budget_exceeded() -> bool:
    """Return whether a logged call has reached the budget."""
    return USAGE.is_exceeded


def get_running_totals() -> dict[str, float]:
    """Return the sums over all calls so far, or zeros if no call was logged."""
    return dict(USAGE.total)


summarize_usage_metrics = USAGE.summary
reset_usage_metrics = USAGE.reset


def _count(value: float | None) -> float:
    number = number_of(value) or 0.0
    return int(number) if number.is_integer() else number


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


SPEEDS = MetricsCollector()
offer("throughput", SPEEDS.summary, SPEEDS.reset)


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
    SPEEDS.add(number_of(total_gen_tokens) or 0.0, number_of(total_elapsed_time) or 0.0, requests, merged)


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
