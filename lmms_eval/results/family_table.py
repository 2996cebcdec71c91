"""Table of results from the family's results dictionary, as task files and plugins print it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmms_eval.engine.early import stop_mark
from lmms_eval.engine.outcomes import described_counts
from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.results.table import (
    NOT_EMITTED,
    OPTIONAL,
    Comparison,
    TableRow,
    interval_text,
    marked,
    number_text,
    rows_table,
    throughput_table,
    truncation_mark,
    withheld,
)

_STDERR = "stderr"
_SUFFIXES = tuple(f"_{suffix}" for suffix in (_STDERR, *OPTIONAL.values()))
_BLANK_METRIC = " "


def make_table(result_dict: Mapping[str, Any], column: str = "results") -> str:
    """Make the Markdown table of a results dictionary, with a newline at the end.

    Args:
        result_dict: the results; besides the family's keys ``intervals[task]["METRIC,FILTER"] = {"low", "high"}``
            (or ``{"reason"}``) gives the column ``CI95``, and ``outcomes[task]["n"]["METRIC,FILTER"]``, documents that
            emitted the metric (without it ``outcomes[task]["scored"]``), the column ``N``;
            ``early_stop[task]`` marks the values of a task that has ended early;
            ``paired[task]["METRIC,FILTER"]`` gives those of the comparison with a baseline, and a value that is
            ``None`` is printed as withheld.
        column: ``results`` for the tasks, ``groups`` for the groups.
    """
    heading = "Tasks" if column == "results" else column.capitalize()
    rows = [row for task in result_dict.get(column) or {} for row in _rows(result_dict, column, task)]
    table = rows_table(rows, heading)
    throughput = result_dict.get("throughput")
    if column == "results" and throughput:
        table += f"\n\nThroughput Summary\n\n{throughput_table(throughput)}"
    return table


def _rows(results: Mapping[str, Any], part: str, task: str) -> Iterator[TableRow]:
    """The rows of one task; keys that hold an error of another one are part of its row."""
    entry = results[part][task]

    def about(name: str) -> Mapping[str, Any]:
        return (results.get(name) or {}).get(task) or {}

    keys = sorted(key for key in entry if "," in key or key == _BLANK_METRIC)
    alias = str(entry.get("alias", task))
    shots = str((results.get("n-shot") or {}).get(task, " "))
    outcome, stop = about("outcomes"), about("early_stop")
    mark = stop_mark(stop["asked"], stop["of"]) if stop else ""
    is_cut = outcome.get("over_truncation_budget") and outcome.get("answers")
    warning = truncation_mark(outcome["truncated"], outcome["answers"]) if is_cut else ""
    for key in keys:
        metric, _, pipeline = key.rpartition(",")
        base = next((metric.removesuffix(one) for one in _SUFFIXES if metric.endswith(one)), None)
        if base is not None and f"{base},{pipeline}" in keys:
            continue
        if key == _BLANK_METRIC:
            yield TableRow(task, alias, shots=shots, scored=outcome.get("scored"), answers=_answers(outcome))
            continue
        around = about("intervals").get(key) or {}
        yield TableRow(
            name=task,
            alias=alias,
            metric=metric,
            filter=pipeline,
            shots=shots,
            higher_is_better=about("higher_is_better").get(metric),
            value=_absent(outcome, key) if entry[key] is None else marked(number_text(entry[key]), mark, warning),
            stderr=entry.get(f"{metric}_{_STDERR},{pipeline}", NOT_AVAILABLE),
            numbers={name: entry.get(f"{metric}_{name},{pipeline}", NOT_AVAILABLE) for name in OPTIONAL.values()},
            comparison=_comparison(entry, about("paired").get(key, {}) if "paired" in results else None),
            interval=interval_text(around.get("low"), around.get("high"), str(around.get("reason", ""))),
            scored=(outcome.get("n") or {}).get(key, outcome.get("scored")),
            answers=_answers(outcome),
            is_file=key in outcome.get("wrote_files", ()),
        )


def _absent(outcome: Mapping[str, Any], key: str) -> str:
    """Say why a value is not there; an aggregation that returns nothing (it writes a file) has no reason to give."""
    known = outcome.get("partial")
    if known is not None and key not in known:
        return NOT_AVAILABLE
    if outcome.get("scored") and (outcome.get("n") or {}).get(key) == 0:
        return NOT_EMITTED
    has_no_answer = 0 < outcome.get("answers", 0) == outcome.get("blank", 0) + outcome.get("filtered", 0)
    counts = {name: outcome.get(name, 0) for name in ("unscored", "failed", "not_asked", "judge_unread")}
    counts["truncated"] = outcome.get("truncated", 0) if outcome.get("over_truncation_budget") else 0
    return withheld(counts, has_no_answer=has_no_answer, is_counted=known is not None)


def _answers(outcome: Mapping[str, Any]) -> str:
    shares = outcome.get("shares") or {}
    return described_counts(outcome, shares)


def _comparison(entry: Mapping[str, Any], paired: Mapping[str, Any] | None) -> Comparison | None:
    """Read the row's comparison; without the part ``paired`` (``None``) that which the family's keys hold."""
    if paired:
        return Comparison(
            str(paired.get("baseline", "")), paired["unit"], paired.get("difference"), paired.get("ci_lower"),
            paired.get("ci_upper"), paired.get("pvalue"),
        )  # fmt: skip
    if paired is not None or "paired_baseline" not in entry:
        return None
    low, high = entry.get("paired_ci_lower"), entry.get("paired_ci_upper")
    middle = (low + high) / 2 if isinstance(low, int | float) and isinstance(high, int | float) else None
    return Comparison(str(entry["paired_baseline"]), "percent", middle, low, high, entry.get("paired_pvalue"))
