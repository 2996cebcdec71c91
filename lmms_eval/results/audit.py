"""Audit of answer extraction: how answers were read, and how far a score depends on the rule that read them.

Rules are what tasks keep in their metrics' values: the step that decided (MileBench), the outcome of a judge's reply
(MMIE), the letter or text that was found (MMMU, BLINK), a draw at random. Scores by another rule stand beside the
official one as ``METRIC_fixed`` or ``METRIC_reference``, or as the field ``fixed`` of its value (MEGA-Bench).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.results.run_reader.run import Choice, RunTask
from lmms_eval.results.run_reader.sample import Sample, finite
from lmms_eval.utils.markdown import Column, escaped, markdown_table

RULES = ("rule", "step", "outcome", "fixed_rule", "fixed_step")
"""Fields of a metric's value that name the rule by which the answer was read."""
FOUND = ("extracted", "fixed_extracted", "parsed_pred", "pred_parsed", "parsed", "extraction", "pred_answer")
"""Fields of a metric's value that hold what was read from the answer."""
OTHER_RULES = ("_fixed", "_reference", "_strict", "_official")
"""Endings of metrics that score the same answers by another rule."""
_NO_RULE = frozenset({"none", "unparsed", "unreadable", "no answer", ""})
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class OtherRule:
    """A metric beside the same one by another rule, over the documents that have both."""

    metric: str
    other: str
    n: int
    mean: float
    other_mean: float
    differing: int
    """Documents whose two scores differ."""


@dataclass(slots=True)
class Audit:
    """Counts of a task's samples by the way in which their answers were read, each filter pipeline for itself."""

    task: str
    answers: int = 0
    """Samples with an answer: those that did not fail."""
    blank: int = 0
    filtered: int = 0
    truncated: int = 0
    told: int = 0
    """Answers of which the task tells what was read."""
    unparsed: int = 0
    """Among them those from which nothing was."""
    ambiguous: int = 0
    """Among them those from which several things were."""
    drawn: int = 0
    """Answers whose score was drawn at random, since they name no choice."""
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    """Answers by the rule that decided, for each field of ``RULES`` (and filter pipelines, where there are several)."""
    others: tuple[OtherRule, ...] = ()


def audit(task: RunTask, chosen: Choice | None = None) -> Audit:
    """Audit the samples of a task. Raises ``DataError`` if one cannot be read."""
    found = Audit(task.name)
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for sample in task.samples(chosen):
        if sample.status == "failed":
            continue
        found.answers += 1
        found.blank += sample.outcome == "blank"
        found.filtered += sample.outcome == "filtered"
        found.truncated += sample.outcome == "truncated"
        found.drawn += sample.drew
        _note_reading(found, sample)
        for name, beside, number, other in _other_rules(sample):
            if number is not None and other is not None:
                pairs.setdefault((name, beside), []).append((number, other))
    found.others = tuple(_compared(*names, numbers) for names, numbers in pairs.items())
    return found


def _note_reading(found: Audit, sample: Sample) -> None:
    values = _facts(sample)
    rules = {name: values[name] for name in RULES if isinstance(values.get(name), str)}
    for name, rule in rules.items():
        found.rules.setdefault(name, Counter())[rule] += 1
    read = next((values[name] for name in FOUND if values.get(name) is not None), None)
    if not rules and not any(name in values for name in FOUND):
        return
    found.told += 1
    is_empty = bool(_NO_RULE & set(rules.values())) if rules else _is_nothing(read)
    found.unparsed += is_empty
    found.ambiguous += not is_empty and _is_several(read)


def _facts(sample: Sample) -> dict[str, Any]:
    """Fields of all values of the sample's metrics; of one name the first."""
    found: dict[str, Any] = {}
    for value in sample.metrics.values():
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


def _other_rules(sample: Sample) -> Iterator[tuple[str, str, float | None, float | None]]:
    """Metrics with another rule's: their names and numbers."""
    metrics = sample.metrics
    beside = [(name, f"{name}{end}") for name in metrics for end in OTHER_RULES if f"{name}{end}" in metrics]
    for name, other in beside:
        yield name, other, sample.number(name), sample.number(other)
    for name, value in metrics.items():
        if not beside and isinstance(value, Mapping) and "fixed" in value:
            number = sample.number(name)  # MEGA-Bench: without a number of its own the other rule changes nothing
            yield name, f"{name}.fixed", number, number if value["fixed"] is None else finite(value["fixed"])


def _compared(metric: str, other: str, numbers: Sequence[tuple[float, float]]) -> OtherRule:
    n = len(numbers)
    mean, other_mean = (math.fsum(pair[side] for pair in numbers) / n for side in (0, 1))
    differing = sum(not math.isclose(*pair, rel_tol=1e-9, abs_tol=1e-12) for pair in numbers)
    return OtherRule(metric, other, n, mean, other_mean, differing)


def audit_text(audits: Sequence[Audit]) -> str:
    """Write audits as Markdown tables: shares by task, rules, scores by the other rule."""
    parts = [markdown_table(_shares(audits))]
    rules = [
        (one.task, name, rule, count, found.total())
        for one in audits
        for name, found in one.rules.items()
        for rule, count in found.most_common(_SHOWN)
    ]
    if rules:
        tasks, names, chosen, counts, totals = zip(*rules, strict=True)
        shares = (f"{count / total:.1%}" for count, total in zip(counts, totals, strict=True))
        texts = {"Task": tasks, "Field": names, "Rule": [rule[:80] for rule in chosen]}
        columns = [Column(head, tuple(map(escaped, cells)), is_text=True) for head, cells in texts.items()]
        columns += [Column("Answers", tuple(map(str, counts))), Column("Share", tuple(shares), is_text=True)]
        parts.append(markdown_table(columns))
    others = [(one.task, other) for one in audits for other in one.others]
    if others:
        parts.append(markdown_table(_moves(others)))
    return "\n".join(parts).rstrip("\n")


def _moves(others: Sequence[tuple[str, OtherRule]]) -> list[Column]:
    def column(heading: str, cell: Callable[[OtherRule], str]) -> Column:
        return Column(heading, tuple(cell(other) for _, other in others), is_text=True)

    return [
        Column("Task", tuple(escaped(task) for task, _ in others), is_text=True),
        column("Metric", lambda other: escaped(other.metric)),
        column("Other rule", lambda other: escaped(other.other)),
        column("N", lambda other: str(other.n)),
        column("Mean", lambda other: f"{other.mean:.4f}"),
        column("By the other", lambda other: f"{other.other_mean:.4f}"),
        column("Moves by", lambda other: f"{other.other_mean - other.mean:+.4f}"),
        column("Differing", lambda other: str(other.differing)),
    ]


def _shares(audits: Sequence[Audit]) -> list[Column]:
    def column(heading: str, name: str, of: str = "answers") -> Column:
        cells = [(getattr(one, name), getattr(one, of)) for one in audits]
        shown = tuple(f"{count} ({count / total:.1%})" if total else "not told" for count, total in cells)
        return Column(heading, shown, is_text=True)

    return [
        Column("Task", tuple(escaped(one.task) for one in audits), is_text=True),
        Column("Answers", tuple(str(one.answers) for one in audits)),
        column("Blank", "blank"),
        column("Filtered", "filtered"),
        column("Truncated", "truncated"),
        column("Unparsed", "unparsed", "told"),
        column("Ambiguous", "ambiguous", "told"),
        column("Drawn", "drawn"),
    ]
