"""Numbers of a results document with what it states about them, for the forms that others read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.results.facts import aggregation_of, is_count, metric_range, part_of, selected
from lmms_eval.results.sample import finite
from lmms_eval.results.tables import NOT_EMITTED, absent_text, pairs_in
from lmms_eval.utils.numbers import SHARES, ScoreRange

PERCENT = ScoreRange(0.0, 100.0)
LEVEL = 0.95
"""Level of the intervals of ``intervals`` in a results document."""


class ReportedNumber(Struct, frozen=True):
    """A number of a task or group, with what the document states about it."""

    task: str
    metric: str
    filter: str
    value: float
    n: int | None = None
    """Documents that have the metric."""
    error: float | None = None
    error_method: str = ""
    """How the standard error was computed; empty if that is not known."""
    low: float | None = None
    high: float | None = None
    """Ends of the interval; ``None`` without one."""
    level: float = LEVEL
    method: str = ""
    """Method of the interval, or the reason why it is missing."""
    estimand: str = ""
    higher_is_better: bool | None = None
    """``None`` if it is not stated."""
    score_range: ScoreRange | None = None
    """Range of the number; ``None`` if it is not known."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """What limits the number, such as ``stopped early``: by name, a sentence."""

    @property
    def key(self) -> str:
        return f"{self.metric},{self.filter}"

    @property
    def name(self) -> str:
        """The metric, with its filter pipeline if that is not the usual one."""
        return self.metric if self.filter in ("none", "") else self.key

    @property
    def unit(self) -> str:
        """``proportion`` or ``percent`` by the range; empty for any other range."""
        return {SHARES: "proportion", PERCENT: "percent"}.get(self.score_range or ScoreRange(), "")


class ReportedNumbers(Struct, frozen=True):
    """The numbers of one selected task or group and of everything below it."""

    name: str
    shown: tuple[ReportedNumber, ...]
    withheld: tuple[str, ...]
    """For each number that is absent though it was asked for, a sentence with the reason."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks and groups that have a number."""
        return tuple(dict.fromkeys(number.task for number in self.shown))


def numbers_of(document: Mapping[str, Any]) -> tuple[ReportedNumbers, ...]:
    """Return the numbers of each selected task or group, without those of controls (``TASK@CONTROL``)."""
    found = []
    for top, names in selected(document).items():
        if is_control(top):
            continue
        shown: list[ReportedNumber] = []
        withheld: list[str] = []
        for name in names:
            if not is_control(name):
                _add(document, name, shown, withheld)
        found.append(ReportedNumbers(top, tuple(shown), tuple(withheld)))
    return tuple(found)


def is_control(task: str) -> bool:
    """Return whether the name is that of a control, a prompt variant or a second asking of a task."""
    return "@" in task


def _add(document: Mapping[str, Any], name: str, shown: list[ReportedNumber], withheld: list[str]) -> None:
    entry, outcome = part_of(document, "results", name), part_of(document, "outcomes", name)
    for metric, pipeline in pairs_in(entry):
        value, key = entry[f"{metric},{pipeline}"], f"{metric},{pipeline}"
        if is_count(metric, value, aggregation_of(document, name, metric)):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            reason = absent_text(outcome, key) if value is None else ""
            if reason and reason not in (NOT_AVAILABLE, NOT_EMITTED):
                withheld.append(f"{name} {metric}: {reason}")
        elif not math.isfinite(value):
            withheld.append(f"{name} {metric}: its value is not a finite number")
        else:
            shown.append(_number(document, name, (metric, pipeline), float(value)))


def _number(document: Mapping[str, Any], name: str, pair: tuple[str, str], value: float) -> ReportedNumber:
    metric, pipeline = pair
    key = f"{metric},{pipeline}"
    outcome, stop = part_of(document, "outcomes", name), part_of(document, "early_stop", name)
    interval: Mapping[str, Any] = part_of(part_of(document, "intervals", name), key)
    error, method = _error(document, name, pair)
    higher = part_of(document, "higher_is_better", name).get(metric)
    count = part_of(outcome, "n").get(key, outcome.get("scored", part_of(document, "n-samples", name).get("effective")))
    low, high = finite(interval.get("low")), finite(interval.get("high"))
    within = metric_range(document, name, metric)
    return ReportedNumber(
        task=name,
        metric=metric,
        filter=pipeline,
        value=value,
        n=count if isinstance(count, int) else None,
        error=error,
        error_method=method if error is not None else "",
        low=low if high is not None else None,
        high=high if low is not None else None,
        method=str(interval.get("method") or interval.get("reason") or ""),
        estimand=str(interval.get("estimand") or ""),
        higher_is_better=higher if isinstance(higher, bool) else None,
        score_range=within if within is not None and value in within else None,
        marks=dict(_marks(document, name, outcome, stop)),
    )


def _error(document: Mapping[str, Any], name: str, pair: tuple[str, str]) -> tuple[float | None, str]:
    """Return the standard error and how it was computed: over clusters if the documents have any."""
    metric, pipeline = pair
    entry = part_of(document, "results", name)
    clustered = finite(entry.get(f"{metric}_stderr_clustered,{pipeline}"))
    if clustered is not None:
        return clustered, "clustered"
    known = AGGREGATIONS.get(aggregation_of(document, name, metric))
    method = ""
    if known is not None and "run_key" in document:
        method = "analytic" if known.is_mean else "bootstrap" if known.bootstrap_iterations else ""
        if known.is_mean and part_of(document, "clusters", name).get("by") not in (None, "none"):
            method = "analytic, documents taken as independent"
    return finite(entry.get(f"{metric}_stderr,{pipeline}")), method


def _marks(
    document: Mapping[str, Any], name: str, outcome: Mapping[str, Any], stop: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what limits a number: a part of the documents, missing scores, truncated answers."""
    drawn = part_of(document, "sampled", name)
    if stop:
        yield "stopped_early", f"{stop.get('asked')} of {stop.get('of')} documents, by the rule {stop.get('rule')}"
    if drawn:
        yield "random_sample", f"{drawn.get('asked')} of {drawn.get('of')} documents, design {drawn.get('design')}"
    counts = part_of(document, "n-samples", name)
    original, effective = counts.get("original"), counts.get("effective")
    if not stop and not drawn and original != effective:
        yield "part_of_split", f"{effective} of {original} documents"
    missing = {state: outcome[state] for state in ("unscored", "failed") if outcome.get(state)}
    if missing:
        yield "without_score", ", ".join(f"{count} {state}" for state, count in missing.items())
    if outcome.get("over_truncation_budget"):
        yield "truncated", f"{outcome.get('truncated')} of {outcome.get('answers')} answers reached the token limit"


def started(document: Mapping[str, Any]) -> datetime | None:
    """Return the start of the run; ``None`` if it is not known."""
    return _moment(document.get("date")) or _moment(document.get("start_time"))


def ended(document: Mapping[str, Any]) -> datetime | None:
    """Return the end of the run; ``None`` if it is not known."""
    return _moment(document.get("end_time")) or started(document)


def _moment(value: Any) -> datetime | None:
    """Read seconds since 1970, or a date and time in ISO 8601."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo is not None else found.astimezone(UTC)
