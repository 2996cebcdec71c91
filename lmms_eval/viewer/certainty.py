"""The section "Certainty" of a run's page: for each task, what its numbers are about and what they rest on.

``PARTS`` holds a function for each part. It gets the results document and the name of a task, and yields ``Part``. The
page shows all parts in the same form, so that a new part needs one function here and no code in the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.compare.verdicts import metric_text
from lmms_eval.results.facts import part_of
from lmms_eval.results.sample import finite
from lmms_eval.stats.interval import BENCHMARK, GENERALISED, Interval
from lmms_eval.utils.records import to_dict

Document = Mapping[str, Any]
"""A results document."""
LIST, LIKE_THESE = "this list", "questions like these"
_ABOUT = {BENCHMARK: LIST, GENERALISED: LIKE_THESE}


class Number(Struct, frozen=True):
    """A number with its 95 % interval."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    about: str = ""
    """What the interval is about."""
    note: str = ""
    """The method of the interval, or why it is missing."""
    is_difference: bool = False
    """A difference has 0 on its axis, and a sign."""


class Share(Struct, frozen=True):
    """A piece of a stacked bar."""

    name: str
    value: float


class Part(Struct, frozen=True):
    """A part of the section: a sentence, and the numbers that it is about."""

    title: str
    sentence: str
    numbers: Sequence[Number] = ()
    shares: Sequence[Share] = ()
    """Pieces of a bar, which together are the whole."""
    notes: Sequence[str] = ()
    """Further sentences, in smaller print."""


def estimand_of(interval: Mapping[str, Any]) -> str:
    """Return what an interval of a results document is about, in plain words; empty if there is no interval."""
    low, high = finite(interval.get("low")), finite(interval.get("high"))
    if low is None or high is None:
        return ""
    method = str(interval.get("method", ""))
    return _ABOUT.get(interval.get("estimand") or Interval(low, high, method).estimand, "")


def certainty(document: Document) -> dict[str, list[dict[str, Any]]]:
    """Return the parts of each task that has any, as the page shows them."""
    found = {
        task: [to_dict(part) for make in PARTS for part in make(document, task)]
        for task in part_of(document, "results")
    }
    return {task: parts for task, parts in found.items() if parts}


def named(key: str) -> str:
    """Return the name of a metric from ``METRIC,FILTER``."""
    metric, _, pipeline = key.rpartition(",")
    return metric_text(metric or key, pipeline if metric else "")


def number(name: str, value: Any, interval: Mapping[str, Any], about: str = "") -> Number:
    """Make a number from an interval of the results document: ``low``, ``high``, ``method`` or ``reason``."""
    low, high = finite(interval.get("low")), finite(interval.get("high"))
    note = str(interval.get("method") or interval.get("reason") or "")
    return Number(name, finite(value), low, high, "" if low is None else about or estimand_of(interval), note)


def _clusters(document: Document, task: str) -> Iterator[Part]:
    found = part_of(document, "clusters", task)
    count, documents = finite(found.get("count")), finite(found.get("documents"))
    if not count or not documents or count >= documents:
        return
    by = str(found.get("by", "")).removeprefix("column ")
    sentence = f"Intervals are over {count:,.0f} clusters by {by}: {documents:,.0f} documents are not as many answers."
    effective = finite(found.get("effective"))
    notes = [] if effective is None else [f"As certain as {effective:,.1f} clusters of one size, at most."]
    yield Part("Clusters", sentence, notes=notes)


PARTS: tuple[Callable[[Document, str], Iterator[Part]], ...] = (_clusters,)
"""The parts of a task, in the order in which they are shown."""
