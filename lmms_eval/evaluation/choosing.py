"""The documents that ``--ids`` and ``--where`` choose, before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loguru import logger

from lmms_eval.api.task import Selection, Task
from lmms_eval.config import RunConfig
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.loading import without
from lmms_eval.results.run_reader.columns import SAMPLE_ONLY
from lmms_eval.tasks.data.documents import plain
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.document_ids import DocumentIds, parse_ids
from lmms_eval.utils.where import Where, parse_where

Chosen = Mapping[str, Sequence[int]]
"""Documents by task, rising; a task that is not in it has all."""
_SHOWN = 5


def choose_documents(config: RunConfig, selection: Selection) -> tuple[Selection, Chosen]:
    """Choose the documents of each task; tasks of which none is chosen are left out.

    Raises:
        UsageError: a number beyond a task's documents, an unknown task or column, or no document at all.
    """
    ids = None if config.ids is None else parse_ids(config.ids)
    where = None if config.where is None else parse_where(config.where)
    if ids is not None and (unknown := set(ids.by_task) - {task.name for task in selection.tasks}):
        raise UsageError(f"--ids: {', '.join(sorted(unknown))}: not among the tasks of this run")
    chosen = {task.name: _of_task(task, ids, where) for task in selection.tasks}
    empty = {name: "" for name, doc_ids in chosen.items() if not doc_ids}
    if len(empty) == len(chosen):
        raise UsageError("--ids and --where choose no document of any task")
    if empty:
        shown = ", ".join(list(empty)[:_SHOWN]) + (", ..." if len(empty) > _SHOWN else "")
        logger.warning("{} tasks are left out, of which no document is chosen: {}", len(empty), shown)
    return without(selection, empty), chosen


def _of_task(task: Task, ids: DocumentIds | None, where: Where | None) -> Sequence[int]:
    total = len(task)
    doc_ids: Sequence[int] = range(total)
    if ids is not None:
        wanted = ids.of(task.name)
        if wanted.pairs and wanted.pairs[-1][1] >= total:
            raise UsageError(f"--ids: task {task.name!r} has no document {wanted.pairs[-1][1]}: it has {total}")
        doc_ids = list(wanted.among(total))
    return doc_ids if where is None else _fitting(task, doc_ids, where)


def _fitting(task: Task, doc_ids: Sequence[int], where: Where) -> list[int]:
    """Documents whose columns fit; none of them is decoded."""
    if not isinstance(task, YamlTask):
        raise UsageError(f"--where: the documents of task {task.name!r} have no columns that could be looked at")
    documents = task.documents
    places = {name: name for name in documents.text_columns}
    places |= {f"doc.{name}": name for name in documents.text_columns}
    answered = {*SAMPLE_ONLY, *(metric.name for metric in task.metrics)}
    where.check(
        {*places, "task", "doc_id"} - answered,
        {name: "known of answered samples alone: no run can choose by it (show and export can)" for name in answered},
    )
    needed = tuple(dict.fromkeys(places[name] for name in where.columns if name in places))

    def fits(doc_id: int) -> bool:
        row: Mapping[str, Any] = documents.source.row(doc_id, needed) if needed else {}

        def lookup(name: str) -> Any:
            if name in ("task", "doc_id"):
                return task.name if name == "task" else doc_id
            return plain(row.get(places[name]))

        return where.holds(lookup)

    return [doc_id for doc_id in doc_ids if fits(doc_id)]
