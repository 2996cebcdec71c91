from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer, ScoredDoc, Selection
from lmms_eval.engine.evaluate import EngineOptions, RunScores, evaluate
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import MediaError, ModelError
from tests.cases import for_each
from tests.engine.fakes import FakeModel, FakeTask, right_answer


def run(folder: Path, task: FakeTask, model: Model, retry_truncated: str = "", **options: object) -> RunScores:
    store = RunStore(folder, "scoring")
    try:
        terms = AggregateOptions(**options)  # type: ignore[arg-type]
        chosen = EngineOptions(aggregate=terms, grace_s=1.0, retry_truncated=retry_truncated)
        return evaluate([plan_task(task, None, 0)], Selection((task,)), model, store, chosen)
    finally:
        store.close()


def value(result: RunScores) -> object:
    return result.tasks[0].metrics[0].value


def test_every_document_is_asked_and_scored_once(tmp_path: Path) -> None:
    task, model = FakeTask(50), FakeModel()
    result = run(tmp_path, task, model)
    assert value(result) == 1.0
    assert len(model.asked) == len(set(model.asked)) == 50
    assert result.tasks[0].outcome.scored == 50
    assert result.tasks[0].tally.output_tokens == 100
    assert result.state == "complete"


def test_a_second_start_asks_and_scores_nothing(tmp_path: Path) -> None:
    first = run(tmp_path, FakeTask(20), FakeModel())
    task, model = FakeTask(20), FakeModel()
    again = run(tmp_path, task, model)
    assert model.asked == []
    assert task.scored == []
    assert value(again) == value(first) == 1.0
    assert again.resumed == 20
    assert again.prompt_fingerprint == first.prompt_fingerprint != "0" * 64


def test_another_scoring_key_scores_again_without_asking(tmp_path: Path) -> None:
    run(tmp_path, FakeTask(5), FakeModel())
    task, model = FakeTask(5), FakeModel()
    store = RunStore(tmp_path, "other")
    evaluate([plan_task(task, None, 0)], Selection((task,)), model, store, EngineOptions())
    store.close()
    assert model.asked == []
    assert sorted(task.scored) == list(range(5))


def test_failed_requests_withhold_the_score_and_are_asked_again(tmp_path: Path) -> None:
    def some_fail(request: Request) -> Response:
        if request.doc_id % 5 == 0:
            return Response.failure(request.id, "server_error", "HTTP 500")
        return right_answer(request)

    result = run(tmp_path, FakeTask(20), FakeModel(some_fail))
    metric, outcome = result.tasks[0].metrics[0], result.tasks[0].outcome
    assert (metric.value, metric.partial, result.state) == (None, 1.0, "withheld")
    assert (outcome.scored, outcome.failed) == (16, 4)
    assert outcome.reasons == {"failed: server_error: HTTP 500": 4}
    model = FakeModel()
    again = run(tmp_path, FakeTask(20), model)
    assert sorted(request.split("/")[1] for request in model.asked) == ["0", "10", "15", "5"]
    assert (value(again), again.state) == (1.0, "complete")


def test_an_error_budget_lets_a_share_fail(tmp_path: Path) -> None:
    def one_fails(request: Request) -> Response:
        return right_answer(request) if request.doc_id else Response.failure(request.id, "timeout", "no answer")

    assert value(run(tmp_path / "a", FakeTask(10), FakeModel(one_fails), error_budget=0.1)) == 1.0
    assert value(run(tmp_path / "b", FakeTask(10), FakeModel(one_fails), error_budget=0.09)) is None


def test_a_dead_server_is_given_up_early(tmp_path: Path) -> None:
    model = FakeModel(lambda request: Response.failure(request.id, "connection", "refused"), batch=4)
    result = run(tmp_path, FakeTask(1000), model)
    assert 16 <= len(model.asked) <= 20
    assert result.asking.give_up.startswith("the first 16 requests all failed")
    outcome = result.tasks[0].outcome
    assert outcome.failed == len(model.asked) and outcome.failed + outcome.not_asked == 1000
    assert value(result) is None


def test_a_refused_key_is_given_up_at_once(tmp_path: Path) -> None:
    model = FakeModel(lambda request: Response.failure(request.id, "auth", "HTTP 401: check the key"), batch=1)
    result = run(tmp_path, FakeTask(100), model)
    assert len(model.asked) == 1
    assert result.asking.give_up == "HTTP 401: check the key"


def test_one_document_that_cannot_be_rendered_scored_or_opened_fails_alone(tmp_path: Path) -> None:
    class Picky(FakeModel):
        def prepare(self, request: Request) -> Request:
            if request.doc_id == 4:
                raise MediaError("picture.png is corrupt")
            return super().prepare(request)

    result = run(tmp_path, FakeTask(10, broken_docs=[2], unscorable=[7]), Picky())
    outcome = result.tasks[0].outcome
    assert (outcome.scored, outcome.failed) == (7, 3)
    assert {re.sub(r" \(\S+fakes\.py:\d+\)$", " (its line)", reason) for reason in outcome.reasons} == {
        "failed: building the request raised KeyError: 'no such column' (its line)",
        "failed: media: picture.png is corrupt",
        "failed: scoring raised ZeroDivisionError: cannot score this (its line)",
    }


def test_rounds_and_repeats(tmp_path: Path) -> None:
    task, model = FakeTask(6, rounds=3, repeats=2), FakeModel()
    result = run(tmp_path, task, model)
    assert len(model.asked) == 6 * 3 * 2
    assert result.tasks[0].metrics[0].stability is not None
    assert result.tasks[0].outcome.scored == 6


def test_rounds_resume_in_the_middle(tmp_path: Path) -> None:
    def dies_in_round_two(request: Request) -> Response:
        if request.round == 2:
            raise RuntimeError("killed")
        return right_answer(request)

    with pytest.raises(RuntimeError, match="killed"):
        run(tmp_path, FakeTask(3, rounds=3), FakeModel(dies_in_round_two, batch=1))
    model = FakeModel()
    result = run(tmp_path, FakeTask(3, rounds=3), model)
    assert result.tasks[0].outcome.scored == 3
    assert "fake/0/0/0/0" not in model.asked
    assert len(model.asked) < 9


def test_a_model_that_ends_early_leaves_failures_not_a_hang(tmp_path: Path) -> None:
    class Quitter(FakeModel):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            batch = stream.take(4)
            yield right_answer(batch[0])

    result = run(tmp_path, FakeTask(30), Quitter())
    outcome = result.tasks[0].outcome
    assert (outcome.scored, outcome.failed) == (1, 29)
    assert any("ended without answering" in reason for reason in outcome.reasons)


@for_each("copies", [2])
def test_a_model_that_answers_twice_breaks_the_contract(tmp_path: Path, copies: int) -> None:
    class Echo(FakeModel):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            for request in stream.take(1):
                for _ in range(copies):
                    yield right_answer(request)

    with pytest.raises(ModelError, match="exactly once"):
        run(tmp_path, FakeTask(3), Echo())


def test_asynchronous_models(tmp_path: Path) -> None:
    class Asynchronous(Model):
        async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:  # type: ignore[override]
            while requests := await stream.take_async(3):
                for request in requests:
                    yield right_answer(request)

    assert value(run(tmp_path, FakeTask(40, rounds=2), Asynchronous())) == 0.0
    assert value(run(tmp_path / "one", FakeTask(40), Asynchronous())) == 1.0


def test_a_signal_finishes_what_is_in_flight_and_the_next_start_goes_on(tmp_path: Path) -> None:
    asked = threading.Event()

    def slow(request: Request) -> Response:
        asked.set()
        time.sleep(0.01)
        return right_answer(request)

    def interrupt() -> None:
        asked.wait(5)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=interrupt)
    killer.start()
    model = FakeModel(slow, batch=4)
    result = run(tmp_path, FakeTask(500), model)
    killer.join()
    assert result.asking.interrupted == signal.SIGTERM
    assert (result.state, value(result)) == ("interrupted", None)
    scored = result.tasks[0].outcome.scored
    assert scored == len(model.asked)
    rest = FakeModel()
    assert value(run(tmp_path, FakeTask(500), rest)) == 1.0
    assert len(rest.asked) == 500 - scored


def test_grace_time_ends_a_model_that_does_not_come_back(tmp_path: Path) -> None:
    def stuck(request: Request) -> Response:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        time.sleep(30)
        return right_answer(request)

    start = time.monotonic()
    result = run(tmp_path, FakeTask(5), FakeModel(stuck))
    assert time.monotonic() - start < 10
    assert result.asking.interrupted == signal.SIGINT


@for_each("answered", ["twice", "made up"])
def test_an_answer_that_nobody_waits_for_is_not_recorded(tmp_path: Path, answered: str) -> None:
    class Wrong(FakeModel):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            (request,) = stream.take(1)
            yield right_answer(request)
            yield Response(request.id if answered == "twice" else "fake/99/0/0/0", text="other")

    with pytest.raises(ModelError, match="not open"):
        run(tmp_path, FakeTask(3), Wrong())
    (line,) = (tmp_path / "responses-0.jsonl").read_text().splitlines()
    assert '"text":"answer ' in line


def test_a_run_that_is_cut_short_does_not_wait_for_the_scoring(tmp_path: Path) -> None:
    class Slow(FakeTask):
        def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
            time.sleep(0.2)
            return super().score(doc_id, answers, verdicts)

    def twice(request: Request) -> Response:
        if request.doc_id == 60:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        return right_answer(request)

    start = time.monotonic()
    result = run(tmp_path, Slow(100), FakeModel(twice, batch=1))
    assert time.monotonic() - start < 6  # 60 answers are 12 s of scoring
    assert (result.asking.cut_short, result.state) == (True, "interrupted")
    rest = FakeModel(batch=1)
    assert value(run(tmp_path, FakeTask(100), rest)) == 1.0
    assert len(rest.asked) <= 41


def cut(*doc_ids: int, enough: int = 64) -> FakeModel:
    """A model that needs ``enough`` tokens for some documents, and is truncated with fewer."""

    def answer(request: Request) -> Response:
        limit = request.generation.get("max_new_tokens", 16)
        if request.doc_id in doc_ids and limit != "max" and limit < enough:
            return Response(request.id, text="I think that", finish_reason="length")
        return right_answer(request)

    return FakeModel(answer)


def test_truncated_answers_alone_are_asked_again_with_more_tokens(tmp_path: Path) -> None:
    assert value(run(tmp_path, FakeTask(10), cut(3, 7))) == 0.8
    model, task = cut(3, 7), FakeTask(10)
    again = run(tmp_path, task, model, "64")
    assert sorted(model.asked) == ["fake/3/0/0/0~64", "fake/7/0/0/0~64"]
    assert (value(again), again.tasks[0].outcome.answers.truncated, task.scored) == (1.0, 0, [3, 7])
    for limit in ("64", ""):
        model = cut(3, 7)
        assert (value(run(tmp_path, FakeTask(10), model, limit)), model.asked) == (1.0, [])
    assert again.prompt_fingerprint == run(tmp_path / "b", FakeTask(10), cut(3, 7), "64").prompt_fingerprint


def test_an_answer_that_more_tokens_do_not_end_stays_truncated_and_a_larger_limit_asks_anew(tmp_path: Path) -> None:
    model = cut(3, enough=100)
    first = run(tmp_path, FakeTask(5), model, "32")
    assert (value(first), first.tasks[0].outcome.answers.truncated) == (0.8, 1)
    assert [name for name in model.asked if "/3/" in name] == ["fake/3/0/0/0", "fake/3/0/0/0~32"]
    model = cut(3, enough=100)
    assert (value(run(tmp_path, FakeTask(5), model, "32")), model.asked) == (0.8, [])
    model = cut(3, enough=100)
    assert (value(run(tmp_path, FakeTask(5), model, "max")), model.asked) == (1.0, ["fake/3/0/0/0~max"])


def test_a_further_attempt_that_fails_leaves_the_answer_that_is_there(tmp_path: Path) -> None:
    def answer(request: Request) -> Response:
        if request.id.endswith("~64"):
            return Response.failure(request.id, "server_error", "HTTP 500")
        return cut(1).answer(request)

    result = run(tmp_path, FakeTask(4), FakeModel(answer), "64")
    assert (value(result), result.tasks[0].outcome.failed) == (0.75, 0)
    assert result.tasks[0].outcome.answers.truncated == 1
    model = cut(1)
    assert (value(run(tmp_path, FakeTask(4), model, "64")), model.asked) == (1.0, ["fake/1/0/0/0~64"])


def test_every_round_of_a_conversation_is_asked_again_before_the_next(tmp_path: Path) -> None:
    model = cut(1)
    result = run(tmp_path, FakeTask(2, rounds=2), model, "64")
    assert [name for name in model.asked if name.startswith("fake/1/")] == [
        "fake/1/0/0/0", "fake/1/0/0/0~64", "fake/1/0/1/0", "fake/1/0/1/0~64",
    ]  # fmt: skip
    assert result.tasks[0].outcome.answers.truncated == 0


def test_above_the_budget_of_truncated_answers_a_score_carries_a_warning_or_is_withheld(tmp_path: Path) -> None:
    result = run(tmp_path / "a", FakeTask(10), cut(3, 7), truncation_budget=0.2, withholds_truncated=True)
    assert (value(result), result.tasks[0].outcome.over_truncation_budget) == (0.8, False)
    result = run(tmp_path / "b", FakeTask(10), cut(3, 7), truncation_budget=0.1)
    assert (value(result), result.tasks[0].outcome.over_truncation_budget) == (0.8, True)
    result = run(tmp_path / "c", FakeTask(10), cut(3, 7), truncation_budget=0.1, withholds_truncated=True)
    assert (value(result), result.state) == (None, "withheld")
    assert result.tasks[0].metrics[0].withheld_reason == "2 of 10 answers are truncated"
