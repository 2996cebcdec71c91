"""Token use as plugins and judges report it."""

from __future__ import annotations

import threading

from lmms_eval.compat.reports import USAGE, log_usage
from lmms_eval.models.model_utils.usage_metrics import (
    get_running_totals,
    is_budget_exceeded,
    reset_usage_metrics,
    set_budget,
    set_task_context,
    summarize_usage_metrics,
)


def test_nothing_logged() -> None:
    assert USAGE.summary() == {}


def test_sums_by_task_and_source() -> None:
    log_usage("m", "one", 10, 5, 2)
    log_usage("m", None, 1, None, source="judge")
    summary = USAGE.summary()
    assert summary["total"] == {
        "input_tokens": 11,
        "output_tokens": 5,
        "reasoning_tokens": 2,
        "total_tokens": 16,
        "n_api_calls": 2,
    }
    assert summary["by_task"]["_unknown"]["input_tokens"] == 1
    assert {name: item["n_api_calls"] for name, item in summary["by_source"].items()} == {"judge": 1, "model": 1}


def test_calls_from_several_threads_are_all_counted() -> None:
    threads = [threading.Thread(target=lambda: [log_usage("m", "t", 1, 1) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert USAGE.summary()["total"]["total_tokens"] == 4000


def test_a_budget_stays_exceeded_until_the_reset() -> None:
    set_budget(10)
    log_usage("m", input_tokens=6, output_tokens=3, reasoning_tokens=3)
    assert not is_budget_exceeded()  # reasoning tokens are part of the output
    log_usage("m", input_tokens=1)
    assert is_budget_exceeded()
    set_budget(None)
    assert is_budget_exceeded()
    reset_usage_metrics()
    assert not is_budget_exceeded() and get_running_totals()["total_tokens"] == 0


def test_a_call_counts_for_the_task_of_the_context() -> None:
    set_task_context("one")
    log_usage("m", input_tokens=2)
    set_task_context(None)
    log_usage("m", input_tokens=3)
    by_task = summarize_usage_metrics()["by_task"]
    assert {name: item["input_tokens"] for name, item in by_task.items()} == {"_unknown": 3, "one": 2}
