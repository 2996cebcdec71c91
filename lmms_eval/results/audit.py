"""Audit of answer extraction: how answers were read, and how much a score depends on the rule that read them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lmms_eval.engine.looks import NO_EARLY_INTERVAL
from lmms_eval.results.facts import metric_range, part_of, sample_keys
from lmms_eval.results.reading import OtherScore, Reading, reading_of
from lmms_eval.results.run import Choice, Run, RunTask
from lmms_eval.results.sample import Sample, SampleClusters
from lmms_eval.results.tables import interval_text
from lmms_eval.stats import Interval
from lmms_eval.stats.differences import PairOptions, compare_pairs
from lmms_eval.stats.interval import range_of_scores
from lmms_eval.utils.terminal import escaped, named_table

CHOSEN = "chosen samples"
"""Why a difference has no interval: the choice of samples may depend on their scores."""
_SHOWN = 12


class OtherRule(Struct, frozen=True):
    """A metric by the official rule and by another rule, over the documents that have both."""

    metric: str
    other: str
    n: int
    mean: float
    other_mean: float
    higher: int
    """Documents with a higher score by the other rule."""
    lower: int
    low: float | None = None
    """Lower end of the 95 % interval of the difference of the means, paired by document."""
    high: float | None = None
    method: str = ""
    """Method of the interval, or why it is missing."""

    @property
    def differing(self) -> int:
        return self.higher + self.lower


class Audit(Struct):
    """Counts of a task's samples through one filter pipeline, by how their answers were read."""

    task: str
    filter: str = ""
    answers: int = 0
    """Samples with an answer, that is, samples that did not fail."""
    blank: int = 0
    filtered: int = 0
    truncated: int = 0
    told: int = 0
    """Answers with a record of what the task read."""
    unparsed: int = 0
    """Those of them without anything that was read."""
    ambiguous: int = 0
    """Those of them with several things that were read."""
    drawn: int = 0
    """Answers whose score was drawn at random because they name no choice."""
    rules: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each field of ``RULES``: number of answers by the rule that decided."""
    others: tuple[OtherRule, ...] = ()

    def frequent(self, name: str) -> list[tuple[str, int]]:
        """Return rules with their number of answers, the most frequent first."""
        return sorted(self.rules[name].items(), key=lambda one: -one[1])


class Auditor:
    """Counter of the samples of one task.

    ``facts`` has the form of a results document. ``without_interval``: why differences have no interval; empty if they
    have.
    """

    def __init__(self, task: str, facts: Mapping[str, Any], without_interval: str = "") -> None:
        self.task, self.facts, self.without_interval = task, facts, without_interval
        self._keys = sample_keys(facts, task)
        self._audits: dict[str, Audit] = {}
        self._pairs: dict[str, dict[tuple[str, str], list[tuple[OtherScore, int]]]] = {}
        """By pipeline and names of the two metrics: the scores, with the rows of their documents."""
        self._clusters = SampleClusters(self._keys)
        self._rows: dict[str, int] = {}

    def see(self, sample: Sample) -> Reading | None:
        """Count a sample and return its reading.

        A sample without a pipeline, which is not scored yet, counts for the first pipeline.
        """
        reading = reading_of(sample)
        if reading is None:
            return None
        pipeline = sample.filter or next(iter(self._audits), "")
        found = self._audits.setdefault(pipeline, Audit(self.task, pipeline))
        found.answers += 1
        found.blank += reading.outcome == "blank"
        found.filtered += reading.outcome == "filtered"
        found.truncated += reading.outcome == "truncated"
        found.drawn += sample.drew
        found.told += reading.kind != "not told"
        found.unparsed += reading.kind == "unparsed"
        found.ambiguous += reading.kind == "ambiguous"
        for name, rule in reading.rules.items():
            counts = found.rules.setdefault(name, {})
            counts[rule] = counts.get(rule, 0) + 1
        if reading.others or (self._keys.finds_clusters and sample.status == "scored"):
            row = self._rows.setdefault(sample.doc_id, len(self._rows))
            self._clusters.add(row, sample.record)
        for score in reading.others:
            self._pairs.setdefault(pipeline, {}).setdefault((score.metric, score.other), []).append((score, row))
        return reading

    def audits(self) -> tuple[Audit, ...]:
        """Return the counts of each pipeline; for a task without answers, one empty audit."""
        for pipeline, found in self._audits.items():
            pairs = self._pairs.get(pipeline, {})
            found.others = tuple(self._compared(*names, numbers) for names, numbers in pairs.items())
        return tuple(self._audits.values()) or (Audit(self.task),)

    def _compared(self, metric: str, other: str, pairs: Sequence[tuple[OtherScore, int]]) -> OtherRule:
        first = [score.number for score, _ in pairs]
        second = [score.other_number for score, _ in pairs]
        moved = [score for score, _ in pairs if not score.is_same]
        higher = sum(score.other_number > score.number for score in moved)
        mean, other_mean = (math.fsum(numbers) / len(numbers) for numbers in (first, second))
        low, high, method = self._interval(metric, first, second, self._clusters.of([row for _, row in pairs]))
        return OtherRule(metric, other, len(first), mean, other_mean, higher, len(moved) - higher, low, high, method)

    def _interval(
        self, metric: str, first: Sequence[float], second: Sequence[float], clusters: Sequence[str | None] | None
    ) -> tuple[float | None, float | None, str]:
        """Return the interval of the other rule's gain and its method, or ``None`` twice and why it is missing.

        The metric's range is used only if the scores by both rules lie within it.
        """
        if part_of(self.facts, "early_stop", self.task):
            return None, None, NO_EARLY_INTERVAL
        if self.without_interval:
            return None, None, self.without_interval
        within = range_of_scores([*first, *second], metric_range(self.facts, self.task, metric))
        found = compare_pairs(second, first, clusters, PairOptions(within=within))
        if isinstance(found.interval, Interval):
            return found.interval.low, found.interval.high, found.interval.method
        return None, None, found.interval.reason


def audit(run: Run, task: RunTask, chosen: Choice | None = None) -> tuple[Audit, ...]:
    """Audit the samples of a task, for each filter pipeline. Raises ``DataError`` if a sample cannot be read."""
    auditor = Auditor(task.name, run.facts, CHOSEN if chosen is not None and chosen.where is not None else "")
    for sample in task.samples(chosen):
        auditor.see(sample)
    return auditor.audits()


def audit_text(audits: Sequence[Audit]) -> str:
    """Format audits as Markdown tables: shares by task, rules, scores by the other rule."""
    tasks = Counter(one.task for one in audits)
    # by the audit's identity: the task, with the pipeline if the task has several
    names_of = {id(one): f"{one.task}, {one.filter}" if tasks[one.task] > 1 else one.task for one in audits}

    def shares(name: str, of: str = "answers") -> list[str]:
        cells = [(getattr(one, name), getattr(one, of)) for one in audits]
        return [f"{count} ({count / total:.1%})" if total else "not reported" for count, total in cells]

    counted = {
        "Task": [escaped(names_of[id(one)]) for one in audits],
        "Answers": [str(one.answers) for one in audits],
        **{name.capitalize(): shares(name) for name in ("blank", "filtered", "truncated")},
        **{name.capitalize(): shares(name, "told") for name in ("unparsed", "ambiguous")},
        "Random guess": shares("drawn"),
    }
    parts = [named_table(counted, ("Answers",))]
    rules = [
        (names_of[id(one)], name, rule, count, sum(counts.values()))
        for one in audits
        for name, counts in one.rules.items()
        for rule, count in one.frequent(name)[:_SHOWN]
    ]
    if rules:
        columns = {
            "Task": [escaped(task) for task, *_ in rules],
            "Field": [escaped(name) for _, name, *_ in rules],
            "Rule": [escaped(rule[:80]) for _, _, rule, *_ in rules],
            "Answers": [str(count) for *_, count, _ in rules],
            "Share": [f"{count / total:.1%}" for *_, count, total in rules],
        }
        parts.append(named_table(columns, ("Answers",)))
    others = [(names_of[id(one)], other) for one in audits for other in one.others]
    if others:
        moves = {
            "Task": [escaped(task) for task, _ in others],
            "Metric": [escaped(other.metric) for _, other in others],
            "Other rule": [escaped(other.other) for _, other in others],
            "N": [str(other.n) for _, other in others],
            "Mean": [f"{other.mean:.4f}" for _, other in others],
            "By the other": [f"{other.other_mean:.4f}" for _, other in others],
            "Moves by": [f"{other.other_mean - other.mean:+.4f}" for _, other in others],
            "CI95": [interval_text(other.low, other.high, other.method) for _, other in others],
            "Differing": [str(other.differing) for _, other in others],
        }
        parts.append(named_table(moves))
    return "\n".join(parts).rstrip("\n")
