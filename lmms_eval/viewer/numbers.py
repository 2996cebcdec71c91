"""The numbers of a run's page: results, warnings, distributions and breakdowns by metadata."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.compare.runs import MetricColumn, TaskRows
from lmms_eval.results.audit import CHOSEN
from lmms_eval.results.breakdown import AskedDocuments, Cell, MetricDocuments, cells, divisions, whole_cell
from lmms_eval.results.facts import count_label, is_count, part_of
from lmms_eval.results.sample import finite
from lmms_eval.viewer.certainty import LIKE_THESE, estimand_of
from lmms_eval.viewer.runs import ReportRun
from lmms_eval.viewer.samples import IndexedTask

Plain = dict[str, Any]
"""A JSON object."""
LEVELS = (2, 3, 4, 5)
"""Levels of General-Level."""


def headlines(document: Mapping[str, Any]) -> list[Plain]:
    """Return the benchmarks' own overall numbers of a run, in the form of rows of results."""
    return [*_megabench(document), *_milebench(document), *_mmie(document), *_general_bench(document)]


def _part(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        document = part_of(document, key)
    return document


def _count(part: Mapping[str, Any], key: str) -> int:
    value = part.get(key)
    return value if isinstance(value, int) else 0


TASKS, QUESTIONS = "tasks", "questions"
"""What ``n`` of a row counts, and so what its interval is over."""
TASKS_LIKE_THESE = "tasks like these"
"""What an interval over tasks is about."""


def _row(task: str, metric: str, value: Any, ends: Any, n: Any, reason: Any = "") -> Plain:
    low, high = ends if isinstance(ends, list) and len(ends) == 2 else (None, None)
    return {
        "task": task,
        "metric": metric,
        "filter": "",
        "value": finite(value),
        "low": finite(low),
        "high": finite(high),
        "method": str(reason or ""),
        "about": "" if finite(low) is None else LIKE_THESE,
        "n": n if isinstance(n, int) else 0,
        "over": QUESTIONS,
        "higher": True,
    }


def _over_tasks(row: Plain) -> Plain:
    return row | {"over": TASKS, "about": row["about"] and TASKS_LIKE_THESE}


def _megabench(document: Mapping[str, Any]) -> Iterator[Plain]:
    reasons = _reasons(document)
    for name in part_of(document, "megabench_breakdown"):
        parts = _part(document, "megabench_breakdown", name, "intervals", "model_summary")
        sides = {side: part for side in ("core", "open") if (part := part_of(parts, side))}
        tasks = sum(_count(part, "num_eval_tasks") for part in sides.values())
        gaps = _part(document, "megabench_breakdown", name).get("gaps")
        withheld = next((gap for gap in gaps if gap in reasons), None) if isinstance(gaps, list) else None
        shown = {"overall": part_of(parts, "overall"), **(sides if len(sides) > 1 else {})}
        for metric, part in shown.items():
            task = f"MEGA-Bench, {name.replace('_', ' ')} set"
            n = part.get("num_eval_tasks", tasks)
            row = _over_tasks(_row(task, metric, part.get("score"), part.get("ci95"), n, part.get("no_interval")))
            yield row if withheld is None else row | _withheld(row, withheld)


def _withheld(row: Plain, reason: str) -> Plain:
    """Return the fields of a row whose score is withheld."""
    return {"value": None, "low": None, "high": None, "about": "", "partial": row["value"], "withheld": reason}


def _reasons(document: Mapping[str, Any]) -> set[str]:
    """Return why scores of tasks are withheld."""
    partial = [_part(document, "outcomes", name, "partial") for name in part_of(document, "outcomes")]
    return {str(part_of(parts, key).get("reason")) for parts in partial for key in parts}


def _milebench(document: Mapping[str, Any]) -> Iterator[Plain]:
    for name in part_of(document, "milebench_report"):
        overall = _part(document, "milebench_report", name, "overall")
        for metric in overall:
            figure = part_of(overall, metric)
            whole, partial = part_of(figure, "official"), _part(figure, "partial", "official")
            found = whole or partial
            ends = [found.get("low"), found.get("high")]
            label = metric if whole else f"{metric}, partial"
            yield _row(f"MileBench, {name}", label, found.get("score"), ends, figure.get("samples"))


def _mmie(document: Mapping[str, Any]) -> Iterator[Plain]:
    for name in part_of(document, "mmie_report"):
        average = _part(document, "mmie_report", name, "categories", "AVG")
        yield _row(f"MMIE, {name}", "AVG", average.get("mean"), average.get("interval"), average.get("scored"))


def _general_bench(document: Mapping[str, Any]) -> Iterator[Plain]:
    for name in part_of(document, "general_bench_report"):
        found = _part(document, "general_bench_report", name, "general_level")
        modalities = part_of(found, "modalities")
        tasks = sum(_count(part_of(modalities, one), "supported") for one in modalities)
        language = _count(part_of(found, "language"), "supported")
        for level in LEVELS:
            value = part_of(found, "levels").get(f"level{level}")
            if value is not None:
                sensitivity = _part(found, "sensitivity", f"level{level}")
                n = tasks + (language if level == LEVELS[-1] else 0)
                reason = sensitivity.get("no_interval")
                yield _over_tasks(_row(name, f"level {level}", value, sensitivity.get("interval"), n, reason))


FEW_TASKS = 3
_OUTCOMES = (
    *("requested", "scored", "unscored", "failed", "not_asked", "coverage", "withheld", "reasons"),
    *("answers", "blank", "filtered", "truncated", "judge_unread", "truncation", "missing_bounds"),
)


def outcome_counts(run: ReportRun, task: str) -> Plain:
    """Count samples by outcome, from the results document or, without it, from the rows."""
    stated = part_of(run.document, "outcomes", task)
    if stated:
        return {key: stated[key] for key in _OUTCOMES if key in stated}
    rows = run.rows.tasks.get(task)
    counts = Counter(rows.statuses if rows is not None else ())
    total = sum(counts.values())
    found: Plain = {"requested": total, **{name: counts.get(name, 0) for name in ("scored", "unscored", "failed")}}
    return found | {"coverage": counts["scored"] / total if total else 0.0}


def warnings(run: ReportRun, rows: Sequence[Mapping[str, Any]]) -> list[Plain]:
    """Return the warnings about a run's numbers. The page sorts them by severity."""
    found = [warning("problem", "", problem) for problem in run.problems]
    state = str(run.document.get("state") or run.state.get("state") or "")
    counts = {task: outcome_counts(run, task) for task in part_of(run.document, "outcomes")}
    is_said = state == "withheld" and any(outcome.get("withheld") for outcome in counts.values())
    if state == "failed":
        found.append(warning("state", "", f"the run failed: {run.state.get('error')}"))
    elif state and state not in ("complete", "stopped early") and not is_said:
        found.append(warning("state", "", f"the run is {state}"))
    stops = part_of(run.document, "early_stop")
    found += [
        warning("early", task, f"stopped early: rests on {stop.get('asked')} of {stop.get('of')} documents")
        for task, stop in stops.items()
        if isinstance(stop, Mapping)
    ]
    for task, outcome in counts.items():
        found += _outcome_warnings(task, outcome)
    return [*found, *_answer_warnings(counts), *_fixed_warnings(rows)]


_MISSING = {"failed": "failed", "unscored": "could not be scored", "not_asked": "were not asked"}


def _outcome_warnings(task: str, counts: Mapping[str, Any]) -> Iterator[Plain]:
    is_withheld = bool(counts.get("withheld"))
    for name, text in _MISSING.items():
        if not counts.get(name):
            continue
        share = f"{counts[name]} of {counts.get('requested')} samples {text}"
        reason = next((one for one in counts.get("reasons") or () if not one.startswith("not asked")), "")
        cause = "" if name == "not_asked" else reason.removeprefix("failed: ")
        more = f" (most often: {cause})" if cause else ""
        if is_withheld and name in ("failed", "unscored"):  # one cause has one warning
            is_withheld = False
            yield warning("withheld", task, f"score withheld: {share}{more}", cause, share)
        else:
            yield warning(name, task, share + more, cause, share)
    if is_withheld:
        yield warning("withheld", task, "score withheld")
    if counts.get("judge_unread"):
        text = f"{counts['judge_unread']} of {counts.get('requested')} samples lack a readable reply of the judge"
        yield warning("answers", task, text)
    for part, unknown in (("truncation", "the truncated answers"), ("missing_bounds", "documents without a score")):
        for column in part_of(counts, part):
            found = part_of(part_of(counts, part), column)
            low, high = found.get("low"), found.get("high")
            if isinstance(low, int | float) and isinstance(high, int | float):
                short = f"{column} lies between {low:.4g} and {high:.4g}"
                cause = f"whatever {unknown} are worth"
                yield warning("answers", task, f"{short}, {cause}", cause, short)


def _answer_warnings(counts: Mapping[str, Mapping[str, Any]]) -> Iterator[Plain]:
    """Yield warnings about incomplete answers: one for each task, or one sentence for many tasks."""
    for name in ("blank", "filtered", "truncated"):
        found = {task: outcome for task, outcome in counts.items() if outcome.get(name)}
        if len(found) > FEW_TASKS:
            times, of = (sum(outcome.get(key) or 0 for outcome in found.values()) for key in (name, "answers"))
            yield warning("answers", "", f"{times} of {of} answers of {len(found)} tasks are {name}")
            continue
        for task, outcome in found.items():
            short = f"{outcome[name]} of {outcome.get('answers')}"
            yield warning("answers", task, f"{short} answers are {name}", f"answers are {name}", short)


def _fixed_warnings(rows: Sequence[Mapping[str, Any]]) -> Iterator[Plain]:
    """Yield warnings about official numbers that differ from those of the repaired rule."""
    values = {(row["task"], row["metric"], row["filter"]): row["value"] for row in rows}
    for (task, metric, pipeline), value in values.items():
        fixed = values.get((task, f"{metric}_fixed", pipeline))
        if value is not None and fixed is not None and not math.isclose(value, fixed, abs_tol=1e-9):
            text = f"{metric}: {value:.4g} by the official rule, {fixed:.4g} by the repaired one"
            yield warning("fixed", task, text, "the repaired rule gives another score", text)


def warning(kind: str, task: str, text: str, cause: str = "", short: str = "") -> Plain:
    """Make a warning. Without a ``task``, it is about the whole run.

    Args:
        cause: what warnings of one kind about several tasks have in common. The page shows them in one box.
        short: what the warning says of its task in such a box.
    """
    return {"kind": kind, "task": task, "text": text, **({"cause": cause, "short": short} if short else {})}


BINS = 32


def distributions(tasks: Sequence[IndexedTask]) -> dict[str, dict[str, Any] | None]:
    """Make the histograms over the samples of all given tasks."""
    return {
        "latency": histogram([value for task in tasks for value in task.latencies]),
        "tokens_in": histogram([value for task in tasks for value in task.tokens_in]),
        "tokens_out": histogram([value for task in tasks for value in task.tokens_out]),
    }


def histogram(values: Sequence[float | int | None]) -> dict[str, Any] | None:
    """Count values in bins of equal width up to the 99th percentile, and compute quantiles.

    Returns ``None`` if no value is known.
    """
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


def result_rows(run: ReportRun) -> list[Plain]:
    """Return the scores of a run, from its results document or, without it, as means over the documents."""
    results = part_of(run.document, "results")
    if not results or run.rows.kind != "lmms_eval":
        return [_mean_row(run, task, column) for task in run.rows.tasks.values() for column in _with_scores(task)]
    return [row for name in results for row in stated_rows(run.document, name)]


def _with_scores(task: TaskRows) -> list[MetricColumn]:
    return [column for column in task.columns.values() if not all(math.isnan(score) for score in column.scores)]


def _mean_row(run: ReportRun, task: TaskRows, column: MetricColumn) -> Plain:
    cell = whole_cell(_documents(run, task)(column))
    row: Plain = {"task": task.task, "metric": column.metric, "filter": column.filter, **_plain(cell, column)}
    if column.reported is not None and column.scale == 0:  # it is not a mean, so the documents give no interval
        row |= {"value": column.reported, "low": None, "high": None, "about": ""}
    elif column.reported is not None:
        row["value"] = column.reported
    return row | {"higher": column.higher_is_better is not False}


def counted(document: Mapping[str, Any]) -> list[Plain]:
    """Return what the metrics of a run count that score nothing, such as answers for submission."""
    return [
        {"task": name, "label": label, "n": count}
        for name in part_of(document, "results")
        for key, count in part_of(part_of(document, "outcomes", name), "n").items()
        if (label := _label_of_count(document, name, key))
    ]


def _label_of_count(document: Mapping[str, Any], name: str, key: str) -> str:
    """Return what a metric counts; empty for one that scores."""
    metric = key.rpartition(",")[0]
    if is_count(metric, part_of(document, "results", name).get(key)):
        return count_label(metric)
    return "answers in files" if key in (part_of(document, "outcomes", name).get("wrote_files") or ()) else ""


def stated_rows(document: Mapping[str, Any], name: str) -> Iterator[Plain]:
    """Yield the scores of a task or group in the results document, without metrics that only count."""
    entry, outcome = part_of(document, "results", name), part_of(document, "outcomes", name)
    counts, partial = part_of(outcome, "n"), part_of(outcome, "partial")
    for key, count in counts.items():
        metric, _, pipeline = key.rpartition(",")
        interval = part_of(document, "intervals", name).get(key) or {}
        part = part_of(partial, key)
        if _label_of_count(document, name, key):
            continue
        yield {
            "task": name,
            "alias": str(entry.get("alias") or name),
            "metric": metric,
            "filter": pipeline,
            "value": finite(entry.get(key)),
            "stderr": finite(entry.get(f"{metric}_stderr,{pipeline}")),
            "low": finite(interval.get("low")),
            "high": finite(interval.get("high")),
            "method": interval.get("method") or interval.get("reason") or "",
            "about": estimand_of(interval),
            "n": count,
            "over": QUESTIONS,
            "higher": part_of(document, "higher_is_better", name).get(metric) is not False,
            **({"partial": part.get("value"), "withheld": str(part.get("reason", ""))} if part else {}),
        }


def _documents(
    run: ReportRun, task: TaskRows, shown: Sequence[int] | None = None
) -> Callable[[MetricColumn], MetricDocuments]:
    """Return a function that gets the documents of a metric's numbers.

    Of documents without a score only those of the rows ``shown`` count, by default all.
    """
    keys = run.keys(task.task)
    has_clusters = task.clusters is not None or (keys.has_clusters and not keys.finds_clusters)
    clusters = (task.clusters or [None] * len(task.ids)) if has_clusters else None
    asked = None if task.early_stop is None else AskedDocuments.find(task.early_stop, task.task, task.ids)
    rows = range(len(task.ids)) if shown is None else set(shown)
    missing = [status != "scored" and row in rows for row, status in enumerate(task.statuses)]
    return lambda column: MetricDocuments.of(column.scores, column.score_range, clusters, asked, missing)


def breakdowns(run: ReportRun, task: TaskRows, shown: IndexedTask, without_interval: str = "") -> list[Plain]:
    """Divide the documents by each metadata column with few values, and compute number, mean and interval of the parts.

    Samples that are not ``shown`` are in no part. ``without_interval`` is the reason why parts have no interval.
    """
    documents_of = _documents(run, task, shown.rows)
    columns = [(column, documents_of(column)) for column in _with_scores(task)]
    # An expression may have chosen the samples by their scores, which makes intervals invalid.
    reason = CHOSEN if shown.is_chosen else without_interval
    without: Plain = {"low": None, "high": None, "method": reason, "about": "", "missing": ""} if reason else {}
    scores = [column.scores for column, _ in columns]
    divided = divisions(_of_all(shown, len(task.ids)), scores) if columns else ()
    return [
        {
            "column": division.column,
            "metrics": {
                str(column): [
                    {"name": cell.value, **_plain(cell, column), **without} for cell in cells(documents, division)
                ]
                for column, documents in columns
            },
        }
        for division in divided
    ]


def _of_all(shown: IndexedTask, count: int) -> Mapping[str, Sequence[str | None]]:
    """Expand the metadata columns to all samples of the task."""
    if len(shown.rows) == count:
        return shown.metadata
    columns: dict[str, list[str | None]] = {name: [None] * count for name in shown.metadata}
    for name, values in shown.metadata.items():
        for row, value in zip(shown.rows, values, strict=True):
            columns[name][row] = value
    return columns


def _plain(cell: Cell, column: MetricColumn) -> Plain:
    """Convert a cell to the units of the run's own number."""
    scale = column.scale or 1.0
    value, low, high = (None if end is None else end * scale for end in (cell.mean, cell.low, cell.high))
    method = cell.method or cell.no_interval
    about = estimand_of({"low": low, "high": high, "method": method})
    found: Plain = {
        "n": cell.n, "value": value, "low": low, "high": high, "method": method, "about": about, "few": cell.is_few
    }  # fmt: skip
    return found if cell.missing is None else found | {"missing": cell.missing_text(scale)}
