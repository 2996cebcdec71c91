"""Scores of tasks that were asked with variants of their prompt (``--prompt_variants``, ``docs/prompts.md``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval import stats
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.store import RunStore
from lmms_eval.results.certainty import PromptMeanEntry, PromptSpreadEntry, PromptVariantsEntry, plain
from lmms_eval.results.controls import DocumentScores, document_scores, document_weights
from lmms_eval.results.facts import part_of
from lmms_eval.stats.prompts import PromptMean, prompt_mean, spread_over
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.prompt_variants import OWN, PromptVariant
from lmms_eval.utils.terminal import named_table

OWN_VARIANT = PromptVariant(OWN)


class PromptScores(Struct, frozen=True):
    """A metric of a task over its prompts, over the documents that have a number with all of them."""

    names: tuple[str, ...]
    """Names of the prompts, ``as given`` for the task's own one."""
    found: PromptMean
    intervals: tuple[stats.Interval | stats.NoInterval, ...]
    """95 % interval of each prompt's score."""
    these: stats.Interval | stats.NoInterval
    """Of the mean over these prompts, for questions like these."""
    like_these: stats.Interval | stats.NoInterval
    """Of the mean over prompts like these, for questions like these."""
    missing: int
    """Documents without a number with one of the prompts."""
    bounds: tuple[float, float] | None
    """The least and greatest end of ``these`` and ``like_these``, whatever missing scores would be; ``None`` without
    missing scores, or if the range of the scores lacks an end."""

    def ranked(self) -> list[tuple[float, str]]:
        """Return scores and names of the prompts, the lowest first."""
        return sorted(zip(self.found.means, self.names, strict=True))

    def entry(self) -> PromptMeanEntry:
        """Return the entry of the results document."""
        ranked, split = self.ranked(), self.found.split
        spread = None if math.isnan(self.found.spread) else self.found.spread
        return PromptMeanEntry(
            n=self.found.n,
            missing=self.missing,
            missing_bounds=None if self.bounds is None else {"low": self.bounds[0], "high": self.bounds[1]},
            scores={
                name: {"score": score, **_ends(interval)}
                for name, score, interval in zip(self.names, self.found.means, self.intervals, strict=True)
            },
            mean=self.found.value,
            these=_ends(self.these),
            like_these=_ends(self.like_these),
            spread=PromptSpreadEntry(sd=spread, lowest=ranked[0][1], highest=ranked[-1][1]),
            variance={"questions": split.questions, "prompts": split.prompts, "rest": split.rest},
        )

    def line(self, task: str, metric: str) -> str:
        """Return the sentence below the table."""
        ranked, split = self.ranked(), self.found.split
        (lowest, worst), (highest, best) = ranked[0], ranked[-1]
        of = f", over the {self.found.n} documents that have a number with all of them" if self.missing else ""
        ends = ""
        if self.bounds is not None:
            low, high = self.bounds
            ends = f" ([{low:.4f}, {high:.4f}] whatever the others would score)"
        spread = "" if math.isnan(self.found.spread) else f"SD of the prompts {self.found.spread:.4f}, "
        return (
            f"{task}: {metric} over {len(self.names)} prompts{of}: mean {self.found.value:.4f}, CI95 "
            f"{_shown(self.these)} for these prompts, {_shown(self.like_these)} for prompts like these{ends}; {spread}"
            f"from {lowest:.4f} ({worst}) to {highest:.4f} ({best}); variance: questions {split.questions:.4g}, "
            f"prompts {split.prompts:.4g}, interaction and answers {split.rest:.4g}"
        )


class TaskPrompts(Struct, frozen=True):
    """The prompts of a task and its metrics over them."""

    variants: tuple[PromptVariant, ...]
    metrics: Mapping[str, PromptScores]
    """By ``METRIC,FILTER``."""

    def as_dict(self) -> dict[str, Any]:
        """Return the task's entry in the results document."""
        found: dict[str, Any] = plain(
            PromptVariantsEntry(
                variants={one.name: {"digest": one.digest, "changes": one.changes} for one in self.variants},
                metrics={row: plain(one.entry()) for row, one in self.metrics.items()},
            )
        )
        return found


def prompt_findings(results: Sequence[TaskResult], store: RunStore, has_own: bool) -> dict[str, TaskPrompts]:
    """Return, by task, its metrics over the variants of its prompt.

    Args:
        results: tasks and their variants.
        store: the scores.
        has_own: whether the task's own prompt counts as a variant.
    """
    below: dict[str, list[TaskResult]] = {}
    for result in results:
        if result.task.variant is not None:
            below.setdefault(result.task.control_of, []).append(result)
    by_name = {result.task.name: result for result in results}
    return {name: _of_task(by_name[name], varied, store, has_own) for name, varied in below.items()}


def _of_task(own: TaskResult, varied: Sequence[TaskResult], store: RunStore, has_own: bool) -> TaskPrompts:
    asked = [own, *varied] if has_own else list(varied)
    columns = [document_scores(result, store) for result in asked]
    variants = tuple(result.task.variant or OWN_VARIANT for result in asked)
    names = tuple(one.name for one in variants)
    rows = [row for row in columns[0] if all(row in found for found in columns)]
    stated = {one.name: one.score_range for one in own.task.metrics}
    metrics = {
        row: _scores(names, [found[row] for found in columns], own.plan.requested, stated.get(row.metric))
        for row in rows
    }
    return TaskPrompts(variants, {str(row): one for row, one in metrics.items() if one is not None})


def _scores(
    names: tuple[str, ...], prompts: Sequence[DocumentScores], requested: int, stated: ScoreRange | None
) -> PromptScores | None:
    """Return a metric over prompts; ``None`` for fewer than two documents.

    ``stated`` is the metric's range in the task. A mean over strata that the task computes itself does not carry it.
    """
    import numpy as np

    first = prompts[0]
    documents = sorted(set.intersection(*(set(one.by_document) for one in prompts)))
    if len(documents) < 2:
        return None
    matrix = np.array([[one.by_document[doc_id] for one in prompts] for doc_id in documents])
    within = first.metric.certainty.score_range
    strata = [first.strata[doc_id] for doc_id in documents] if first.strata else []
    if strata and stated is not None and matrix.min() in stated and matrix.max() in stated:
        within = stated
    weights = list(document_weights(documents, first.strata).values()) if strata else None
    spread_of = spread_over(first.named(documents), strata, within)
    found = prompt_mean(matrix, spread_of, weights)
    these, like_these = _intervals(found, within)
    missing, bounds = requested - len(documents), None
    if missing > 0:
        intervals = tuple(
            stats.score_interval(value, spread_of(column.tolist()), within)
            for value, column in zip(found.means, matrix.T, strict=True)
        )
        if not strata and math.isfinite(within.high - within.low):
            bounds = _bounds(prompts, requested)
    else:  # those of the table
        certain = [one.metric.certainty for one in prompts]
        intervals = tuple(one.interval or stats.NoInterval(one.no_interval) for one in certain)
    return PromptScores(names, found, intervals, these, like_these, missing, bounds)


def _intervals(
    found: PromptMean, within: ScoreRange
) -> tuple[stats.Interval | stats.NoInterval, stats.Interval | stats.NoInterval]:
    these = stats.score_interval(found.value, found.these, within)
    return these, found.like_these(these, within)


def _bounds(prompts: Sequence[DocumentScores], requested: int) -> tuple[float, float] | None:
    """Return the ends of the wider interval if missing scores were at one end of the range, then at the other."""
    import numpy as np

    first, within = prompts[0], prompts[0].metric.certainty.score_range
    documents = sorted(set().union(*(one.by_document for one in prompts)))
    ends = []
    for place, missing in enumerate((within.low, within.high)):
        rows = [[one.by_document.get(doc_id, missing) for one in prompts] for doc_id in documents]
        rows += [[missing] * len(prompts)] * (requested - len(documents))
        named = first.named(documents)
        clusters = None if named is None else [*named, *(f"missing {n}" for n in range(requested - len(documents)))]
        found = prompt_mean(np.array(rows), spread_over(clusters, (), within))
        shown = [one for one in _intervals(found, within) if isinstance(one, stats.Interval)]
        if not shown:
            return None
        ends.append((shown[-1].low, shown[-1].high)[place])
    return ends[0], ends[1]


def _ends(found: stats.Interval | stats.NoInterval) -> dict[str, Any]:
    if isinstance(found, stats.Interval):
        return {"low": found.low, "high": found.high, "method": found.method}
    return {"low": None, "high": None, "reason": found.reason}


def _shown(found: stats.Interval | stats.NoInterval) -> str:
    return f"[{found.low:.4f}, {found.high:.4f}]" if isinstance(found, stats.Interval) else f"none ({found.reason})"


def prompt_lines(findings: Mapping[str, TaskPrompts]) -> list[str]:
    """Return a sentence about the first metric of each task."""
    return [
        one.line(task, row.partition(",")[0])
        for task, found in findings.items()
        for row, one in list(found.metrics.items())[:1]
    ]


def prompts_text(document: Mapping[str, Any], task: str) -> str:
    """Format the part ``prompt_variants`` of a results document for one task; empty if it has none."""
    metrics = part_of(part_of(part_of(document, "prompt_variants"), task), "metrics")
    return "\n\n".join(_table(row, part_of(metrics, row)) for row in metrics)


def _table(row: str, entry: Mapping[str, Any]) -> str:
    scores = part_of(entry, "scores")
    rows = {name: part_of(scores, name) for name in scores}
    for name, ends in (("mean, these prompts", "these"), ("mean, prompts like these", "like_these")):
        rows[name] = {**part_of(entry, ends), "score": entry.get("mean")}
    columns = {
        "Prompt": [str(name) for name in rows],
        "Score": [_number(one.get("score")) for one in rows.values()],
        "CI95": [_text(one) for one in rows.values()],
    }
    return f"prompts: {row} ({entry.get('n')} documents)\n\n{named_table(columns, ('Score',))}".rstrip("\n")


def _text(entry: Mapping[str, Any]) -> str:
    low, high = (_number(entry.get(end)) for end in ("low", "high"))
    return f"[{low}, {high}]" if low and high else str(entry.get("reason", ""))


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) else ""
