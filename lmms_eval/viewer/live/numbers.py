"""Numbers of a run that goes on, as the pages read them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.compare.runs import Column, TaskRows
from lmms_eval.engine.run_outline import Outline, TaskOutline
from lmms_eval.viewer.live.growing import MOST_REASONS, GrowingTask
from lmms_eval.viewer.samples import PER_TEXT

MEAN_SO_FAR = "mean so far: no interval while the run goes on"
NO_MEAN = "aggregated when all documents are done"

Plain = dict[str, Any]


def live_rows(tasks: Mapping[str, TaskRows], outline: Outline, scores: Mapping[str, Plain]) -> list[Plain]:
    """List the numbers of each task: its running score with the interval that may be watched, means so far else."""
    rows = []
    for name, task in tasks.items():
        told = outline.tasks.get(name)
        part = None if told is None else told.part
        for column in task.columns.values():
            row = _mean_so_far(name, column)
            if row is None:
                continue
            if part is not None and (part.metric, part.filter) == (column.metric, column.filter):
                shown = scores[name]
                row |= {key: shown[key] for key in ("value", "low", "high", "n")}
                row["method"] = shown["reason"] or f"valid at every look, over the first {shown['n']:,}"
            rows.append(row)
    return rows


def _mean_so_far(task: str, column: Column) -> Plain | None:
    known = [float(score) for score in column.scores if not math.isnan(score)]
    if not known:
        return None
    is_mean = column.scale != 0
    return {
        "task": task,
        "metric": column.metric,
        "filter": column.filter,
        "value": math.fsum(known) / len(known) if is_mean else None,
        "low": None,
        "high": None,
        "method": MEAN_SO_FAR if is_mean else NO_MEAN,
        "n": len(known),
        "higher": column.higher_is_better is not False,
        **({} if is_mean else {"withheld": NO_MEAN}),
    }


def live_task_entry(task: GrowingTask, requested: int | None, form: str) -> Plain:
    """Tell what a task has so far, and in which pieces; ``form`` changes where rows become others than before."""
    counts = task.counts
    asked = task.size if requested is None else requested
    return {
        "name": task.name,
        "key": task.writer.key,
        "samples": task.size,
        "per_text": PER_TEXT,
        "form": form,
        "outcomes": {
            "requested": asked,
            **{name: counts[name] for name in ("scored", "unscored", "failed")},
            "not_asked": max(0, asked - task.size),
            "coverage": counts["scored"] / asked if asked else 0.0,
            "reasons": dict((+task.reasons).most_common(MOST_REASONS)),
        },
    }


def live_entry(
    outline: Outline,
    documents: Mapping[str, GrowingTask],
    scores: Mapping[str, Plain],
    whole: Plain | None,
    rates: tuple[float, float] | None,
    vitals: Sequence[Mapping[str, Any]],
) -> Plain:
    """Tell how far a run is.

    Args:
        outline: its tasks.
        documents: what the journals hold of each.
        scores: the running scores by task.
        whole: that of the run, where it has one of its own.
        rates: documents and tokens a second over the last minute.
        vitals: what its processes tell.
    """
    requested = sum(task.requested for task in outline.tasks.values())
    done = sum(task.size for task in documents.values())
    reasons: Counter[str] = sum((task.reasons for task in documents.values()), Counter())
    rate = rates[0] if rates else None
    overall = _overall(vitals)
    present = rate or overall
    return {
        "requested": requested,
        "done": done,
        **{name: sum(task.counts[name] for task in documents.values()) for name in ("scored", "unscored", "failed")},
        "rate": rate,
        "rate_overall": overall,
        "seconds_left": max(0, requested - done) / present if present else None,
        "tokens_in": sum(task.tokens_in for task in documents.values()),
        "tokens_out": sum(task.tokens_out for task in documents.values()),
        "token_rate": rates[1] if rates else None,
        "in_flight": _total(vitals, "in_flight"),
        "concurrency": _total(vitals, "concurrency"),
        "processes": [{key: told.get(key) for key in ("host", "pid", "memory", "started")} for told in vitals],
        "score": whole,
        "reasons": (+reasons).most_common(MOST_REASONS),
        "tasks": [
            _task_line(name, task, documents.get(name), scores.get(name)) for name, task in outline.tasks.items()
        ],
    }


def _task_line(name: str, task: TaskOutline, growing: GrowingTask | None, score: Plain | None) -> Plain:
    return {
        "name": name,
        "requested": task.requested,
        "done": 0 if growing is None else growing.size,
        "failed": 0 if growing is None else growing.counts["failed"],
        "score": score,
        "reason": task.reason,
    }


def live_usage(live: Mapping[str, Any]) -> Plain:
    """Tell the tokens of the documents that are done."""
    tokens_in, tokens_out = live["tokens_in"], live["tokens_out"]
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


def _overall(vitals: Sequence[Mapping[str, Any]]) -> float | None:
    """Documents a second since this start of the run."""
    done, started = _total(vitals, "done"), [float(told["started"]) for told in vitals if _is_number(told, "started")]
    if done is None or not started:
        return None
    span = time.time() - min(started)
    return done / span if span >= 1 else None


def _total(vitals: Sequence[Mapping[str, Any]], key: str) -> int | None:
    known = [int(told[key]) for told in vitals if _is_number(told, key)]
    return sum(known) if known else None


def _is_number(told: Mapping[str, Any], key: str) -> bool:
    return isinstance(told.get(key), int | float) and math.isfinite(told[key])
