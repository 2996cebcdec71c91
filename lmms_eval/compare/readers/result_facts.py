"""Facts about the numbers of samples, from a results document of ours or of the family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.compare.readers.building import finite
from lmms_eval.compare.readers.samples import SampleFacts
from lmms_eval.compare.runs import Column, EarlyStop, TaskRows
from lmms_eval.metrics.table import AGGREGATIONS, METRICS
from lmms_eval.stats import MANY
from lmms_eval.storage.json_files import read_json
from lmms_eval.utils.numbers import ScoreRange


@dataclass(frozen=True, slots=True)
class Results:
    """A results document, or nothing where there is none."""

    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file. Raises ``DataError`` if it cannot be read."""
        content = read_json(path)
        return cls(content if isinstance(content, dict) else {})

    @classmethod
    def of_record(cls, state: Mapping[str, Any]) -> Results:
        """Take from ``run.json`` what it tells of the numbers of a run that has no results yet."""
        told = state.get("tasks")
        if not isinstance(told, Mapping):
            return cls({})
        higher = {name: one.get("higher_is_better") for name, one in told.items() if isinstance(one, Mapping)}
        content = {"configs": told, "higher_is_better": higher, "early_stop": state.get("early_stops")}
        return cls({**content, "run_key": state.get("key")})

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
        if self.is_own:
            return str(self.content["run_key"])
        return repr((self.model, self._part("config").get("model_args"), sorted(self.tasks)))

    @property
    def model(self) -> str:
        """The model's name, or what else tells it from others."""
        named = (self.content.get(key) for key in ("model_name", "model_name_sanitized", "model_source"))
        return next((name for name in named if isinstance(name, str) and name), "")

    def facts(self, task: str) -> SampleFacts:
        """Tell how the samples of a task are to be read."""
        config = self._of(task, "configs")
        metrics = self._of(task, "higher_is_better")
        score_key, cluster_key = config.get("score_key"), config.get("cluster_key")
        return SampleFacts(
            score_key=score_key if isinstance(score_key, str) else "score",
            cluster_key=cluster_key if isinstance(cluster_key, str) else None,
            metrics=frozenset(metrics) | self._returned(task) if metrics else None,
        )

    def early_stop(self, task: str) -> EarlyStop | None:
        """Tell how a task ended before its documents did; ``None`` where it did not."""
        found = self._of(task, "early_stop")
        asked, of = found.get("asked"), found.get("of")
        if not isinstance(asked, int) or not isinstance(of, int):
            return None
        return EarlyStop(asked, of, str(found.get("order", "")), str(found.get("rule", "")))

    def complete(self, rows: TaskRows) -> TaskRows:
        """Add to the rows of a task what the document tells of its columns, and of its early end."""
        columns = {name: self._column(rows, column) for name, column in rows.columns.items()}
        return replace(rows, columns=columns, early_stop=self.early_stop(rows.task))

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Leaves by group that has a number of its own."""
        return {name: tuple(dict.fromkeys(self._leaves(name, ()))) for name in self._part("groups")}

    def _leaves(self, name: str, above: tuple[str, ...]) -> Iterator[str]:
        children = self._part("group_subtasks").get(name)
        if not isinstance(children, list) or not children or name in above:
            if name not in above and name in self.tasks:
                yield name
            return
        for child in children:
            yield from self._leaves(str(child), (*above, name))

    def _part(self, key: str) -> Mapping[str, Any]:
        part = self.content.get(key)
        return part if isinstance(part, Mapping) else {}

    def _of(self, task: str, key: str) -> Mapping[str, Any]:
        part = self._part(key).get(task)
        return part if isinstance(part, Mapping) else {}

    def _returned(self, task: str) -> frozenset[str]:
        """Metrics that documents had, declared or not."""
        counts = self._of(task, "outcomes").get("n")
        return frozenset(name.rpartition(",")[0] for name in counts) if isinstance(counts, Mapping) else frozenset()

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
        within = self._range(rows.task, column.metric)
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

    def _metric(self, task: str, metric: str) -> Mapping[str, Any]:
        """Return the entry of a metric in the task's list; one that states nothing where there is none."""
        entries = self._of(task, "configs").get("metric_list")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and entry.get("metric") == metric:
                return entry
        return {}

    def _aggregation(self, task: str, metric: str) -> str:
        known = METRICS.get(metric)
        return str(self._metric(task, metric).get("aggregation") or (known.aggregation if known else ""))

    def _is_mean(self, task: str, metric: str) -> bool:
        """Tell whether the aggregation takes a mean, as far as its name says."""
        name = self._aggregation(task, metric)
        return name not in AGGREGATIONS or AGGREGATIONS[name].is_mean

    def _can_be_mean(self, rows: TaskRows, column: Column) -> bool:
        """Tell whether the metric's aggregation takes a mean, or is a function that may do so.

        One that sees facts of a document beside its score may group by them, and equal the mean by chance where there
        are few documents or all scores are alike (the rule by which the run itself gave errors).
        """
        if self._aggregation(rows.task, column.metric) in AGGREGATIONS:
            return self._is_mean(rows.task, column.metric)
        facts = self.facts(rows.task)
        known = [row for row, score in enumerate(column.scores) if not math.isnan(score)]
        value = rows.raw(str(column), known[0]) if known else None
        if not isinstance(value, Mapping) or {facts.score_key, facts.cluster_key}.issuperset(value):
            return True
        return len(known) >= MANY and len(set(column.scores[known])) > 1

    def _range(self, task: str, metric: str) -> ScoreRange | None:
        """Return the range that the task states, else that of a built-in metric whose mean is taken."""
        if not self.is_own:  # the family has metrics of the same names on other scales
            return None
        stated = self._metric(task, metric).get("range")
        if isinstance(stated, list) and len(stated) == 2:
            low, high = finite(stated[0]), finite(stated[1])
            return ScoreRange(-math.inf if low is None else low, math.inf if high is None else high)
        known = METRICS.get(metric)
        return known.score_range if known and self._aggregation(task, metric) == "mean" else None


def scale_of(mean: float, whole: float) -> float:
    """Tell how many times the mean of the documents' scores a whole is: 1, 100 (percent), or 0 where it is no mean."""
    for scale in (1.0, 100.0):
        if math.isclose(whole, scale * mean, rel_tol=1e-9, abs_tol=1e-12):
            return scale
    return 0.0
