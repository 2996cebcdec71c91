"""Facts about the numbers of samples, from a results document of ours or of the family."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.compare.readers.samples import SampleFacts
from lmms_eval.compare.runs import Column, TaskRows
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.results.run_reader.document import (
    aggregation_of,
    early_stop_of,
    group_leaves,
    metric_range,
    model_of,
    part_of,
    read_document,
    record_facts,
    sample_keys,
)
from lmms_eval.results.run_reader.finding import run_mark
from lmms_eval.results.run_reader.sample import finite
from lmms_eval.stats import MANY
from lmms_eval.utils.numbers import ScoreRange


@dataclass(frozen=True, slots=True)
class Results:
    """A results document, or nothing where there is none."""

    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file. Raises ``DataError`` if it cannot be read."""
        content = read_document(path)
        return cls(content if isinstance(content, dict) else {})

    @classmethod
    def of_record(cls, state: Mapping[str, Any]) -> Results:
        """Take from ``run.json`` what it tells of the numbers of a run that has no results yet."""
        return cls(record_facts(state))

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self._part("configs"))

    @property
    def is_own(self) -> bool:
        """Written by this project, which states more than the family does."""
        return "run_key" in self.content

    @property
    def run_key(self) -> str:
        """Mark of this run among others in its folder: a hash, else the model's arguments."""
        return run_mark(self.content)

    @property
    def model(self) -> str:
        """The model's name, or what else tells it from others."""
        return model_of(self.content)

    def facts(self, task: str) -> SampleFacts:
        """Tell how the samples of a task are to be read."""
        keys = sample_keys(self.content, task)
        return SampleFacts(
            score_key=keys.score_key,
            cluster_key=keys.cluster_key,
            metrics=frozenset(keys.metrics) if keys.metrics else None,
        )

    def complete(self, rows: TaskRows) -> TaskRows:
        """Add to the rows of a task what the document tells of its columns, and of its early end."""
        columns = {name: self._column(rows, column) for name, column in rows.columns.items()}
        return replace(rows, columns=columns, early_stop=early_stop_of(self.content, rows.task))

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Leaves by group that has a number of its own."""
        return group_leaves(self.content)

    def _part(self, key: str) -> Mapping[str, Any]:
        return part_of(self.content, key)

    def _of(self, task: str, key: str) -> Mapping[str, Any]:
        return part_of(self.content, key, task)

    def _column(self, rows: TaskRows, column: Column) -> Column:
        import numpy as np

        known = column.scores[~np.isnan(column.scores)]
        reported = finite(self._of(rows.task, "results").get(str(column)))
        # A metric whose aggregation only writes a file has no number to be compared.
        wrote = self._of(rows.task, "outcomes").get("wrote_files")
        scale = 0.0 if isinstance(wrote, list) and str(column) in wrote else 1.0
        if reported is not None:
            can_be_mean = self._can_be_mean(rows, column)
            scale = scale_of(math.fsum(known) / len(known), reported) if can_be_mean and len(known) else 0.0
        elif self.is_own and not self._is_mean(rows.task, column.metric):
            scale = 0.0
        within = metric_range(self.content, rows.task, column.metric)
        if within is not None and scale > 0:
            within = ScoreRange(within.low / scale, within.high / scale)
        if within is not None and len(known) and not (known.min() in within and known.max() in within):
            within = None  # of the whole, not of its documents
        higher = self._of(rows.task, "higher_is_better").get(column.metric)
        return replace(
            column,
            score_range=within,
            higher_is_better=higher if isinstance(higher, bool) else None,
            reported=reported,
            scale=scale,
        )

    def _is_mean(self, task: str, metric: str) -> bool:
        """Tell whether the aggregation takes a mean, as far as its name says."""
        name = aggregation_of(self.content, task, metric)
        return name not in AGGREGATIONS or AGGREGATIONS[name].is_mean

    def _can_be_mean(self, rows: TaskRows, column: Column) -> bool:
        """Tell whether the metric's aggregation takes a mean, or is a function that may do so.

        One that sees facts of a document beside its score may group by them, and equal the mean by chance where there
        are few documents or all scores are alike (the rule by which the run itself gave errors).
        """
        if aggregation_of(self.content, rows.task, column.metric) in AGGREGATIONS:
            return self._is_mean(rows.task, column.metric)
        facts = self.facts(rows.task)
        known = [row for row, score in enumerate(column.scores) if not math.isnan(score)]
        value = rows.raw(str(column), known[0]) if known else None
        if not isinstance(value, Mapping) or {facts.score_key, facts.cluster_key}.issuperset(value):
            return True
        return len(known) >= MANY and len(set(column.scores[known])) > 1


def scale_of(mean: float, whole: float) -> float:
    """Tell how many times the mean of the documents' scores a whole is: 1, 100 (percent), or 0 where it is no mean."""
    for scale in (1.0, 100.0):
        if math.isclose(whole, scale * mean, rel_tol=1e-9, abs_tol=1e-12):
            return scale
    return 0.0
