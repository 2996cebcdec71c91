"""Running scores have the same interval as the run itself."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from lmms_eval.engine.headline import RandomOrder
from lmms_eval.engine.looks import Looks, Sampling
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.stopping import TaskEnds
from lmms_eval.results.follow import AT_END, OUTSIDE, WAITS, RunningScore
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.results.records import PART

PLAN = plan_task(FakeTask(60, "quiz"), None, 0)
ORDER = RandomOrder(0).of(PLAN)


def scored(doc_id: int, number: float) -> dict[str, Any]:
    return {"task": "quiz", "doc_id": doc_id, "scores": [{"filter": "none", "metrics": {"acc": number}}]}


def failed(doc_id: int) -> dict[str, Any]:
    return {"task": "quiz", "doc_id": doc_id, "failed": "lost"}


@for_each("count", [1, 25, 59, 60])
def test_the_interval_is_the_one_that_the_run_itself_shows(count: int) -> None:
    looks = Looks([PLAN], Sampling(RandomOrder(0), shown=(PART,)), TaskEnds())
    score = RunningScore([PART], {"quiz": ORDER})
    for place, doc_id in enumerate(ORDER[:count]):
        record = failed(doc_id) if place % 9 == 4 else scored(doc_id, float(place % 3 == 0))
        looks.note(record)
        score.note(record)
    shown = score.shown()
    first = "" if count == 60 else f" over the first {count}"
    assert looks.shown() == f"score {shown.value:.4f} [{shown.low:.4f}, {shown.high:.4f}]{first}"
    assert (shown.n, shown.of, shown.reason) == (count, 60, "")


def test_the_number_of_several_tasks_is_the_runs_own() -> None:
    plans = [PLAN, plan_task(FakeTask(30, "other"), None, 0)]
    parts = (structs.replace(PART, weight=60.0), structs.replace(PART, task="other", weight=30.0))
    looks = Looks(plans, Sampling(RandomOrder(0), shown=parts), TaskEnds())
    orders = {plan.task.name: RandomOrder(0).of(plan) for plan in plans}
    score = RunningScore(parts, {**orders, "third": [1, 2]})
    for unit in list(RandomOrder(0).units(plans))[:45]:
        record = {**scored(unit.doc_id, float(unit.doc_id % 2)), "task": unit.task.name}
        looks.note(record)
        score.note(record)
    shown = score.shown()
    assert looks.shown() == f"score {shown.value:.4f} [{shown.low:.4f}, {shown.high:.4f}] over the first 45"
    assert shown.of == 90


def test_what_is_finished_out_of_turn_waits() -> None:
    score = RunningScore([PART], {"quiz": ORDER})
    for doc_id in ORDER[1:20]:
        score.note(scored(doc_id, 1.0))
    assert (score.shown().n, score.shown().reason) == (0, WAITS)
    score.note(scored(ORDER[0], 0.0))
    assert (score.shown().n, score.shown().value) == (20, 0.95)


def test_a_document_that_is_asked_again_counts_by_its_new_score() -> None:
    score = RunningScore([PART], {"quiz": ORDER})
    for doc_id in ORDER:
        score.note(failed(doc_id) if doc_id == ORDER[3] else scored(doc_id, 1.0))
    assert score.shown().low < 0.99
    score.note(scored(ORDER[3], 1.0))
    other = RunningScore([PART], {"quiz": ORDER})
    for doc_id in ORDER:
        other.note(scored(doc_id, 1.0))
    assert score.shown() == other.shown()


def test_without_an_interval_there_is_the_reason() -> None:
    score = RunningScore([PART], {"quiz": ORDER})
    score.note(scored(ORDER[0], 7.0))
    assert (score.shown().low, score.shown().reason) == (None, OUTSIDE)
    clustered = RunningScore([structs.replace(PART, is_clustered=True)], {"quiz": ORDER})
    for doc_id in ORDER:
        clustered.note(scored(doc_id, 1.0))
    assert (clustered.shown().value, clustered.shown().low, clustered.shown().reason) == (1.0, None, AT_END)
