"""MEGA-Bench as a task whose options are checked when it is built, before any data or model is loaded."""

from __future__ import annotations

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.megabench.settings import Settings
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask


class MegaBenchTask(YamlTask):
    """A task with checked options, so that a misspelt one ends the command instead of failing every document.

    Raises ``TaskError`` if there is no such option, or a value does not fit.
    """

    def __init__(self, source: TaskSource, options: TaskOptions) -> None:
        super().__init__(source, options)
        Settings.of(self.prompts.kwargs)
