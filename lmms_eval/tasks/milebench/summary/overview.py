"""The content of the report on one variant of MileBench."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.tasks._task_utils.missing import NumberBounds, bounds_dict
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.scoring.model import LEVEL_RANGES
from lmms_eval.tasks.milebench.summary.dataset import DatasetSummary, Pair
from lmms_eval.tasks.milebench.summary.figures import (
    PERCENT,
    Figure,
    FigureEntry,
    ScoredDataset,
    dataset_entry,
    group_entries,
    missing_bounds,
    overall_entries,
)
from lmms_eval.tasks.milebench.summary.image_counts import BINS, CountPool, NeedleGrid, needle_grids, pools, scopes


class Overview(Struct, frozen=True):
    """The numbers of one variant."""

    variant: str
    """Empty for the benchmark's usual data and prompts."""
    overall: tuple[FigureEntry, ...]
    """Realistic, Diagnostic, Needles only."""
    groups: Mapping[str, FigureEntry]
    """Groups by label that have a score or a data set in the run."""
    datasets: Mapping[str, FigureEntry]
    """Data sets of the run by name, in the benchmark's order."""
    summaries: Mapping[str, DatasetSummary]
    levels: tuple[CountPool, ...]
    curve: tuple[CountPool, ...]
    grids: tuple[NeedleGrid, ...]
    bounds: Mapping[str, NumberBounds]
    """Of official scores of overall figures and groups with documents that have no score."""

    @property
    def is_partial(self) -> bool:
        return any(entry.gaps for entry in self.overall)

    @property
    def no_answer(self) -> int:
        """Empty answers."""
        return sum(summary.no_answer for summary in self.summaries.values())

    def steps(self, is_fixed: bool) -> Mapping[str, int]:
        """Numbers of samples that each rule decided, the most frequent first."""
        total: Counter[str] = Counter()
        for summary in self.summaries.values():
            total.update(summary.fixed_steps if is_fixed else summary.steps)
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))

    def as_dict(self) -> dict[str, Any]:
        """The content of ``report.json``: scores in percent (README.md of this folder describes it)."""
        return {
            "variant": self.variant,
            "is_partial": self.is_partial,
            "overall": {entry.name: _entry(entry) for entry in self.overall},
            "groups": {label: _entry(entry) for label, entry in self.groups.items()},
            "datasets": {name: {**_entry(entry), **self._counts(name)} for name, entry in self.datasets.items()},
            "image_levels": [_pool(pool, "level") for pool in self.levels],
            "by_images": [_pool(pool, "images") for pool in self.curve],
            "needle_grids": {
                grid.dataset: {
                    "depths": list(grid.depths),
                    "lengths": list(grid.lengths),
                    "official": [list(row) for row in grid.cells],
                    "intervals": [[None if one is None else list(one.ends) for one in row] for row in grid.figures],
                    "samples": [list(row) for row in grid.counts],
                }
                for grid in self.grids
            },
            "no_answer": self.no_answer,
            "steps": self.steps(is_fixed=False),
            "fixed_steps": self.steps(is_fixed=True),
            **({"missing": bounds_dict(self.bounds)} if self.bounds else {}),
        }

    def _counts(self, name: str) -> dict[str, Any]:
        summary = self.summaries.get(name)
        if summary is None:
            return {}
        content: dict[str, Any] = {"metric": summary.metric, "no_answer": summary.no_answer}
        if summary.sequence.count:
            content["sequence_rouge_l"] = PERCENT * summary.sequence.mean
        return {**content, "steps": dict(summary.steps), "fixed_steps": dict(summary.fixed_steps)}


def build(found: Sequence[ScoredDataset], variant: str) -> Overview:
    """Make the overview of the data sets of a run, given in any order."""
    known = datasets()
    order = list(known)
    ordered = sorted(found, key=lambda scored: order.index(scored.facts.name))
    entries = {scored.facts.name: dataset_entry(scored) for scored in ordered}
    groups = group_entries(known, entries)
    summaries = {scored.facts.name: scored.summary for scored in ordered if scored.summary is not None}
    members = scopes(list(summaries.values()))
    present = {scored.facts.label for scored in ordered}
    return Overview(
        variant=variant,
        overall=tuple(overall_entries(known, groups)),
        groups={label: entry for label, entry in groups.items() if label in present},
        datasets=entries,
        summaries=summaries,
        levels=tuple(pools(members, LEVEL_RANGES)),
        curve=tuple(pools(members, BINS)),
        grids=tuple(needle_grids(list(summaries.values()))),
        bounds=missing_bounds(known, entries, {one.facts.name: one.missing for one in ordered}),
    )


def _entry(entry: FigureEntry) -> dict[str, Any]:
    """Without a gap ``official`` and ``fixed`` hold the scores; else they are ``null`` and ``partial`` holds them."""
    scores = None if entry.scores is None else _pair(entry.scores)
    content: dict[str, Any] = {
        "title": entry.title,
        "official": None if scores is None or entry.gaps else scores["official"],
        "fixed": None if scores is None or entry.gaps else scores["fixed"],
        "samples": entry.samples,
        "published_samples": entry.published,
    }
    if entry.gaps:
        content |= {"partial": scores, "gaps": list(entry.gaps)}
    return content


def _pair(pair: Pair[Figure]) -> dict[str, dict[str, float | None]]:
    return {"official": pair.official.as_dict(), "fixed": pair.fixed.as_dict()}


def _pool(pool: CountPool, name: str) -> dict[str, Any]:
    return {
        "scope": pool.scope,
        name: pool.label,
        "samples": pool.samples,
        "datasets": pool.datasets,
        "mean_images": pool.images,
        "by_sample": _pair(pool.by_sample),
        "by_dataset": _pair(pool.by_dataset),
    }
