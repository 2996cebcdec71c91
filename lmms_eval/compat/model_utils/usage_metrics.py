"""Token use as plugins and judges of the family report it, kept as running sums."""

from __future__ import annotations

import threading
from typing import Any

from msgspec import Struct

from lmms_eval.compat.model_utils.numbers import number_of
from lmms_eval.utils.reported import offer

UNKNOWN_TASK = "_unknown"


class UsageSum(Struct):
    """Tokens of several calls. Reasoning tokens are part of the output tokens and are not added to the total."""

    input_tokens: float = 0
    output_tokens: float = 0
    reasoning_tokens: float = 0
    n_api_calls: int = 0

    @property
    def total_tokens(self) -> float:
        return self.input_tokens + self.output_tokens

    def add(self, input_tokens: float, output_tokens: float, reasoning_tokens: float) -> None:
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.reasoning_tokens += reasoning_tokens
        self.n_api_calls += 1

    def to_dict(self) -> dict[str, float]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "total_tokens": self.total_tokens,
            "n_api_calls": self.n_api_calls,
        }


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
        self.total = UsageSum()
        self._by_task: dict[str, UsageSum] = {}
        self._by_source: dict[str, UsageSum] = {}

    def add(self, task: str, source: str, tokens: UsageSum) -> None:
        """Count one call. A budget that it reaches stays exceeded."""
        with self._lock:
            sums = (
                self.total,
                self._by_task.setdefault(task, UsageSum()),
                self._by_source.setdefault(source, UsageSum()),
            )
            for item in sums:
                item.add(tokens.input_tokens, tokens.output_tokens, tokens.reasoning_tokens)
            self.is_exceeded |= self.budget is not None and self.total.total_tokens >= self.budget

    def summary(self) -> dict[str, Any]:
        """``total``, ``by_task``, ``by_source`` and the budget; empty if nothing was logged."""
        with self._lock:
            if not self.total.n_api_calls:
                return {}
            return {
                "total": self.total.to_dict(),
                "by_task": {name: item.to_dict() for name, item in sorted(self._by_task.items())},
                "by_source": {name: item.to_dict() for name, item in sorted(self._by_source.items())},
                "budget_exceeded": self.is_exceeded,
                "budget_total_tokens": self.budget,
            }


COLLECTOR = UsageCollector()
offer("usage", COLLECTOR.summary, COLLECTOR.forget_calls)


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
    tokens = UsageSum(_count(input_tokens), _count(output_tokens), _count(reasoning_tokens))
    COLLECTOR.add(task_name or COLLECTOR.task or UNKNOWN_TASK, source, tokens)


def set_task_context(task_name: str | None) -> None:
    """Set the task towards which calls count from now on."""
    COLLECTOR.task = task_name


def set_budget(max_tokens: float | None = None) -> None:
    """Set a budget for the tokens of all calls together; ``None`` removes it.

    The budget is checked after each logged call. Once exceeded, it stays exceeded until :func:`reset_usage_metrics`.
    """
    COLLECTOR.budget = max_tokens


def is_budget_exceeded() -> bool:
    """Return whether a logged call has reached the budget."""
    return COLLECTOR.is_exceeded


def get_running_totals() -> dict[str, float]:
    """Return the sums over all calls so far, or zeros if no call was logged."""
    return COLLECTOR.total.to_dict()


def summarize_usage_metrics() -> dict[str, Any]:
    """Return the sums over all calls, by task and by source, and the budget; empty if no call was logged."""
    return COLLECTOR.summary()


def reset_usage_metrics() -> None:
    """Forget all calls, the task and the budget."""
    COLLECTOR.reset()


def _count(value: float | None) -> float:
    number = number_of(value) or 0.0
    return int(number) if number.is_integer() else number
