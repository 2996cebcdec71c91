"""Journals of finished documents as a run leaves them, made without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.request import Usage
from lmms_eval.api.task import Answer, MetricDefinition, PipelineScore, ScoredDoc
from lmms_eval.engine.aggregate import TaskResult, aggregate_task
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.records import answer_record, scored_part
from lmms_eval.engine.store import RunStore
from tests.engine.fakes import FakeTask

KEY = "scoring"


def metric(name: str, aggregation: Callable[..., Any], registered: str | None = None) -> MetricDefinition:
    return MetricDefinition(name, aggregation, registered, True)


def answer(text: Any = "said", **facts: Any) -> Answer:
    return Answer(text, **{"usage": (Usage(3, 2, None),), "finish_reason": "stop", "input": "asked", **facts})


def finished(task: FakeTask, doc_id: int, answers: Sequence[Answer]) -> dict[str, Any]:
    return {"task": task.name, "doc_id": doc_id, "answers": [answer_record(one) for one in answers]}


def scored(task: FakeTask, doc_id: int, *scores: PipelineScore, answers: Sequence[Answer] = ()) -> dict[str, Any]:
    """The journal record of a document."""
    document = ScoredDoc("right", {"question": f"question {doc_id}"}, f"{doc_id:064x}", tuple(scores))
    return {**finished(task, doc_id, answers or (answer(),)), **scored_part(document)}


def failed(task: FakeTask, doc_id: int, reason: str) -> dict[str, Any]:
    return {**finished(task, doc_id, (Answer(None, error=reason, input="asked"),)), "failed": reason}


def values_of(task: FakeTask, name: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    """One document per value of one metric."""
    return [scored(task, number, PipelineScore("none", "said", {name: value})) for number, value in enumerate(values)]


def store_of(folder: Path, *records: Mapping[str, Any]) -> RunStore:
    store = RunStore(folder, KEY)
    for record in records:
        store.add_score(dict(record))
    return store


def aggregated(
    folder: Path, task: FakeTask, records: Sequence[Mapping[str, Any]], not_asked: str = "", **options: Any
) -> TaskResult:
    """Aggregate a task over these documents."""
    store = store_of(folder, *records)
    try:
        return aggregate_task(plan_task(task, None, 0), store, AggregateOptions(**options), not_asked)
    finally:
        store.close()
