"""The steps of the check of one task or group, in the process that runs its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.api.task import Task
from lmms_eval.checks.findings import Finding
from lmms_eval.checks.reasons import finding
from lmms_eval.errors import UnknownNameError
from lmms_eval.tasks.selection import build_from_spec
from lmms_eval.tasks.yaml.loader import YamlReader

_PART_OF_METRICS = ("aggregation", "metric", "filter")
"""Kinds of names whose absence is a fault of ``metric_list`` or ``filter_list``."""
Begin = Callable[[str], None]
"""Called with the name of each step as it begins."""


def check_task(spec: Mapping[str, Any], documents: int, reader: YamlReader, begin: Begin) -> list[Finding]:
    """Build a task, open its data, build the prompts of its first documents, score what deserves full marks and what
    deserves nothing. The steps end at the first that cannot be done.

    Args:
        spec: the task, as ``Task.spec`` describes it.
        documents: number of its first documents to try.
        reader: keeps YAML files that several tasks share.
        begin: is told the step.
    """
    begin("functions")
    try:
        task = build_from_spec(spec, reader)
    except UnknownNameError as error:
        return [finding("metrics" if error.kind in _PART_OF_METRICS else "functions", error)]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the task's modules are imported here
        return [finding("functions", error)]
    found = [Finding("functions")]
    for step, work in (("data", _load), ("prompt", _build_prompts), ("gold", _score)):
        begin(step)
        try:
            made = work(task, documents)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the task's own code runs here
            made = [finding(step, error)]
        found += made
        if any(each.status in ("failed", "skipped") for each in made):
            break
    return found


def _load(task: Task, _documents: int) -> list[Finding]:
    task.load()
    return [Finding("data")]


def _build_prompts(task: Task, documents: int) -> list[Finding]:
    from lmms_eval.models.media_check import open_media

    for doc_id in range(min(documents, len(task))):
        for request in task.exchange(doc_id, 0).open():
            open_media(request.build_messages())
    return [Finding("prompt")]


def _score(task: Task, documents: int) -> list[Finding]:
    from lmms_eval.checks.marks import marks  # most tasks of a large check have no data: the engine is not needed

    return marks(task, documents)
