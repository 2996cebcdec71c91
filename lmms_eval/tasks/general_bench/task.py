"""A task of General-Bench. The ``type`` in its annotation determines the longest answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.general_bench.facts import metrics
from lmms_eval.tasks.general_bench.prompts.questions import answer_limit
from lmms_eval.tasks.general_bench.settings import Settings
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask

JUDGED = "gpt_score"
"""The metric that needs a judge."""


class GeneralBenchTask(YamlTask):
    """A task with the range and direction of its metric. Only a task with a judged metric has questions to a judge."""

    def __init__(self, source: TaskSource, options: TaskOptions) -> None:
        entries = [_directed(entry) for entry in source.raw.get("metric_list") or ()]
        raw = {**source.raw, "metric_list": entries}
        if JUDGED not in (entry["metric"] for entry in entries):
            raw.pop("doc_to_judge", None)
        super().__init__(replace(source, raw=raw), options)

    def load(self) -> None:
        is_new = self._documents is None
        super().load()
        if is_new and self.source.documents is None and "max_new_tokens" not in self.options.gen_kwargs:
            views = (self.documents.text_view(place) for place in range(len(self.documents)))
            told = next((doc for doc in views if not doc["problem"]), self.documents.text_view(0))
            limit = answer_limit(told, Settings.of(self.prompts.kwargs))
            self.generation = {**self.generation, "max_new_tokens": limit}


def _directed(entry: Mapping[str, Any]) -> dict[str, Any]:
    metric = metrics().get(str(entry["metric"]))
    if metric is None:
        return dict(entry)
    ends = [end if math.isfinite(end) else None for end in (metric.low, metric.high)]
    return {**entry, "higher_is_better": metric.higher_is_better, "range": ends}
