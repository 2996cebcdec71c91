"""How far a run with a rule for stopping early is ahead of the documents that count."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Selection
from lmms_eval.engine.evaluate import EngineOptions, evaluate
from lmms_eval.engine.headline import Statement, half_width
from lmms_eval.engine.looks import Lead, LookExchange, Looks, Sampling
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.stopping import TaskEnds
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.errors import JournalError
from tests.cases import for_each
from tests.engine.fakes import FakeModel, FakeTask
from tests.engine.journaled import KEY
from tests.engine.test_stopping import ORDER, part, record_of, stop, value_of
from tests.engine.test_stream import requests
from tests.engine.test_team import team_of

DOCUMENTS = 240
NARROW, NEVER = half_width(0.12), half_width(1e-6)


class Straggling(Model):
    """Keeps ``concurrency`` requests open; each twentieth document takes thirty times as long."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.asked: list[str] = []

    async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:
        answers: asyncio.Queue[Response] = asyncio.Queue()
        held = asyncio.Semaphore(self.concurrency)
        ended = asyncio.Event()
        running: set[asyncio.Task[None]] = set()

        async def answer(request: Request) -> None:
            await asyncio.sleep(0.06 if random.Random(request.doc_id).random() < 0.05 else 0.002)
            text = f"answer {request.doc_id}" if value_of(request.doc_id) else "no"
            answers.put_nowait(Response(request.id, text=text, finish_reason="stop"))
            held.release()

        async def ask() -> None:
            while True:
                await held.acquire()
                if not (taken := await stream.take_async(1)):
                    break
                self.asked += [request.id for request in taken]
                running.update(asyncio.ensure_future(answer(request)) for request in taken)
            await asyncio.gather(*running)
            ended.set()

        asking = asyncio.ensure_future(ask())
        while not (ended.is_set() and answers.empty()):
            try:
                yield await asyncio.wait_for(answers.get(), 0.05)
            except TimeoutError:
                continue
        await asking


class Windowed(Model):
    """Holds a window of up to four batches, and answers the one with the longest prompts first."""

    def __init__(self, batch: int) -> None:
        self.concurrency = batch
        self.asked: list[str] = []
        self.batches: list[list[int]] = []

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        window: list[Request] = []
        while True:
            taken = stream.take_full(4 * self.concurrency - len(window))
            if taken is None:
                return
            if not taken and not window and not (taken := stream.take(self.concurrency)):
                return
            self.asked += [request.id for request in taken]
            window = sorted([*window, *taken], key=lambda request: request.doc_id % 7)
            batch, window = window[: self.concurrency], window[self.concurrency :]
            self.batches.append([request.doc_id for request in batch])
            for request in batch:
                text = f"answer {request.doc_id}" if value_of(request.doc_id) else "no"
                yield Response(request.id, text=text, finish_reason="stop")


def run(folder: Path, task: FakeTask, model: Model, statement: Statement = NARROW, **options: Any) -> Any:
    store = RunStore(folder, KEY)
    sampling = Sampling(ORDER, (stop(statement),))
    try:
        chosen = EngineOptions(sampling=sampling, aggregate=AggregateOptions(error_budget=1.0), **options)
        return evaluate([plan_task(task, None, 0)], Selection((task,)), model, store, chosen)
    finally:
        store.close()


@pytest.mark.parametrize("concurrency", [4, 16, 64])
def test_stragglers_let_a_run_ask_twice_the_concurrency_beyond_what_counts(tmp_path: Path, concurrency: int) -> None:
    model = Straggling(concurrency)
    result = run(tmp_path, FakeTask(DOCUMENTS), model)
    counted = result.tasks[0].early_stop.asked
    assert counted <= len(model.asked) <= counted + 2 * concurrency < DOCUMENTS


def test_a_run_that_was_too_far_ahead_looks_at_several_documents_at_once() -> None:
    task = FakeTask(400)
    plan = plan_task(task, None, 0)
    looks = Looks([plan], Sampling(ORDER, (stop(NEVER),)), TaskEnds())
    lead = Lead(looks, 64)
    lead.forms_batches = lambda: False
    units, begun, fronts = lead.passing(ORDER.units([plan])), 0, set()
    for doc_id in ORDER.of(plan):
        while not lead.is_ahead() and next(units, None) is not None:
            begun += 1
            assert begun <= looks.front + 64
        looks.note(record_of(task, doc_id))
        fronts.add(looks.front)
    assert begun == 400 and len(fronts) <= 400 // 16 + 2


def test_a_model_that_forms_batches_is_held_back_and_its_batches_do_not_depend_on_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swift, slow = Windowed(8), Windowed(8)
    counted = run(tmp_path / "swift", FakeTask(DOCUMENTS), swift).tasks[0].early_stop.asked
    assert len(swift.asked) <= counted + 2 * 8
    score = FakeTask.score

    def slowly(self: FakeTask, *given: Any) -> Any:
        time.sleep(0.002)
        return score(self, *given)

    monkeypatch.setattr(FakeTask, "score", slowly)
    assert run(tmp_path / "slow", FakeTask(DOCUMENTS), slow).tasks[0].early_stop.asked == counted
    assert slow.batches == swift.batches


def test_what_a_batch_service_collects_may_be_ahead_too(tmp_path: Path) -> None:
    model = Windowed(4)
    model.collects = DOCUMENTS
    assert run(tmp_path, FakeTask(DOCUMENTS), model).tasks[0].early_stop is not None
    assert len(model.asked) > 60


def fails_at_the_front(request: Request) -> Response:
    if request.doc_id in ORDER.of(plan_task(FakeTask(100), None, 0))[::5]:
        return Response.failure(request.id, "server_error", "HTTP 500")
    return Response(request.id, text=f"answer {request.doc_id}", finish_reason="stop")


@for_each(
    ("name", "task", "answer"),
    [
        ("the model fails", FakeTask(100), fails_at_the_front),
        ("scoring fails", FakeTask(100, unscorable=range(0, 100, 3)), None),
        ("rendering fails", FakeTask(100, broken_docs=range(0, 100, 3)), None),
        ("several rounds", FakeTask(40, rounds=3), None),
        ("several answers", FakeTask(40, repeats=3), None),
        ("no document can be scored", FakeTask(100, unscorable=range(100)), None),
    ],
)
def test_a_run_without_a_decision_comes_to_its_end(
    tmp_path: Path, name: str, task: FakeTask, answer: Callable[[Request], Response] | None
) -> None:
    model = FakeModel(batch=1) if answer is None else FakeModel(answer, batch=1)
    result = run(tmp_path / name, task, model, NEVER)
    assert result.tasks[0].early_stop is None
    left = result.tasks[0].outcome.not_asked
    assert left == (0 if name != "no document can be scored" else left) and left < DOCUMENTS


def test_truncated_answers_of_the_front_are_asked_again(tmp_path: Path) -> None:
    def cut(request: Request) -> Response:
        is_first = request.generation.get("max_new_tokens") is None
        return Response(request.id, text=f"answer {request.doc_id}", finish_reason="length" if is_first else "stop")

    model = FakeModel(cut, batch=1)
    assert run(tmp_path, FakeTask(40), model, NEVER, retry_truncated="64").tasks[0].outcome.scored == 40
    assert len(model.asked) == 80


def test_a_journal_that_cannot_be_written_ends_a_run_that_waits_for_its_front(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise JournalError("the disk is full")

    monkeypatch.setattr(RunStore, "add_score", full)
    with pytest.raises(JournalError, match="the disk is full"):
        run(tmp_path, FakeTask(DOCUMENTS), FakeModel(batch=1))


def test_a_task_that_is_given_up_does_not_hold_the_others_back(tmp_path: Path) -> None:
    tasks = [FakeTask(80, "bad", unscorable=range(80)), FakeTask(80, "good")]
    stops = tuple(stop(NEVER, part(task.name), name=task.name) for task in tasks)
    store = RunStore(tmp_path, KEY)
    try:
        options = EngineOptions(sampling=Sampling(ORDER, stops), aggregate=AggregateOptions())
        plans = [plan_task(task, None, 0) for task in tasks]
        result = evaluate(plans, Selection(tuple(tasks)), FakeModel(batch=1), store, options)
    finally:
        store.close()
    assert result is not None
    assert [one.outcome.scored for one in result.tasks] == [0, 80] and result.tasks[0].outcome.not_asked > 0


def test_later_rounds_pass_requests_that_are_held_back() -> None:
    class Closed:
        closed = settling = True

        def is_ahead(self) -> bool:
            return self.closed

        def is_settling(self) -> bool:
            return self.settling

    pace, items = Closed(), requests(4)
    made = Stream(iter(items), lambda r: r.with_payload("x", 1), lambda r, e: None, lambda: True, StreamLimits(), pace)
    made.start()
    try:
        made.push(requests(9)[8:])
        assert [one.doc_id for one in made.take(4)] == [8]
        found: list[Sequence[Request] | None] = []
        taking = threading.Thread(target=lambda: found.append(made.take_full(2)))
        taking.start()
        taking.join(0.1)
        assert taking.is_alive()  # scoring may move the front on
        pace.settling = False
        made.wake()
        taking.join(5)
        assert found == [[]] and not made.is_stopped
        pace.closed = False
        made.wake()
        assert [one.doc_id for one in made.take_full(4) or ()] == [0, 1, 2, 3]
    finally:
        made.close()


def test_processes_are_held_back_by_the_front_of_all() -> None:
    task = FakeTask(150)
    plan = plan_task(task, None, 0)
    order, teams, ends = ORDER.of(plan), team_of(2), [TaskEnds(), TaskEnds()]
    sampling = Sampling(ORDER, (stop(NEVER),))
    looks = [Looks([plan], sampling, ends[rank], decides=rank == 0, sends=rank > 0) for rank in range(2)]
    exchanges = [LookExchange(*each) for each in zip(teams, looks, ends, strict=True)]
    lead = Lead(looks[1], 20)
    units = lead.passing(ORDER.units([plan]))
    threads = [threading.Thread(target=one.begin) for one in exchanges]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def begun() -> int:
        count = 0
        while not lead.is_ahead() and next(units, None) is not None:
            count += 1
        return count

    assert begun() == 20
    for doc_id in order[1:9]:
        looks[1].note(record_of(task, doc_id))
    for rank in (1, 0, 1):
        exchanges[rank].exchange()
    assert begun() == 0  # the first document, which the other process has, is missing
    looks[0].note(record_of(task, order[0]))
    for rank in (0, 1):
        exchanges[rank].exchange()
    assert begun() == 9
    ends[1].end("fake", "not one of its first documents could be scored")
    for rank in (1, 0, 1):
        exchanges[rank].exchange()
    assert looks[1].front == 150
