"""Throughput as plugins report it."""

from __future__ import annotations

import numpy as np
import pytest

from lmms_eval.compat.reports import SPEEDS, GenMetrics, log_metrics


def test_nothing_logged() -> None:
    assert SPEEDS.summary() == {}


def test_sums_and_means() -> None:
    extra = {"rank": 0, "ttft": 0.25, "note": "text"}
    log_metrics(total_gen_tokens=30, total_elapsed_time=1.0, avg_speed=99, total_requests=2, additional_metrics=extra)
    log_metrics(total_gen_tokens=np.int64(10), total_elapsed_time=3.0, total_requests=2, ttft=0.75, avg_tpot=0.5)
    assert SPEEDS.summary() == {
        "total_gen_tokens": 40.0,
        "total_elapsed_time": 4.0,
        "avg_speed": 10.0,
        "avg_latency": 1.0,
        "avg_ttft": 0.5,
        "avg_tpot": 0.5,
    }


def test_no_latency_without_counts_and_no_speed_without_time() -> None:
    log_metrics(0.0, 5, 99.0)  # seconds, tokens, speed
    assert SPEEDS.summary() == {"total_gen_tokens": 5.0, "total_elapsed_time": 0.0, "avg_speed": 0.0}


def test_a_timed_block() -> None:
    with GenMetrics(tokenize_fn=list) as metrics:
        metrics.log_metric(["abc", "de"])
    summary = SPEEDS.summary()
    assert summary["total_gen_tokens"] == 5.0
    assert summary["total_elapsed_time"] == metrics.stop_timer() > 0
    assert summary["avg_latency"] == pytest.approx(summary["total_elapsed_time"] / 2)


def test_words_or_a_given_number() -> None:
    with GenMetrics() as metrics:
        metrics.log_metric("three short words")
    metrics.log_metric(num_tokens=7)
    assert SPEEDS.summary()["total_gen_tokens"] == 10.0
