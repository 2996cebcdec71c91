"""Stopping tasks early, by the first documents of a random order."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lmms_eval import stats
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import PipelineScore, Selection
from lmms_eval.engine.evaluate import EngineOptions, evaluate
from lmms_eval.engine.headline import LEAST, Anchors, HeadlinePart, Prefix, RandomOrder, Statement, excludes, half_width
from lmms_eval.engine.looks import LookExchange, Looks, Sampling, Stop, number_of
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import TaskPlan, plan_task
from lmms_eval.engine.stopping import TaskEnds
from lmms_eval.engine.store import RunStore
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.engine.fakes import FakeModel, FakeTask
from tests.engine.journaled import KEY, failed, scored
from tests.engine.test_team import team_of

ORDER = RandomOrder(0)
SHARE = ScoreRange(0.0, 1.0)
WIDE = half_width(0.15)


def part(name: str = "fake", **more: Any) -> HeadlinePart:
    return HeadlinePart(name, "acc", "none", SHARE, **more)


def stop(statement: Statement = WIDE, *parts: HeadlinePart, name: str = "fake") -> Stop:
    return Stop(name, parts or (part(),), statement, "the rule")


def value_of(doc_id: int) -> float:
    return float(doc_id % 3 > 0)


def record_of(task: FakeTask, doc_id: int, value: float | None = None) -> dict[str, Any]:
    return scored(task, doc_id, PipelineScore("none", "said", {"acc": value_of(doc_id) if value is None else value}))


def decided(plan: TaskPlan, statement: Statement) -> int:
    """Number of documents when they are added one by one."""
    prefix = Prefix([part()], {"fake": ORDER.of(plan)})
    assert prefix.advance(lambda _, doc_id: value_of(doc_id), statement)
    return prefix.length


def test_the_first_look_at_which_the_statement_holds() -> None:
    plan = plan_task(FakeTask(150), None, 0)
    length = decided(plan, WIDE)
    assert LEAST < length < 120
    prefix = Prefix([part()], {"fake": ORDER.of(plan)})
    known = set(ORDER.of(plan)[: length - 1])

    def find(_: HeadlinePart, doc_id: int) -> float:
        if doc_id not in known:
            raise KeyError(doc_id)
        return value_of(doc_id)

    assert not prefix.advance(find, WIDE)
    interval = prefix.interval()
    assert (interval.high - interval.low) / 2 > 0.15


def test_documents_that_come_at_once_decide_as_one_after_the_other() -> None:
    order = ORDER.of(plan_task(FakeTask(900), None, 0))
    anchors = Anchors(("a",), {doc_id: 0.3 + 0.4 * (doc_id % 2) for doc_id in range(900)}, 900)
    for one in (part(), part(strata={doc_id: str(doc_id % 2) for doc_id in range(900)}), part(anchors=anchors)):
        at_once, single = (Prefix([one], {"fake": order}) for _ in range(2))
        assert at_once.advance(lambda _, doc_id: value_of(doc_id), half_width(0.06))
        known: set[int] = set()

        def find(_: HeadlinePart, doc_id: int, known: set[int] = known) -> float:
            if doc_id not in known:
                raise KeyError(doc_id)
            return value_of(doc_id)

        for doc_id in order:
            known.add(doc_id)
            if single.advance(find, half_width(0.06)):
                break
        assert (at_once.length, at_once.taken, at_once.value()) == (single.length, single.taken, single.value())
        assert single.interval().low == pytest.approx(at_once.interval().low, abs=1e-12)
        assert single.interval().high == pytest.approx(at_once.interval().high, abs=1e-12)


def test_few_documents_decide_nothing() -> None:
    plan = plan_task(FakeTask(60), None, 0)
    assert decided(plan, half_width(1.0)) == LEAST


@for_each(("number", "is_excluded"), [(0.1, True), (0.99, True), (2 / 3, False)])
def test_a_number_is_excluded(number: float, is_excluded: bool) -> None:
    prefix = Prefix([part()], {"fake": ORDER.of(plan_task(FakeTask(300), None, 0))})
    assert prefix.advance(lambda _, doc_id: value_of(doc_id), excludes(number)) == is_excluded
    assert prefix.is_whole != is_excluded


def test_documents_that_the_baseline_lacks_count_with_every_number_it_may_have() -> None:
    order = {"fake": ORDER.of(plan_task(FakeTask(200), None, 0))}
    whole = Prefix([part(baseline=dict.fromkeys(range(200), 0.0))], order)
    half = Prefix([part(baseline=dict.fromkeys(range(0, 200, 2), 0.0))], order)
    for prefix in (whole, half):
        assert prefix.advance(lambda _, doc_id: value_of(doc_id), excludes(0.0))
        assert LEAST <= prefix.counted == prefix.length < 200
    assert whole.length < half.length and whole.missing == 0 < half.missing


def test_a_baseline_that_stopped_early_does_not_stand_for_the_whole_list() -> None:
    """Equal answers on the first 60 of 200 documents say nothing of the other 140."""
    order = ORDER.of(plan_task(FakeTask(200), None, 0))
    baseline = {doc_id: 0.0 for doc_id in order[:60]}
    prefix = Prefix([part(baseline=baseline)], {"fake": order})
    assert not prefix.advance(lambda _, doc_id: float(order.index(doc_id) == 5), excludes(0.0))
    interval = prefix.interval()
    assert interval.low < -0.05 and interval.high == pytest.approx(1 / 200)


def test_a_number_outside_of_the_range_decides_nothing() -> None:
    prefix = Prefix([part()], {"fake": range(100)})
    assert not prefix.advance(lambda _, doc_id: 7.0 if doc_id == 3 else 1.0, half_width(0.5))
    assert prefix.lies_outside and prefix.shown_interval() is None


def test_a_number_between_the_ends_is_outside_only_of_a_range_that_is_assumed() -> None:
    for is_binary, number, lies_outside in ((False, 0.5, False), (True, 0.5, True), (True, 0.0, False)):
        prefix = Prefix([part(is_binary=is_binary)], {"fake": range(20)})
        prefix.advance(lambda _, doc_id, number=number: number if doc_id == 3 else 1.0)
        assert prefix.lies_outside == lies_outside, (is_binary, number)


def test_documents_without_a_number_count_from_end_to_end() -> None:
    known, unknown = (Prefix([part()], {"fake": range(100)}) for _ in range(2))
    known.advance(lambda _, doc_id: value_of(doc_id))
    unknown.advance(lambda _, doc_id: None if doc_id < 20 else value_of(doc_id))
    wide, narrow = unknown.interval(), known.interval()
    assert wide.high - wide.low == pytest.approx(0.2, abs=1e-6)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


def test_tasks_of_different_ranges_are_weighted_in_their_units() -> None:
    parts = [
        HeadlinePart("a", "acc", "none", SHARE, weight=3.0),
        HeadlinePart("b", "acc", "none", ScoreRange(1.0, 5.0), weight=1.0),
    ]
    prefix = Prefix(parts, {"a": range(40), "b": range(40)})
    prefix.advance(lambda one, doc_id: value_of(doc_id) if one.task == "a" else 1.0 + doc_id % 5)
    mean = (3 * 26 / 40 + 3.0) / 4
    assert prefix.value() == pytest.approx(mean)
    assert prefix.interval().low <= mean <= prefix.interval().high
    percent = Prefix([structs.replace(one, in_percent=True) for one in parts], {"a": range(40), "b": range(40)})
    percent.advance(lambda one, doc_id: value_of(doc_id) if one.task == "a" else 1.0 + doc_id % 5)
    assert percent.value() == pytest.approx((3 * 65.0 + 50.0) / 4)


def test_a_macro_mean_weighs_strata_alike_and_another_mean_documents() -> None:
    strata = {doc_id: "small" if doc_id % 5 == 0 else "large" for doc_id in range(200)}
    right = {doc_id: float(doc_id % 10 < 5) if strata[doc_id] == "large" else float(doc_id < 50) for doc_id in strata}
    ends = {}
    for is_macro, mean in ((True, (80 / 160 + 10 / 40) / 2), (False, 90 / 200)):
        for_all = Prefix([part(strata=strata, is_macro=is_macro)], {"fake": range(200)})
        for_all.advance(lambda _, doc_id: right[doc_id])
        interval = for_all.interval()
        assert (interval.low, interval.high) == pytest.approx((mean, mean))
        assert for_all.value() == pytest.approx(mean)
        ends[is_macro] = for_all.shown_interval()
    spreads = [
        stats.MeanSpread.of_scores([right[d] for d in strata if strata[d] == name], SHARE)
        for name in set(strata.values())
    ]
    found = stats.score_interval(0.375, stats.MeanSpread.stratified(spreads, [1.0, 1.0]), SHARE)
    assert ends[True] == found and ends[False] is not None and ends[False].method == "wilson"


def test_a_look_waits_for_a_document_of_each_stratum() -> None:
    strata = {doc_id: "rare" if doc_id == 30 else "usual" for doc_id in range(60)}
    prefix = Prefix([part(strata=strata)], {"fake": range(60)})
    assert prefix.advance(lambda _, doc_id: value_of(doc_id), half_width(1.0))
    assert prefix.length == 31


def test_numbers_are_scaled_and_strata_that_the_baseline_lacks_leave_no_difference() -> None:
    strata = {doc_id: "ab"[doc_id % 2] for doc_id in range(80)}
    one = HeadlinePart("fake", "acc", "none", ScoreRange(0.0, 100.0), strata=strata, is_macro=True, scale=100.0)

    def of(baseline: dict[int, float]) -> Prefix:
        prefix = Prefix([structs.replace(one, baseline=baseline)], {"fake": range(80)})
        prefix.advance(lambda _, doc_id: 100 * value_of(doc_id))
        return prefix

    assert of(dict.fromkeys(range(0, 80, 2), 0.0)).value() is None
    values = [100 * sum(map(value_of, range(first, 80, 2))) / 40 for first in (0, 1)]
    assert of(dict.fromkeys(range(80), 0.0)).value() == pytest.approx(sum(values) / 2)
    assert number_of(record_of(FakeTask(80), 1), one) == 100.0


def test_at_the_last_document_the_interval_is_the_ordinary_one() -> None:
    prefix = Prefix([part()], {"fake": range(90)})
    prefix.advance(lambda _, doc_id: value_of(doc_id))
    shown = prefix.shown_interval()
    assert shown is not None and shown.method == "wilson"
    failed = Prefix([part()], {"fake": range(90)})
    failed.advance(lambda _, doc_id: None if doc_id % 10 == 0 else value_of(doc_id))
    wider = failed.shown_interval()
    assert wider is not None and wider.low < shown.low < shown.high < wider.high
    clustered = Prefix([part(is_clustered=True)], {"fake": range(90)})
    clustered.advance(lambda _, doc_id: value_of(doc_id))
    assert clustered.shown_interval() is None


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    opened = RunStore(tmp_path, KEY)
    yield opened
    opened.close()


@pytest.mark.parametrize("seed", range(3))
def test_what_finished_out_of_turn_does_not_count(store: RunStore, seed: int) -> None:
    """The decision does not depend on the order in which documents finish, or on further documents."""
    task = FakeTask(150)
    plan = plan_task(task, None, 0)
    length = decided(plan, WIDE)
    order = ORDER.of(plan)
    finished = order[: length + 10 * seed] + order[length + 40 :: 2]
    random.Random(seed).shuffle(finished)
    for doc_id in finished:
        store.add_score(record_of(task, doc_id))
    stops = Sampling(ORDER, (stop(),)).early_stops([plan], store)
    assert stops["fake"].doc_ids == tuple(order[:length])
    assert (stops["fake"].of, stops["fake"].order) == (150, ORDER.name(plan))


def test_without_the_whole_prefix_nothing_is_decided(store: RunStore) -> None:
    task = FakeTask(150)
    plan = plan_task(task, None, 0)
    for doc_id in ORDER.of(plan)[1:]:
        store.add_score(record_of(task, doc_id))
    assert Sampling(ORDER, (stop(),)).early_stops([plan], store) == {}


def test_a_task_of_two_rules_goes_on_until_both_hold(store: RunStore) -> None:
    plans = [plan_task(FakeTask(150, name), None, 0) for name in ("a", "b")]
    for plan in plans:
        for doc_id in plan.doc_ids:
            store.add_score(record_of(plan.task, doc_id))  # type: ignore[arg-type]
    group = stop(half_width(0.2), part("a"), part("b"), name="group")
    alone = Sampling(ORDER, (group,)).early_stops(plans, store)
    both = Sampling(ORDER, (group, stop(half_width(0.1), part("a"), name="a"))).early_stops(plans, store)
    assert both["b"] == alone["b"] and both["a"].asked > alone["a"].asked
    assert both["a"].rule == "group: the rule; the rule"
    never = Sampling(ORDER, (group, stop(excludes(2 / 3), part("a"), name="a"))).early_stops(plans, store)
    assert set(never) == {"b"}


def looks_of(plan: TaskPlan, ends: TaskEnds, **more: Any) -> Looks:
    return Looks([plan], Sampling(ORDER, (stop(),), (part(),)), ends, **more)


def test_looks_end_a_task_and_show_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.engine.looks.REST", 0)
    task = FakeTask(150)
    plan = plan_task(task, None, 0)
    ends = TaskEnds()
    looks = looks_of(plan, ends)
    order, length = ORDER.of(plan), decided(plan, WIDE)
    assert looks.shown() == ""
    for doc_id in order[length - 2 :: -1]:
        looks.note(record_of(task, doc_id))
    assert not ends.reason("fake")
    assert looks.shown().endswith(f" over the first {length - 1}")
    looks.note(record_of(task, order[length - 1]))
    assert ends.common_reason("fake") == "the rule holds"
    for doc_id in order[length:]:
        looks.note(record_of(task, doc_id))
    assert looks.shown() == "score 0.6667 [0.5879, 0.7371]"  # Wilson's


def test_failed_documents_are_unknown_ones(store: RunStore) -> None:
    task = FakeTask(60)
    plan = plan_task(task, None, 0)
    for number, doc_id in enumerate(ORDER.of(plan)):
        record = failed(task, doc_id, "timeout") if number < 30 else record_of(task, doc_id)
        store.add_score(record)
    assert Sampling(ORDER, (stop(),)).early_stops([plan], store) == {}


def test_processes_tell_the_first_what_they_finish_and_hear_what_ends() -> None:
    task = FakeTask(150)
    plan = plan_task(task, None, 0)
    length, teams = decided(plan, WIDE), team_of(3)
    order, ends = ORDER.of(plan), [TaskEnds() for _ in teams]
    looks = [looks_of(plan, ends[rank], decides=rank == 0, sends=rank > 0) for rank in range(3)]
    exchanges = [LookExchange(*each) for each in zip(teams, looks, ends, strict=True)]
    for number, doc_id in enumerate(order[: length - 2]):  # what earlier starts have left to each
        looks[number % 3].note(record_of(task, doc_id))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(LookExchange.begin, exchanges))
    assert not any(one.reason("fake") for one in ends)
    looks[2].note(record_of(task, order[length - 1]))
    looks[1].note(record_of(task, order[length - 2]))
    for rank in (1, 2, 0, 1, 2):
        exchanges[rank].exchange()
    assert [one.common_reason("fake") for one in ends] == ["the rule holds"] * 3


def answers(wrong: Sequence[int] = ()) -> Any:
    def answer(request: Request) -> Response:
        time.sleep(0.002)
        is_right = value_of(request.doc_id) and request.doc_id not in wrong
        return Response(request.id, text=f"answer {request.doc_id}" if is_right else "no", finish_reason="stop")

    return answer


def run(folder: Path, task: FakeTask, sampling: Sampling | None, **options: Any) -> Any:
    store = RunStore(folder, KEY)
    model = FakeModel(answers(), batch=options.pop("batch", 4))
    try:
        chosen = EngineOptions(sampling=sampling, aggregate=AggregateOptions(**options))
        result = evaluate([plan_task(task, None, 0)], Selection((task,)), model, store, chosen)
    finally:
        store.close()
    assert result is not None
    return result, model


def test_a_run_ends_early_goes_on_and_is_then_complete(tmp_path: Path) -> None:
    sampling = Sampling(ORDER, (stop(),))
    result, model = run(tmp_path, FakeTask(400), sampling)
    (task,) = result.tasks
    length = decided(plan_task(FakeTask(400), None, 0), WIDE)
    assert result.state == "stopped early" and task.early_stop.asked == length == len(task.doc_ids)
    assert length <= len(model.asked) < 400
    outcome = task.outcome
    assert (outcome.scored, outcome.not_asked, outcome.withheld) == (length, 400 - length, "")
    metric = task.metrics[0]
    assert metric.value == pytest.approx(sum(map(value_of, task.doc_ids)) / length)
    assert (metric.interval.high - metric.interval.low) / 2 <= 0.15 and metric.stderr == "N/A"
    again, asked = run(tmp_path, FakeTask(400), sampling, batch=64)
    assert asked.asked == [] and again.tasks[0].early_stop == task.early_stop
    assert again.tasks[0].metrics == task.metrics
    whole, rest = run(tmp_path, FakeTask(400), None)
    assert whole.state == "complete" and len(rest.asked) == 400 - len(model.asked)
    assert whole.tasks[0].early_stop is None and whole.tasks[0].metrics[0].stderr != "N/A"


def test_the_error_budget_is_a_share_of_the_documents_that_count(tmp_path: Path) -> None:
    order = ORDER.of(plan_task(FakeTask(400), None, 0))
    sampling = Sampling(ORDER, (stop(half_width(0.2)),))
    result, _ = run(tmp_path / "a", FakeTask(400, unscorable=order[:2]), sampling, error_budget=0.02)
    assert result.tasks[0].early_stop is not None
    assert result.state == "withheld" and result.tasks[0].outcome.failed == 2
    assert result.tasks[0].outcome.withheld == f"2 of {result.tasks[0].early_stop.asked} failed"
    beyond, _ = run(tmp_path / "b", FakeTask(400, unscorable=order[200:]), sampling)
    assert (beyond.state, beyond.tasks[0].outcome.failed) == ("stopped early", 0)


def test_notes_do_not_wait_for_a_look() -> None:
    plan = plan_task(FakeTask(50), None, 0)
    looks = looks_of(plan, TaskEnds())
    with looks._lock:  # another thread looks
        thread = threading.Thread(target=looks.note, args=(record_of(FakeTask(50), 1),))
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
