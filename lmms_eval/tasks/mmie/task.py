"""MMIE as a task with a metric that is named by the judge's texts."""

from __future__ import annotations

from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.mmie.judge_prompts import prompts
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask

PLAIN = "mmie_judge"
"""The metric's name in the YAML files."""


class MmieTask(YamlTask):
    """A task with the metric ``mmie_score`` for the official texts, recognised by fingerprint, else ``mmie_judge``.

    Raises ``DataError`` if the file of ``--judge_prompts`` cannot be used.
    """

    def __init__(self, source: TaskSource, options: TaskOptions) -> None:
        texts = prompts(options.run_options.get("judge_prompts", ""))
        entries = []
        for entry in source.raw.get("metric_list") or ():
            name = str(entry.get("metric", ""))
            entries.append(
                {**entry, "metric": texts.metric + name.removeprefix(PLAIN) if name.startswith(PLAIN) else name}
            )
        super().__init__(replace(source, raw={**source.raw, "metric_list": entries}), options)

    def load(self) -> None:
        """Load the documents, and log once how this score differs from lmms-eval's of the same name."""
        is_new = self._documents is None
        super().load()
        if is_new:
            logger.info(
                "{}: scores of a judge from 0 to 6, the published kind of number; the token overlap that lmms-eval "
                "calls mmie is the task mmie_f1",
                self.name,
            )
