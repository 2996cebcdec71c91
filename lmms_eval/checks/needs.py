"""Needs of scoring that this machine does not meet; nothing is downloaded and no task is built."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator


def absent_needs(words: Iterable[str]) -> Iterator[str]:
    """Say of each need (``tasks.facts.NEEDS``) that is not met what is missing and what to do."""
    from lmms_eval.api.outcome import NotEvaluated
    from lmms_eval.config.environment import environment_defaults

    words = tuple(words)
    if "judge" in words and not {"judge_model", "judge_base_url"} & environment_defaults(os.environ).keys():
        yield "judge: none is named; give --judge_model and --judge_base_url to the run"
    if "java" in words and shutil.which("java") is None:
        yield "java: not found on PATH; metrics that need it are not evaluated"
    if "nltk" in words:
        from lmms_eval.tasks._task_utils.linguistic import open_linguistics

        try:
            open_linguistics()
        except NotEvaluated as absent:
            yield f"nltk: {absent.reason}"
