"""Reading of one answer: what its task's rule found in it, as far as the sample tells it.

Tasks keep it in their metrics' values: the step that decided (MileBench), the outcome of a judge's reply (MMIE), the
letter or text that was found (MMMU, BLINK); or scoring noted the rule and what it found beside them
(``answer_reading``). Scores by another rule stand beside the official one as ``METRIC_fixed`` or
``METRIC_reference``, or as the field ``fixed`` of its value (MEGA-Bench).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lmms_eval.results.sample import Outcome, Sample, finite
from lmms_eval.utils.answer_reading import DRAWN, NOTHING

Kind = Literal["read", "unparsed", "ambiguous", "not told"]
"""``unparsed``: nothing was found; ``ambiguous``: several things were; ``not told``: the task keeps nothing of it."""
RULES = ("rule", "step", "outcome", "fixed_rule", "fixed_step")
"""Fields of a metric's value that name the rule by which the answer was read."""
FOUND = ("extracted", "fixed_extracted", "parsed_pred", "pred_parsed", "parsed", "extraction", "pred_answer")
"""Fields of a metric's value that hold what was read from the answer."""
OTHER_RULES = ("_fixed", "_reference", "_strict", "_official")
"""Endings of metrics that score the same answers by another rule."""
NOTED = "answer_reading"
"""Key of a sample for what scoring noted beside the metrics: the fields ``rule`` and ``extracted``."""
PREFIX = "audit."
"""Of the columns of a sample that tell how it was read (``reading_columns``)."""
LONGEST_RULE = 200
_NO_RULE = frozenset({"none", "unparsed", "unreadable", "no answer", "", NOTHING, DRAWN})


@dataclass(frozen=True, slots=True)
class OtherScore:
    """A number of a sample, and the one of the same answer by another rule."""

    metric: str
    other: str
    number: float
    other_number: float

    @property
    def is_same(self) -> bool:
        return math.isclose(self.number, self.other_number, rel_tol=1e-9, abs_tol=1e-12)


@dataclass(frozen=True, slots=True)
class Reading:
    """The way in which an answer was read."""

    kind: Kind
    rules: Mapping[str, str]
    """By field of ``RULES``."""
    others: tuple[OtherScore, ...]
    outcome: Outcome
    """That of the sample: whether the answer is blank, filtered or truncated."""


def reading_of(sample: Sample) -> Reading | None:
    """Tell how a sample's answer was read; ``None`` where it failed, and has none."""
    if sample.status == "failed":
        return None
    metrics = sample.metrics
    values = _facts(metrics)
    noted = sample.record.get(NOTED)
    if isinstance(noted, Mapping) and not any(name in values for name in RULES):
        values |= noted
    rules = {name: values[name][:LONGEST_RULE] for name in RULES if isinstance(values.get(name), str)}
    return Reading(_kind(values, rules), rules, tuple(_others(sample, metrics)), sample.outcome)


def noted_rule(sample: Sample) -> str:
    """Return the rule that scoring noted for a sample; empty where it noted none."""
    noted = sample.record.get(NOTED)
    rule = noted.get("rule") if isinstance(noted, Mapping) else None
    return rule[:LONGEST_RULE] if isinstance(rule, str) else ""


def reading_columns(sample: Sample) -> dict[str, str]:
    """Return a sample's columns by which the counts of an audit can be found again; without those that say nothing.

    ``audit.reading``, ``audit.answer`` (``blank``, ``filtered``, ``truncated``), ``audit.drawn``, ``audit.rule.FIELD``
    and ``audit.by.METRIC`` (the other rule's score is ``higher``, ``lower`` or the ``same``).
    """
    found = reading_of(sample)
    return {} if found is None else columns_of(sample, found)


def columns_of(sample: Sample, found: Reading) -> dict[str, str]:
    """Return ``reading_columns`` of a sample whose reading is known."""
    columns: dict[str, str] = {"reading": found.kind}
    if found.outcome in ("blank", "filtered", "truncated"):
        columns["answer"] = found.outcome
    if sample.drew:
        columns["drawn"] = "drawn"
    columns |= {f"rule.{name}": rule for name, rule in found.rules.items()}
    for score in found.others:
        moved = "higher" if score.other_number > score.number else "lower"
        columns[f"by.{score.other}"] = "same" if score.is_same else moved
    return {PREFIX + name: text for name, text in columns.items()}


def _kind(values: Mapping[str, Any], rules: Mapping[str, str]) -> Kind:
    if not rules and not any(name in values for name in FOUND):
        return "not told"
    read = next((values[name] for name in FOUND if values.get(name) is not None), None)
    if _NO_RULE & set(rules.values()) if rules else _is_nothing(read):
        return "unparsed"
    return "ambiguous" if _is_several(read) else "read"


def _facts(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of all values of a sample's metrics; of one name the first."""
    found: dict[str, Any] = {}
    for value in metrics.values():
        if isinstance(value, Mapping):
            for key, item in value.items():
                found.setdefault(key, item)
    return found


def _is_nothing(read: Any) -> bool:
    while isinstance(read, list | tuple) and len(read) == 1:
        read = read[0]
    return read is None or (isinstance(read, str | list | tuple | dict) and not read)


def _is_several(read: Any) -> bool:
    """Tell whether more than one thing was read; a repeat's list in a list counts as its only one."""
    while isinstance(read, list | tuple) and len(read) == 1:
        read = read[0]
    return isinstance(read, list | tuple) and len({str(one) for one in read}) > 1


def _others(sample: Sample, metrics: Mapping[str, Any]) -> Iterator[OtherScore]:
    beside = [(name, f"{name}{end}") for name in metrics for end in OTHER_RULES if f"{name}{end}" in metrics]
    for name, other in beside:
        number, other_number = sample.number(name), sample.number(other)
        if number is not None and other_number is not None:
            yield OtherScore(name, other, number, other_number)
    for name, value in metrics.items():
        if not beside and isinstance(value, Mapping) and "fixed" in value:
            number = sample.number(name)  # MEGA-Bench: without a number of its own the other rule changes nothing
            fixed = number if value["fixed"] is None else finite(value["fixed"])
            if number is not None and fixed is not None:
                yield OtherScore(name, f"{name}.fixed", number, fixed)
