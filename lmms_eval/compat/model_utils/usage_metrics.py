"""Token use as plugins and judges of the family report it, kept as running sums."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from lmms_eval.compat.model_utils.numbers import number_of

UNKNOWN_TASK = "_unknown"


@dataclass(slots=True)
class UsageSum:
    """Tokens of a number of calls. Reasoning tokens are part of the output tokens and not added to the total."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    n_api_calls: int = 0

    def add(self, input_tokens: int, output_tokens: int, reasoning_tokens: int) -> None:
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.reasoning_tokens += reasoning_tokens
        self.n_api_calls += 1

    def to_dict(self) -> dict[str, int]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
            "n_api_calls": self.n_api_calls,
        }


class UsageCollector:
    """Usage that this process has logged so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything: at the start of a run."""
        self.total = UsageSum()
        self._by_task: dict[str, UsageSum] = {}
        self._by_source: dict[str, UsageSum] = {}

    def add(self, task: str, source: str, tokens: UsageSum) -> None:
        """Count one call."""
        with self._lock:
            sums = (
                self.total,
                self._by_task.setdefault(task, UsageSum()),
                self._by_source.setdefault(source, UsageSum()),
            )
            for item in sums:
                item.add(tokens.input_tokens, tokens.output_tokens, tokens.reasoning_tokens)

    def summary(self) -> dict[str, Any]:
        """``total``, ``by_task`` and ``by_source``; empty if nothing was logged."""
        with self._lock:
            if not self.total.n_api_calls:
                return {}
            return {
                "total": self.total.to_dict(),
                "by_task": {name: item.to_dict() for name, item in sorted(self._by_task.items())},
                "by_source": {name: item.to_dict() for name, item in sorted(self._by_source.items())},
            }


COLLECTOR = UsageCollector()


def log_usage(
    model_name: str | None = None,  # noqa: ARG001 - part of the call that plugins make; sums are by task and source
    task_name: str | None = None,
    input_tokens: int | None = 0,
    output_tokens: int | None = 0,
    reasoning_tokens: int | None = 0,
    source: str = "model",
) -> None:
    """Count one call of a model or judge (``source``: ``model`` or ``judge``)."""
    tokens = UsageSum(
        int(number_of(input_tokens) or 0), int(number_of(output_tokens) or 0), int(number_of(reasoning_tokens) or 0)
    )
    COLLECTOR.add(task_name or UNKNOWN_TASK, source, tokens)
