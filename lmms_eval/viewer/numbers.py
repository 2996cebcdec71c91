"""Numbers of a run's pages: rows of results, breakdowns by metadata, histograms, what to be warned of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.compare.runs import Column, TaskRows
from lmms_eval.engine.early import NO_EARLY_INTERVAL
from lmms_eval.results.run_reader.sample import finite
from lmms_eval.stats import ANY_NUMBER, Interval, Spread, score_interval
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.viewer.runs import ReportRun
from lmms_eval.viewer.samples import TaskFacts

MOST_PARTS = 40
"""A column of metadata with more values is no breakdown."""
MOST_COLUMNS = 24
LONGEST = 60
"""Characters of a value; longer ones are texts, not classes."""
BINS = 32

_OUTCOMES = (
    *("requested", "scored", "unscored", "failed", "not_asked", "coverage", "withheld", "reasons"),
    *("answers", "blank", "filtered", "truncated"),
)

Plain = dict[str, Any]
"""An object of JSON."""


def result_rows(run: ReportRun) -> list[Plain]:
    """List the numbers of a run: as its results document states them, else means over the documents."""
    results = _part(run.document, "results")
    if not results or run.rows.kind != "lmms_eval":
        return [_mean_row(task, column) for task in run.rows.tasks.values() for column in _with_scores(task)]
    return [row for name in results for row in _stated_rows(run.document, name)]


def _with_scores(task: TaskRows) -> list[Column]:
    return [column for column in task.columns.values() if not all(math.isnan(score) for score in column.scores)]


def _mean_row(task: TaskRows, column: Column) -> Plain:
    cell = _cell([score for score in column.scores if not math.isnan(score)], column)
    row: Plain = {"task": task.task, "metric": column.metric, "filter": column.filter, **cell}
    if column.reported is not None and column.scale == 0:  # the whole is no mean: the documents give no interval of it
        row |= {"value": column.reported, "low": None, "high": None}
    elif column.reported is not None:
        row["value"] = column.reported
    return row | {"higher": column.higher_is_better is not False}


def _stated_rows(document: Mapping[str, Any], name: str) -> Iterator[Plain]:
    entry, outcome = _of(document, "results", name), _of(document, "outcomes", name)
    counts, partial = _part(outcome, "n"), _part(outcome, "partial")
    for key, count in counts.items():
        metric, _, pipeline = key.rpartition(",")
        interval = _of(_part(document, "intervals"), name, key)
        part = _part(partial, key)
        if key in (outcome.get("wrote_files") or ()):
            continue
        yield {
            "task": name,
            "metric": metric,
            "filter": pipeline,
            "value": finite(entry.get(key)),
            "stderr": finite(entry.get(f"{metric}_stderr,{pipeline}")),
            "low": finite(interval.get("low")),
            "high": finite(interval.get("high")),
            "method": interval.get("method") or interval.get("reason") or "",
            "n": count,
            "higher": _of(document, "higher_is_better", name).get(metric) is not False,
            **({"partial": part.get("value"), "withheld": str(part.get("reason", ""))} if part else {}),
        }


def breakdowns(task: TaskRows, facts: TaskFacts, without_interval: str = "") -> list[Plain]:
    """Divide the documents by every column of metadata with few values: number, mean and interval of each metric.

    ``without_interval``: reason for which the parts have none.
    """
    columns = _with_scores(task)
    found: list[Plain] = []
    for name, values in facts.metadata.items():
        parts = sorted({value for value in values if value is not None}, key=_natural)
        if not 2 <= len(parts) <= MOST_PARTS or max(map(len, parts)) > LONGEST:
            continue
        if not columns or len(found) == MOST_COLUMNS:
            break
        rows = {part: [row for row, value in zip(facts.rows, values, strict=True) if value == part] for part in parts}
        metrics = {
            str(column): [{"name": part, **_cell_of(column, rows[part])} for part in parts] for column in columns
        }
        found.append({"column": name, "metrics": metrics})
    reason = without_interval or (
        NO_EARLY_INTERVAL if task.early_stop is not None else "clusters" if task.clusters is not None else ""
    )
    if reason:  # the rule for independent documents, whose number was settled beforehand, does not hold
        cells = [cell for one in found for parts in one["metrics"].values() for cell in parts]
        for cell in cells:
            cell.update(low=None, high=None, method=reason)
    return found


def _cell_of(column: Column, rows: Sequence[int]) -> Plain:
    return _cell([score for row in rows if not math.isnan(score := column.scores[row])], column)


def _cell(scores: Sequence[float], column: Column) -> Plain:
    """Mean of scores in the units of the run's own number, with its interval by the project's rule."""
    scores = [float(score) for score in scores]
    if not scores:
        return {"n": 0, "value": None, "low": None, "high": None, "method": ""}
    mean, within = math.fsum(scores) / len(scores), _range(column, scores)
    interval = score_interval(mean, Spread.of_scores(scores, within), within)
    scale = column.scale or 1.0
    if not isinstance(interval, Interval):
        return {"n": len(scores), "value": mean * scale, "low": None, "high": None, "method": interval.reason}
    low, high = interval.low * scale, interval.high * scale
    return {"n": len(scores), "value": mean * scale, "low": low, "high": high, "method": interval.method}


def _range(column: Column, scores: Sequence[float]) -> ScoreRange:
    within = column.score_range or ANY_NUMBER
    return within if all(score in within for score in scores) else ANY_NUMBER


def _natural(text: str) -> tuple[float, str]:
    """Order of labels: numbers by their value, then texts."""
    try:
        return (float(text), text)
    except ValueError:
        return (math.inf, text)


def histogram(values: Sequence[float | int | None]) -> Plain | None:
    """Counts in bins of equal width up to the 99th percentile, with quantiles; ``None`` where nothing is known."""
    import numpy as np

    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return None
    middle, ninth, last = (float(number) for number in np.quantile(known, (0.5, 0.9, 0.99)))
    low, high = float(known.min()), float(known.max())
    upper = min(high, low + 1.2 * (last - low)) if last > low else high
    counts, edges = np.histogram(known[known <= upper], bins=min(BINS, max(1, len(set(known.tolist())))))
    return {
        "counts": counts.tolist(),
        "edges": [float(edge) for edge in edges],
        "beyond": int((known > upper).sum()),
        "n": len(known),
        "median": middle,
        "p90": ninth,
        "p99": last,
        "max": high,
    }


def outcome_counts(run: ReportRun, task: str) -> Plain:
    """Count samples by outcome: as the results document states, else by the rows."""
    stated = _of(run.document, "outcomes", task)
    if stated:
        return {key: stated[key] for key in _OUTCOMES if key in stated}
    rows = run.rows.tasks.get(task)
    counts = Counter(rows.statuses if rows is not None else ())
    total = sum(counts.values())
    found: Plain = {"requested": total, **{name: counts.get(name, 0) for name in ("scored", "unscored", "failed")}}
    return found | {"coverage": counts["scored"] / total if total else 0.0}


def warnings(run: ReportRun, rows: Sequence[Mapping[str, Any]]) -> list[Plain]:
    """List what a reader of the numbers has to know first, the gravest first."""
    found = [_warning("problem", "", problem) for problem in run.problems]
    state = str(run.document.get("state") or run.state.get("state") or "")
    if state and state not in ("complete", "stopped early"):
        found.append(_warning("state", "", f"the run is {state}"))
    stops = _part(run.document, "early_stop")
    found += [
        _warning("early", task, f"stopped early: rests on {stop.get('asked')} of {stop.get('of')} documents")
        for task, stop in stops.items()
        if isinstance(stop, Mapping)
    ]
    for task in _part(run.document, "outcomes"):
        found += _outcome_warnings(task, outcome_counts(run, task))
    return found + list(_fixed_warnings(rows))


def _outcome_warnings(task: str, counts: Mapping[str, Any]) -> Iterator[Plain]:
    if counts.get("withheld"):
        yield _warning("withheld", task, "the score is withheld")
    for name, text in (("failed", "failed"), ("unscored", "could not be scored"), ("not_asked", "were not asked")):
        if counts.get(name):
            reason = next(iter(counts.get("reasons") or ()), "")
            more = f" (most often: {reason})" if reason and name != "not_asked" else ""
            yield _warning(name, task, f"{counts[name]} of {counts['requested']} samples {text}{more}")
    for name in ("blank", "filtered", "truncated"):
        if counts.get(name):
            yield _warning("answers", task, f"{counts[name]} of {counts['answers']} answers are {name}")


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


def _part(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = content.get(key)
    return part if isinstance(part, Mapping) else {}


def _of(content: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    return _part(_part(content, key), name)
