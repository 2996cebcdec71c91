"""Numbers of a run that goes on, as the pages read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lmms_eval.compare.runs import Column, TaskRows
from lmms_eval.engine.run_outline import Outline
from lmms_eval.results.following.scores import ScoreSoFar
from lmms_eval.results.following.snapshot import MOST_REASONS, Snapshot, TaskSnapshot
from lmms_eval.results.following.tasks import TaskProgress
from lmms_eval.viewer.samples import PER_TEXT

MEAN_SO_FAR = "mean so far: no interval while the run goes on"
NO_MEAN = "aggregated when all documents are done"

Plain = dict[str, Any]


def live_rows(tasks: Mapping[str, TaskRows], outline: Outline, scores: Mapping[str, ScoreSoFar]) -> list[Plain]:
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
                row |= {"value": shown.value, "low": shown.low, "high": shown.high, "n": shown.n}
                row["method"] = shown.reason or f"valid at every look, over the first {shown.n:,}"
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


def live_task_entry(key: str, form: str, told: TaskSnapshot, progress: TaskProgress) -> Plain:
    """Tell what a task has so far, and in which pieces.

    Args:
        key: name of the task in the names of pieces.
        form: changes where rows become others than before.
        told: its numbers.
        progress: its documents that are finished.
    """
    counts, asked = progress.counts, told.requested
    return {
        "name": told.name,
        "key": key,
        "samples": progress.done,
        "per_text": PER_TEXT,
        "form": form,
        "outcomes": {
            "requested": asked,
            **{name: counts[name] for name in ("scored", "unscored", "failed")},
            "not_asked": max(0, asked - progress.done),
            "coverage": counts["scored"] / asked if asked else 0.0,
            "reasons": dict((+progress.reasons).most_common(MOST_REASONS)),
        },
    }


def live_usage(live: Snapshot) -> Plain:
    """Tell the tokens of the documents that are done."""
    total = live.tokens_in + live.tokens_out
    return {"input_tokens": live.tokens_in, "output_tokens": live.tokens_out, "total_tokens": total}
