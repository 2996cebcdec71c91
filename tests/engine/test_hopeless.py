from __future__ import annotations

from typing import Any

from lmms_eval.engine.stopping import DOCUMENTS, HopelessTasks, TaskEnds
from tests.cases import for_each


def failed(number: int, reason: str = "process_results raised KeyError: 'column {}'", **answer: Any) -> dict[str, Any]:
    return {"task": "t", "doc_id": number, "answers": [{"value": "a", **answer}], "failed": reason.format(number)}


def scored(number: int) -> dict[str, Any]:
    return {"task": "t", "doc_id": number, "answers": [{"value": "a"}], "scores": []}


def reason_after(*records: dict[str, Any]) -> str:
    ends = TaskEnds()
    tasks = HopelessTasks(ends)
    for record in records:
        tasks.note(record)
    return ends.reason("t")


def test_the_same_failure_of_every_first_document() -> None:
    records = [failed(number) for number in range(DOCUMENTS)]
    assert not reason_after(*records[:-1])
    assert reason_after(*records) == (
        f"not one of its first {DOCUMENTS} documents could be scored: process_results raised KeyError: 'column 15'"
    )


@for_each("at", [0, 7, DOCUMENTS - 1])
def test_one_score_is_hope(at: int) -> None:
    records = [failed(number) for number in range(DOCUMENTS - 1)]
    assert not reason_after(*records[:at], scored(99), *records[at:], failed(98), failed(97))


def test_different_failures_are_no_sign() -> None:
    assert not reason_after(*(failed(number, "A" if number % 2 else "B") for number in range(3 * DOCUMENTS)))


def test_failures_of_the_model_do_not_count() -> None:
    assert not reason_after(*(failed(number, "timeout: no answer", error="timeout") for number in range(40)))
    other = [failed(number) for number in range(DOCUMENTS)]
    assert reason_after(failed(90, "timeout: no answer", error="timeout"), *other)


def test_tasks_are_told_apart() -> None:
    ends = TaskEnds()
    tasks = HopelessTasks(ends)
    for number in range(DOCUMENTS):
        tasks.note({**failed(number), "task": "one"})
        tasks.note({**scored(number), "task": "other"})
    assert ends.reason("one") and not ends.reason("other")
