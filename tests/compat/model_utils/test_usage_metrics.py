"""Token use as plugins and judges report it."""

from __future__ import annotations

import threading

from lmms_eval.compat.model_utils.usage_metrics import COLLECTOR, log_usage


def test_nothing_logged() -> None:
    assert COLLECTOR.summary() == {}


def test_sums_by_task_and_source() -> None:
    log_usage("m", "one", 10, 5, 2)
    log_usage("m", None, 1, None, source="judge")
    summary = COLLECTOR.summary()
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
    assert COLLECTOR.summary()["total"]["total_tokens"] == 4000
