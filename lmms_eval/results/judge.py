"""The judge in the results: its name, and how often it was asked and could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.ask_report import AskReport
from lmms_eval.engine.tally import TaskTally

COUNTS = {
    "questions": "judge_questions",
    "replies": "judge_replies",
    "answered": "judge_answered",
    "judge_unparsable": "judge_unparsable",
    "failed": "judge_failed",
    "input_tokens": "judge_input_tokens",
    "output_tokens": "judge_output_tokens",
    "reasoning_tokens": "judge_reasoning_tokens",
}
"""Key of the results -> field of ``TaskTally``."""


def judge_part(judge: Mapping[str, Any], tasks: Sequence[TaskResult], report: AskReport) -> dict[str, Any]:
    """Counts over all documents of the run, resumed ones included; ``asked`` and ``cache`` are of this start alone."""
    by_task = {
        result.task.name: {key: getattr(result.tally, name) for key, name in COUNTS.items()}
        for result in tasks
        if result.task.is_judged
    }
    totals = {key: sum(counts[key] for counts in by_task.values()) for key in COUNTS}
    part: dict[str, Any] = {**judge, "asked": report.judge_asked, **totals, "by_task": by_task}
    if report.judge_give_up:
        part["given_up"] = report.judge_give_up
    if report.judge_cache:
        part["cache"] = dict(report.judge_cache)
    return part


def judge_usage(tally: TaskTally) -> dict[str, int]:
    """Tokens of the judge, as an entry of ``usage``."""
    return {
        "input_tokens": tally.judge_input_tokens,
        "output_tokens": tally.judge_output_tokens,
        "reasoning_tokens": tally.judge_reasoning_tokens,
        "total_tokens": tally.judge_input_tokens + tally.judge_output_tokens,
        "n_api_calls": tally.judge_replies,
    }
