"""Speed of a run, and tokens spent per document and per right answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.ask_report import AskReport
from lmms_eval.engine.tally import TaskTally


def throughput(report: AskReport) -> dict[str, float]:
    """Return the speeds of what this start has asked; empty where the back end counted no tokens.

    ``avg_latency`` is the mean over the answers whose latency the back end told (seconds from a request to its answer),
    which does not depend on how many are asked at a time; it is absent where none was told.
    """
    if not report.output_tokens or report.seconds <= 0:
        return {}
    speeds = {
        "total_gen_tokens": report.output_tokens,
        "total_elapsed_time": report.seconds,
        "avg_speed": report.output_tokens / report.seconds,
    }
    return {**speeds, "avg_latency": report.latency / report.timed} if report.timed else speeds


def efficiency(tasks: Sequence[TaskResult]) -> dict[str, Any]:
    """``overall`` and ``by_task``; each document counts once, however many filter pipelines there are."""
    total = TaskTally()
    for result in tasks:
        for item in fields(TaskTally):
            setattr(total, item.name, getattr(total, item.name) + getattr(result.tally, item.name))
    return {"by_task": {result.task.name: _entry(result.tally) for result in tasks}, "overall": _entry(total)}


def _entry(tally: TaskTally) -> dict[str, Any]:
    return {
        "docs": float(tally.documents),
        "docs_with_token_counts": float(tally.documents_with_tokens),
        "total_input_tokens": float(tally.input_tokens),
        "total_output_tokens": float(tally.output_tokens),
        "total_tokens": float(tally.input_tokens + tally.output_tokens),
        "total_correct_score": tally.correct,
        "avg_output_tokens_per_sample": tally.output_tokens / tally.documents if tally.documents else 0.0,
        "tokens_per_correct_answer": tally.output_tokens / tally.correct if tally.correct > 0 else None,
    }
