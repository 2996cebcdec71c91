from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from lmms_eval.api.judging import JudgeQuestion, Verdict, has_unread
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, ResponseError
from lmms_eval.api.task import Answer, ScoredDoc
from lmms_eval.engine import judging, scoring
from lmms_eval.engine.conversations import AnsweredDocument
from lmms_eval.engine.judging import JudgementStore, JudgeSetup, Judging
from lmms_eval.engine.response_cache import CacheFile, CacheKeys, ResponseCache
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.errors import JournalError
from lmms_eval.judges.providers import Judge
from tests.cases import for_each
from tests.engine.fakes import FakeModel, FakeTask, right_answer
from tests.engine.judged import JudgedTask, Script, failure, run, scripted


def answers_by_number(request: Request) -> Response:
    return Response(request.id, text=str(request.doc_id))


def outcome(result: object) -> tuple[int, int, int]:
    found = result.tasks[0].outcome  # type: ignore[attr-defined]
    return found.scored, found.unscored, found.failed


def value(result: object) -> object:
    return result.tasks[0].metrics[0].value  # type: ignore[attr-defined]


def test_every_question_is_asked_once_and_scored(tmp_path: Path) -> None:
    script = Script(lambda text, _: "1" if text.startswith("form") else "3")
    result = run(tmp_path, JudgedTask(30), FakeModel(), scripted(script))
    assert outcome(result) == (30, 0, 0)
    assert value(result) == 2.0
    assert len(script.asked) == len(set(script.asked)) == 60
    tally = result.tasks[0].tally
    assert (tally.judge_questions, tally.judge_answered, tally.judge_replies) == (60, 60, 60)
    assert result.asking.judge_asked == 60


def test_without_a_judge_the_samples_are_unscored(tmp_path: Path) -> None:
    result = run(tmp_path, JudgedTask(5), FakeModel(), None)
    assert outcome(result) == (0, 5, 0)
    assert result.tasks[0].outcome.reasons == {"unscored: a judge is needed": 5}
    assert result.state == "withheld"


def test_tasks_without_questions_and_failed_answers_pass_by_the_judge(tmp_path: Path) -> None:
    script = Script()
    assert outcome(run(tmp_path / "a", FakeTask(5), FakeModel(), scripted(script))) == (5, 0, 0)

    def one_fails(request: Request) -> Response:
        return failure(request) if request.doc_id == 2 else right_answer(request)

    assert outcome(run(tmp_path / "b", JudgedTask(5), FakeModel(one_fails), scripted(script))) == (4, 0, 1)
    assert not any(request.startswith("fake/2/") for request in script.asked)


def test_judging_overlaps_with_the_generation(tmp_path: Path) -> None:
    judged_first = threading.Event()
    seen: list[bool] = []

    def answer(request: Request) -> Response:
        if request.doc_id == 9:  # the last one waits until a verdict on an earlier one is there
            seen.append(judged_first.wait(10))
        return right_answer(request)

    def says(_text: str, _attempt: int) -> str:
        judged_first.set()
        return "1"

    run(tmp_path, JudgedTask(10), FakeModel(answer, batch=1), scripted(Script(says)))
    assert seen == [True]


def test_an_unreadable_reply_is_asked_again_and_counted(tmp_path: Path) -> None:
    script = Script(lambda text, attempt: "well ..." if attempt == 0 and text.startswith("form") else "1")
    result = run(tmp_path / "again", JudgedTask(4), FakeModel(), scripted(script), retries=1)
    assert value(result) == 1.0
    assert len(script.asked) == 12
    assert result.tasks[0].tally.judge_unparsable == 0
    result = run(tmp_path / "never", JudgedTask(4), FakeModel(), scripted(script), retries=0, budget=1.0)
    assert value(result) == 0.5  # as the benchmark defines it: here, 0 for that question
    assert outcome(result) == (4, 0, 0)
    assert result.tasks[0].tally.judge_unparsable == 4


def test_documents_without_a_readable_reply_count_against_the_budget_of_the_judge(tmp_path: Path) -> None:
    """A judge that dies, or whose replies cannot be parsed, leaves no score."""
    says: dict[str, Callable[[str, int], str | ResponseError]] = {
        "dies": lambda *_: next(dying),
        "garbled": lambda text, _: "??" if text.endswith("7") else "1",
        "errors": lambda text, _: ResponseError("server_error", "HTTP 500") if text.endswith("7") else "1",
    }
    for name, reply in says.items():
        dying = iter(["1"] * 40 + [ResponseError("server_error", "gone")] * 1000)
        result = run(tmp_path / name, JudgedTask(60), FakeModel(), scripted(Script(reply), name))
        assert value(result) is None, name
        assert result.state == "withheld"
        assert "without a readable reply of the judge" in result.tasks[0].metrics[0].withheld_reason
        assert 0 < result.tasks[0].outcome.judge_unread < 60


def test_a_share_of_unread_documents_is_allowed_by_the_budget(tmp_path: Path) -> None:
    script = Script(lambda text, _: "??" if text == "form of 3" else "1")
    kept = run(tmp_path / "a", JudgedTask(10), FakeModel(answers_by_number), scripted(script), budget=0.1)
    assert (value(kept), kept.tasks[0].outcome.judge_unread) == (0.95, 1)
    tight = run(tmp_path / "b", JudgedTask(10), FakeModel(answers_by_number), scripted(script), budget=0.05)
    assert value(tight) is None


@for_each("reply", ["", "\u200b", "no number"])
def test_a_judge_without_any_readable_reply_gives_no_score_whatever_the_budget(tmp_path: Path, reply: str) -> None:
    result = run(tmp_path, JudgedTask(5), FakeModel(), scripted(Script(lambda *_: reply)), budget=1.0)
    assert value(result) is None
    assert result.state == "withheld"


def test_the_next_start_asks_the_judge_again_about_what_it_could_not_read(tmp_path: Path) -> None:
    script = Script(lambda text, _: "??" if text == "form of 3" else "1")
    assert value(run(tmp_path, JudgedTask(10), FakeModel(answers_by_number), scripted(script))) is None
    again = Script()
    result = run(tmp_path, JudgedTask(10), FakeModel(failure), scripted(again))
    assert (value(result), again.asked) == (1.0, ["fake/3/judge/form/1"])


def test_a_repeated_question_is_read_if_one_of_its_replies_is() -> None:
    def verdict(name: str, accepted: bool) -> Verdict:
        return Verdict(name, "x", accepted, "judge")

    assert not has_unread([verdict("a", False), verdict("a~2", True), verdict("b~c", True)])
    assert has_unread([verdict("a", True), verdict("a~2", True), verdict("b~c", False)])
    assert not has_unread([])


def test_a_dead_judge_leaves_everything_unscored_and_the_generation_complete(tmp_path: Path) -> None:
    script = Script(lambda *_: ResponseError("connection", "refused"))
    model = FakeModel()
    result = run(tmp_path, JudgedTask(60), model, scripted(script))
    assert len(model.asked) == 60
    assert outcome(result) == (0, 60, 0)
    assert result.state == "withheld"  # nothing of the task could be scored
    assert result.asking.judge_give_up.startswith("the first 16 requests all failed")
    assert len(script.asked) < 40
    assert all("refused" in reason for reason in result.tasks[0].outcome.reasons)
    again = run(tmp_path, JudgedTask(60), FakeModel(failure), scripted(Script()))
    assert outcome(again) == (60, 0, 0)  # the answers are in the journal: only the judge is asked


def test_a_refused_key_stops_the_judging_at_once(tmp_path: Path) -> None:
    script = Script(lambda *_: ResponseError("auth", "HTTP 401: check the key"))
    model = FakeModel()
    result = run(tmp_path, JudgedTask(50), model, scripted(script))
    assert len(model.asked) == 50
    assert len(script.asked) <= 8  # one taken batch
    assert outcome(result) == (0, 50, 0)
    assert result.asking.judge_give_up == "HTTP 401: check the key"


def test_single_errors_leave_single_samples_unscored(tmp_path: Path) -> None:
    def says(text: str, _attempt: int) -> str | ResponseError:
        return ResponseError("timeout", "too slow") if text == "form of answer 3" else "1"

    result = run(tmp_path, JudgedTask(10), FakeModel(), scripted(Script(says)))
    assert outcome(result) == (9, 1, 0)
    assert list(result.tasks[0].outcome.reasons) == ["unscored: the judge gave no reply: timeout: too slow"]
    script = Script()
    assert outcome(run(tmp_path, JudgedTask(10), FakeModel(), scripted(script))) == (10, 0, 0)
    assert script.asked == ["fake/3/judge/form/0"]  # its other verdict is in the journal


def test_questions_that_raise_or_collide_fail_their_sample_alone(tmp_path: Path) -> None:
    class Colliding(JudgedTask):
        def judge_questions(self, doc_id: int, answers: Sequence[Answer]) -> Sequence[JudgeQuestion]:
            made = super().judge_questions(doc_id, answers)
            return [made[0], made[0]] if doc_id == 1 else made

    result = run(tmp_path, Colliding(5, unscorable=[4]), FakeModel(), scripted(Script()))
    assert outcome(result) == (3, 0, 2)
    assert any("no such criterion" in reason for reason in result.tasks[0].outcome.reasons)
    assert any("same name" in reason for reason in result.tasks[0].outcome.reasons)


def test_questions_that_cannot_be_rendered_say_nothing_about_the_judge(tmp_path: Path) -> None:
    class Unrenderable(JudgedTask):
        def judge_questions(self, doc_id: int, answers: Sequence[Answer]) -> Sequence[JudgeQuestion]:
            made = super().judge_questions(doc_id, answers)
            return made if doc_id >= 40 else [JudgeQuestion("form", lambda: {}["prompt"], str.isdigit)]

    result = run(tmp_path, Unrenderable(50), FakeModel(), scripted(Script()))
    assert outcome(result) == (10, 40, 0)
    reason = "unscored: the judge gave no reply: document: preparing the question raised KeyError: 'prompt' ("
    ((found, count),) = result.tasks[0].outcome.reasons.items()
    assert found.startswith(reason) and count == 40
    assert (result.asking.judge_asked, result.asking.judge_give_up) == (20, "")


def test_verdicts_are_journaled_before_anything_else_and_reused(tmp_path: Path) -> None:
    class Dying(JudgedTask):
        def score(self, *arguments: object, **more: object) -> object:  # type: ignore[override]
            raise KeyboardInterrupt  # as if the process ended between verdict and score

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Dying(3), FakeModel(), scripted(Script()))
    script = Script()
    result = run(tmp_path, JudgedTask(3), FakeModel(failure), scripted(script))
    assert outcome(result) == (3, 0, 0)
    assert len(script.asked) < 6
    journal = (tmp_path / "judgements-0.jsonl").read_text().splitlines()
    assert len(journal) == 6


def test_another_judge_or_another_prompt_is_asked_anew(tmp_path: Path) -> None:
    def once(name: str, task: JudgedTask) -> int:
        script = Script()
        (tmp_path / "scores-0.jsonl").unlink(missing_ok=True)
        run(tmp_path, task, FakeModel(), scripted(script, name))
        return len(script.asked)

    class Other(JudgedTask):
        def judge_questions(self, doc_id: int, answers: Sequence[Answer]) -> Sequence[JudgeQuestion]:
            changed = [Answer(f"the reply {answers[0].value}")]
            return super().judge_questions(doc_id, changed)

    assert once("first", JudgedTask(4)) == 8
    assert once("first", JudgedTask(4)) == 0
    assert once("second", JudgedTask(4)) == 8
    assert once("first", Other(4)) == 8
    assert once("first", JudgedTask(4)) == 0


def test_the_response_cache_serves_judges_too(tmp_path: Path) -> None:
    def once(folder: str, script: Script) -> dict[str, int]:
        judge = scripted(script)
        cache = ResponseCache(CacheFile(tmp_path / "cache.db"), CacheKeys(judge.identity(), False), "judge")
        try:
            return run(tmp_path / folder, JudgedTask(5), FakeModel(), judge, cache=cache).asking.judge_cache
        finally:
            cache.close()

    first, second = Script(lambda text, _: "1" if "form" in text else "unreadable"), Script()
    assert once("a", first)["stored"] == 5
    assert once("b", second)["hit"] == 5
    assert len(second.asked) == 5  # what could not be read was not kept


def test_asynchronous_judges_and_back_pressure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "QUEUE_LENGTH", 2)
    monkeypatch.setattr(judging, "LEAST_OPEN", 4)
    most = 0

    class Asynchronous(Model):
        concurrency = 1

        async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:  # type: ignore[override]
            nonlocal most
            while requests := await stream.take_async(3):
                for request in requests:
                    most = max(most, len(open_places(stream)))
                    yield Response(request.id, text="1")

    def open_places(stream: object) -> set[str]:
        return {request.id.split("/")[1] for request in list(stream.stream._ready)}  # type: ignore[attr-defined]

    result = run(tmp_path, JudgedTask(40), FakeModel(), Judge(Asynchronous(), "quick", "scripted"))
    assert value(result) == 1.0
    assert most <= 4


@for_each("slow", ["judge", "scoring"])
def test_a_slow_judge_or_slow_scoring_does_not_stop_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Open connections would run into their time limits."""
    monkeypatch.setattr(judging, "QUEUE_LENGTH", 2)
    monkeypatch.setattr(judging, "LEAST_OPEN", 1)
    monkeypatch.setattr(scoring, "QUEUE_LENGTH", 2)
    alive = threading.Event()
    waited: list[bool] = []

    class Slow(FakeTask):
        def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
            waited.append(alive.wait(3))
            return super().score(doc_id, answers, verdicts)

    class Beating(Model):
        concurrency = 32

        async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:  # type: ignore[override]
            beat = asyncio.create_task(self.beat())
            while requests := await stream.take_async(32):
                for request in requests:
                    yield right_answer(request)
            await beat

        async def beat(self) -> None:
            await asyncio.sleep(0.3)  # by now the queues are full
            alive.set()

    def says(_text: str, _attempt: int) -> str:
        waited.append(alive.wait(3))
        return "1"

    task = JudgedTask(20) if slow == "judge" else Slow(20)
    assert value(run(tmp_path, task, Beating(), scripted(Script(says)))) == 1.0
    assert all(waited)


def test_closing_does_not_wait_for_a_judge_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "CLOSING_S", 0.2)
    begun, answers = threading.Event(), threading.Event()

    def hang(request: Request) -> Response:
        begun.set()
        answers.wait(4)
        return Response(request.id, text="1")

    store = JudgementStore(tmp_path, CacheKeys({}, reads_documents=False))
    delivered: list[AnsweredDocument] = []
    judge = Judging(JudgeSetup(FakeModel(hang), "slow", store), delivered.append, lambda: False)
    judge.submit(AnsweredDocument(JudgedTask(1), 0, (Answer("said"),)))
    assert begun.wait(5)
    start = time.monotonic()
    judge.close()
    assert time.monotonic() - start < 2
    assert delivered == []
    monkeypatch.setattr(judging, "CLOSING_S", 5.0)
    answers.set()
    judge.close()  # the thread ends once the judge has answered
    store.close()


def test_a_broken_judge_is_no_broken_run(tmp_path: Path) -> None:
    class Broken(Model):
        def respond(self, stream: RequestStream) -> object:  # type: ignore[override]
            stream.take(1)
            raise RuntimeError("no kernel for this device")
            yield

    result = run(tmp_path, JudgedTask(5), FakeModel(), Judge(Broken(), "broken", "scripted"))
    assert outcome(result) == (0, 5, 0)
    assert "no kernel for this device" in result.asking.judge_give_up


def test_a_full_disk_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise JournalError("no space left")

    monkeypatch.setattr(JudgementStore, "keep", full)
    with pytest.raises(JournalError, match="no space left"):
        run(tmp_path, JudgedTask(300), FakeModel(), scripted(Script()))


@pytest.mark.parametrize("when", ["asking", "judging"])
def test_a_signal_finishes_what_the_judge_has_in_flight(tmp_path: Path, when: str) -> None:
    begun = threading.Event()

    def says(_text: str, _attempt: int) -> str:
        begun.set()
        time.sleep(0.02)
        return "1"

    def answer(request: Request) -> Response:
        if when == "asking" and request.doc_id > 20:
            time.sleep(0.02)
        return right_answer(request)

    def interrupt() -> None:
        begun.wait(5)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=interrupt)
    killer.start()
    script = Script(says)
    result = run(tmp_path, JudgedTask(300), FakeModel(answer), scripted(script))
    killer.join()
    assert result.asking.interrupted == signal.SIGTERM
    assert result.state == "interrupted"
    asked = set(script.asked)
    rest = Script()
    again = run(tmp_path, JudgedTask(300), FakeModel(), scripted(rest))
    assert outcome(again) == (300, 0, 0)
    assert not asked & set(rest.asked)  # everything in flight had been finished


def test_what_the_judge_has_answered_makes_room_for_more(tmp_path: Path) -> None:
    """Payloads of a megabyte, room for two: more than one is open at a time until the end."""

    class Heavy(Model):
        concurrency = 2

        def __init__(self) -> None:
            self.together: list[int] = []

        def prepare(self, request: Request) -> Request:
            return request.with_payload(b"", 1 << 20)

        def respond(self, stream: RequestStream) -> Iterator[Response]:
            while requests := stream.take(2):
                time.sleep(0.01)
                more = stream.take_full(2 - len(requests)) or []
                self.together.append(len(requests) + len(more))
                for request in [*requests, *more]:
                    yield Response(request.id, text="1")

    heavy = Heavy()
    limits = StreamLimits(max_bytes=3 << 20)
    result = run(tmp_path, JudgedTask(30), FakeModel(), Judge(heavy, "heavy", "scripted"), limits=limits)
    assert value(result) == 1.0
    assert 2 in heavy.together[-10:]


class Collecting(Model):
    """A judge that is asked in batches of all that can be collected."""

    concurrency, collects = 2, 100

    def __init__(self) -> None:
        self.batches: list[int] = []

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while True:
            requests: list[Request] = []
            while taken := stream.take_full(100):
                requests += taken
            requests = requests or stream.take(100)
            if not requests:
                return
            self.batches.append(len(requests))
            for request in requests:
                yield Response(request.id, text="1")


class Slow(FakeModel):
    pause_s = 0.02

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        for response in super().respond(stream):
            time.sleep(self.pause_s)
            yield response


def test_a_judge_that_collects_waits_for_the_model(tmp_path: Path) -> None:
    judge = Collecting()
    assert value(run(tmp_path, JudgedTask(20), Slow(), Judge(judge, "batch", "scripted"))) == 1.0
    assert judge.batches == [40]


def test_a_judge_that_collects_does_not_wait_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may ask nothing further before a document is judged."""
    monkeypatch.setattr(judging, "QUIET_S", 0.001)
    monkeypatch.setattr(Slow, "pause_s", 0.6)
    judge = Collecting()
    assert value(run(tmp_path, JudgedTask(3), Slow(), Judge(judge, "batch", "scripted"))) == 1.0
    assert len(judge.batches) > 1 and sum(judge.batches) == 6
