"""The reading of an answer by its task's rule, as far as the sample records it.

Tasks record it in the values of their metrics: the deciding step (MileBench), the outcome of a judge's reply (MMIE),
or the letter or text that was found (MMMU, BLINK). Scoring may also record the rule and what it found in
``answer_reading``. Scores by another rule have the names ``METRIC_fixed`` or ``METRIC_reference``, or are the field
``fixed`` of the official metric's value (MEGA-Bench).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.results.sample import Outcome, Sample, finite
from lmms_eval.utils.answer_reading import DRAWN, NOTHING

Kind = Literal["read", "unparsed", "ambiguous", "not told"]
"""``unparsed``: nothing was found. ``ambiguous``: several things were. ``not told``: the task does not record it."""
RULES = ("rule", "step", "outcome", "fixed_rule", "fixed_step")
"""Fields of a metric's value that name the rule that read the answer."""
FOUND = ("extracted", "fixed_extracted", "parsed_pred", "pred_parsed", "parsed", "extraction", "pred_answer")
"""Fields of a metric's value that hold what the rule found in the answer."""
OTHER_RULES = ("_fixed", "_reference", "_strict", "_official")
"""Suffixes of metrics that score the same answers by another rule."""
NOTED = "answer_reading"
"""Key of a sample with the fields ``rule`` and ``extracted``, recorded by scoring in addition to the metrics."""
PREFIX = "audit."
"""Prefix of a sample's columns about how it was read (``reading_columns``)."""
LONGEST_RULE = 200
_NO_RULE = frozenset({"none", "unparsed", "unreadable", "no answer", "", NOTHING, DRAWN})


class OtherScore(Struct, frozen=True):
    """A sample's number, and the number of the same answer by another rule."""

    metric: str
    other: str
    number: float
    other_number: float

    @property
    def is_same(self) -> bool:
        return math.isclose(self.number, self.other_number, rel_tol=1e-9, abs_tol=1e-12)


class Reading(Struct, frozen=True):
    """The reading of one answer."""

    kind: Kind
    rules: Mapping[str, str]
    """By field of ``RULES``."""
    others: tuple[OtherScore, ...]
    outcome: Outcome
    """The sample's outcome: whether the answer is blank, filtered or truncated."""


def reading_of(sample: Sample) -> Reading | None:
    """Return how a sample's answer was read; ``None`` for failed samples, which have no answer."""
    if sample.status == "failed":
        return None
    metrics = sample.metrics
    values: dict[str, Any] = {}  # the fields of the metrics' values; the first field of a name counts
    for value in metrics.values():
        if isinstance(value, Mapping):
            for key, item in value.items():
                values.setdefault(key, item)
    noted = sample.record.get(NOTED)
    if isinstance(noted, Mapping) and not any(name in values for name in RULES):
        values |= noted
    rules = {name: values[name][:LONGEST_RULE] for name in RULES if isinstance(values.get(name), str)}
    return Reading(_kind(values, rules), rules, tuple(_others(sample, metrics)), sample.outcome)


def noted_rule(sample: Sample) -> str:
    """Return the rule that scoring recorded for a sample; empty if it recorded none."""
    noted = sample.record.get(NOTED)
    rule = noted.get("rule") if isinstance(noted, Mapping) else None
    return rule[:LONGEST_RULE] if isinstance(rule, str) else ""


def reading_columns(sample: Sample) -> dict[str, str]:
    """Return the columns of a sample that reproduce the counts of an audit, without empty ones.

    They are ``audit.reading``, ``audit.answer`` (``blank``, ``filtered``, ``truncated``), ``audit.drawn``,
    ``audit.rule.FIELD`` and ``audit.by.METRIC`` (the other rule's score is ``higher``, ``lower`` or the ``same``).
    """
    found = reading_of(sample)
    return {} if found is None else columns_of(sample, found)


def columns_of(sample: Sample, found: Reading) -> dict[str, str]:
    """Return the ``reading_columns`` of a sample whose reading is known."""
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
    while isinstance(read, list | tuple) and len(read) == 1:
        read = read[0]
    is_nothing = read is None or (isinstance(read, str | list | tuple | dict) and not read)
    if _NO_RULE & set(rules.values()) if rules else is_nothing:
        return "unparsed"
    is_several = isinstance(read, list | tuple) and len({str(one) for one in read}) > 1
    return "ambiguous" if is_several else "read"


def _others(sample: Sample, metrics: Mapping[str, Any]) -> Iterator[OtherScore]:
    pairs = [(name, f"{name}{end}") for name in metrics for end in OTHER_RULES if f"{name}{end}" in metrics]
    for name, other in pairs:
        number, other_number = sample.number(name), sample.number(other)
        if number is not None and other_number is not None:
            yield OtherScore(name, other, number, other_number)
    for name, value in metrics.items():
        if not pairs and isinstance(value, Mapping) and "fixed" in value:
            number = sample.number(name)  # MEGA-Bench: null if the other rule changes nothing
            fixed = number if value["fixed"] is None else finite(value["fixed"])
            if number is not None and fixed is not None:
                yield OtherScore(name, f"{name}.fixed", number, fixed)
