"""MMIE as a task: the metric carries the name that the judge's texts earn it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loguru import logger

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.mmie.judge_prompts import JudgePrompts
from lmms_eval.tasks.mmie.judge_questions import prompts
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask

PLAIN = "mmie_judge"
"""The metric's name in the YAML files."""


class MmieTask(YamlTask):
    """``mmie_score`` only with the official texts, whose fingerprints are known; any other score is ``mmie_judge``.

    Raises:
        DataError: the file of ``--judge_prompts`` cannot be used.
    """

    def __init__(self, source: TaskSource, options: TaskOptions) -> None:
        texts = prompts(options.run_options.get("judge_prompts", ""))
        raw = {**source.raw, "metric_list": [_named(entry, texts) for entry in source.raw.get("metric_list") or ()]}
        super().__init__(replace(source, raw=raw), options)

    def load(self) -> None:
        """As every task; says once what this score is not."""
        is_new = self._documents is None
        super().load()
        if is_new:
            logger.info(
                "{}: scores of a judge from 0 to 6, the published kind of number; the token overlap that lmms-eval "
                "calls mmie is the task mmie_f1",
                self.name,
            )


def _named(entry: Mapping[str, Any], texts: JudgePrompts) -> dict[str, Any]:
    metric = str(entry.get("metric", ""))
    return {**entry, "metric": texts.metric + metric.removeprefix(PLAIN) if metric.startswith(PLAIN) else metric}
