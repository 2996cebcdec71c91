"""Sentences that a reader of a run's numbers has to know first, and the outcomes that they rest on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.results.run_reader.document import part_of
from lmms_eval.viewer.runs import ReportRun

Plain = dict[str, Any]
"""An object of JSON."""

FEW_TASKS = 3
_OUTCOMES = (
    *("requested", "scored", "unscored", "failed", "not_asked", "coverage", "withheld", "reasons"),
    *("answers", "blank", "filtered", "truncated", "judge_unread", "truncation"),
)


def outcome_counts(run: ReportRun, task: str) -> Plain:
    """Count samples by outcome: as the results document states, else by the rows."""
    stated = part_of(run.document, "outcomes", task)
    if stated:
        return {key: stated[key] for key in _OUTCOMES if key in stated}
    rows = run.rows.tasks.get(task)
    counts = Counter(rows.statuses if rows is not None else ())
    total = sum(counts.values())
    found: Plain = {"requested": total, **{name: counts.get(name, 0) for name in ("scored", "unscored", "failed")}}
    return found | {"coverage": counts["scored"] / total if total else 0.0}


def warnings(run: ReportRun, rows: Sequence[Mapping[str, Any]]) -> list[Plain]:
    """List what a reader of the numbers has to know first; the page puts the gravest first."""
    found = [_warning("problem", "", problem) for problem in run.problems]
    state = str(run.document.get("state") or run.state.get("state") or "")
    if state and state not in ("complete", "stopped early"):
        found.append(_warning("state", "", f"the run is {state}"))
    stops = part_of(run.document, "early_stop")
    found += [
        _warning("early", task, f"stopped early: rests on {stop.get('asked')} of {stop.get('of')} documents")
        for task, stop in stops.items()
        if isinstance(stop, Mapping)
    ]
    counts = {task: outcome_counts(run, task) for task in part_of(run.document, "outcomes")}
    for task, outcome in counts.items():
        found += _outcome_warnings(task, outcome)
    return [*found, *_answer_warnings(counts), *_fixed_warnings(rows)]


def _outcome_warnings(task: str, counts: Mapping[str, Any]) -> Iterator[Plain]:
    if counts.get("withheld"):
        yield _warning("withheld", task, "the score is withheld")
    for name, text in (("failed", "failed"), ("unscored", "could not be scored"), ("not_asked", "were not asked")):
        if counts.get(name):
            reason = next(iter(counts.get("reasons") or ()), "")
            more = f" (most often: {reason})" if reason and name != "not_asked" else ""
            yield _warning(name, task, f"{counts[name]} of {counts.get('requested')} samples {text}{more}")
    if counts.get("judge_unread"):
        text = f"{counts['judge_unread']} of {counts.get('requested')} samples lack a readable reply of the judge"
        yield _warning("answers", task, text)
    for column in part_of(counts, "truncation"):
        found = part_of(part_of(counts, "truncation"), column)
        low, high = found.get("low"), found.get("high")
        if isinstance(low, int | float) and isinstance(high, int | float):
            text = f"{column} lies between {low:.4g} and {high:.4g}, whatever the truncated answers are worth"
            yield _warning("answers", task, text)


def _answer_warnings(counts: Mapping[str, Mapping[str, Any]]) -> Iterator[Plain]:
    """Answers that are no whole ones: by task, of more than a few tasks in one sentence."""
    for name in ("blank", "filtered", "truncated"):
        found = {task: outcome for task, outcome in counts.items() if outcome.get(name)}
        if len(found) > FEW_TASKS:
            times, of = (sum(outcome.get(key) or 0 for outcome in found.values()) for key in (name, "answers"))
            yield _warning("answers", "", f"{times} of {of} answers of {len(found)} tasks are {name}")
            continue
        for task, outcome in found.items():
            yield _warning("answers", task, f"{outcome[name]} of {outcome.get('answers')} answers are {name}")


def _fixed_warnings(rows: Sequence[Mapping[str, Any]]) -> Iterator[Plain]:
    """Official numbers that differ from those of the repaired rule beside them."""
    values = {(row["task"], row["metric"], row["filter"]): row["value"] for row in rows}
    for (task, metric, pipeline), value in values.items():
        fixed = values.get((task, f"{metric}_fixed", pipeline))
        if value is not None and fixed is not None and not math.isclose(value, fixed, abs_tol=1e-9):
            yield _warning(
                "fixed", task, f"{metric}: {value:.4g} by the official rule, {fixed:.4g} by the repaired one"
            )


def _warning(kind: str, task: str, text: str) -> Plain:
    return {"kind": kind, "task": task, "text": text}
