from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import GeneratedImage, Request, Response
from lmms_eval.api.task import Selection
from lmms_eval.engine.batch_check import BatchCheck, check_batch, is_same, spread
from lmms_eval.engine.evaluate import EngineOptions, RunScores, evaluate
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.store import RunStore
from tests.cases import for_each
from tests.engine.fakes import FakeModel, FakeTask, right_answer

Answer = Callable[[Request, list[Request]], Response]


def swayed(request: Request, batch: list[Request]) -> Response:
    """Odd documents get another answer if they share a batch."""
    if len(batch) == 1:
        return right_answer(request)
    text = f"{'swayed' if request.doc_id % 2 else 'answer'} {request.doc_id}"
    return Response(request.id, text=text, batch=tuple(item.id for item in batch))


class Batching(Model):
    """Full batches of ``size``, which must divide the number of requests; ``batches`` keeps the ids of each."""

    def __init__(self, answer: Answer = swayed, size: int = 4) -> None:
        self.answer, self.size, self.concurrency = answer, size, size
        self.batches: list[list[str]] = []

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while batch := stream.take(self.size):
            while len(batch) < self.size and (more := stream.take(self.size - len(batch))):
                batch += more
            self.batches.append([request.id for request in batch])
            yield from (self.answer(request, batch) for request in batch)


class Asynchronous(Model):
    async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:
        while requests := await stream.take_async(1):
            yield right_answer(requests[0])


def run(folder: Path, model: Model, count: int, task: FakeTask | None = None) -> RunScores:
    chosen = task or FakeTask(12)
    store = RunStore(folder, "scoring")
    try:
        options = EngineOptions(check_batch=count, grace_s=1.0)
        result = evaluate([plan_task(chosen, None, 0)], Selection((chosen,)), model, store, options)
    finally:
        store.close()
    assert result is not None
    return result


def checked(result: RunScores) -> BatchCheck:
    assert result.batch_check is not None
    return result.batch_check


def lines(folder: Path) -> list[str]:
    return [line for path in folder.glob("responses-*.jsonl") for line in path.read_text().splitlines()]


def test_answers_that_depended_on_their_batch_are_listed_and_nothing_else_changes(tmp_path: Path) -> None:
    plain = run(tmp_path / "plain", Batching(), 0)
    model = Batching()
    result = run(tmp_path / "checked", model, 12)
    check = checked(result)
    swayed_rows = [row for row in lines(tmp_path / "checked") if "swayed" in row]
    assert (check.asked, check.in_batches, check.failed, check.stopped) == (12, 12, [], "")
    assert [row.request_id for row in check.rows] == [f"fake/{number}/0/0/0" for number in range(1, 12, 2)]
    assert (check.rows[0].recorded, check.rows[0].alone) == ("swayed 1", "answer 1")
    assert [len(batch) for batch in model.batches[-12:]] == [1] * 12
    assert len(swayed_rows) == 6 and len(lines(tmp_path / "checked")) == 12
    assert plain.batch_check is None
    assert [task.metrics for task in result.tasks] == [task.metrics for task in plain.tasks]
    assert result.asking.answered == plain.asking.answered == 12
    assert result.prompt_fingerprint == plain.prompt_fingerprint
    assert check.line() == "batch check: 6 of 12 answers differ when asked alone"
    assert check.to_dict()["differing"] == 6 and check.to_dict()["rows"][0]["alone"] == "answer 1"


def test_those_with_others_in_their_batch_come_first_and_all_are_spread(tmp_path: Path) -> None:
    def sometimes(request: Request, batch: list[Request]) -> Response:
        shared = tuple(item.id for item in batch) if request.doc_id in (3, 7) else ()
        return structs.replace(right_answer(request), batch=shared)

    model = Batching(sometimes)
    check = checked(run(tmp_path, model, 4))
    asked = [int(batch[0].split("/")[1]) for batch in model.batches[-4:]]
    assert asked == [3, 7, 0, 6] and (check.asked, check.in_batches) == (4, 2)
    assert spread("abcdefgh", 4) == ["a", "c", "e", "g"] and spread("abc", 9) == ["a", "b", "c"]
    assert spread("abc", 0) == spread("", 3) == spread("abc", -1) == []


def test_later_rounds_are_asked_after_the_answers_that_were_given(tmp_path: Path) -> None:
    def heard(request: Request, batch: list[Request]) -> Response:
        return Response(request.id, text=f"{request.context}, {'one' if len(batch) == 1 else 'many'}")

    check = checked(run(tmp_path, Batching(heard, 3), 6, FakeTask(3, rounds=2)))
    assert [row.request_id for row in check.rows] == [f"fake/{doc}/0/{turn}/0" for doc in range(3) for turn in range(2)]
    assert (check.rows[1].recorded, check.rows[1].alone) == ("question 0 round 1, many", "question 0 round 1, one")


def test_a_resumed_run_is_checked_over_all_its_answers(tmp_path: Path) -> None:
    run(tmp_path, Batching(), 0)
    model = Batching()
    check = checked(run(tmp_path, model, 6))
    assert [len(batch) for batch in model.batches] == [1] * 6 and (check.asked, check.in_batches) == (6, 6)
    assert len(lines(tmp_path)) == 12


def test_answers_of_other_processes_count_too(tmp_path: Path) -> None:
    task = FakeTask(4)
    for rank, docs in ((0, (0, 1)), (1, (2, 3))):
        store = RunStore(tmp_path, "scoring", rank)
        for doc in docs:
            store.keep(Response(f"fake/{doc}/0/0/0", text=f"answer {doc % 3}"), "")
        store.close()
    store = RunStore(tmp_path, "scoring")
    check = check_batch([task], FakeModel(), store, 9, 1.0)
    store.close()
    assert check.asked == 4 and [row.request_id for row in check.rows] == ["fake/3/0/0/0"]


def test_failures_of_the_check_are_told_and_cost_no_score(tmp_path: Path) -> None:
    def fails_alone(request: Request, batch: list[Request]) -> Response:
        if len(batch) > 1 or request.doc_id > 2:
            return right_answer(request)
        if request.doc_id == 0:
            raise RuntimeError("the device is gone")
        return Response.failure(request.id if request.doc_id == 1 else "other", "timeout", "too slow")

    result = run(tmp_path, Batching(fails_alone), 12)
    check = checked(result)
    assert (check.asked, check.rows) == (9, [])
    assert [trouble.reason for trouble in check.failed] == [
        "RuntimeError: the device is gone",
        "timeout: too slow",
        "ModelError: the model gave 1 answers to one request",
    ]
    assert "3 could not be asked again, the first one fake/0/0/0/0: RuntimeError" in check.line()
    assert result.tasks[0].metrics[0].value == 1.0 and result.state == "complete"


def test_an_asynchronous_model(tmp_path: Path) -> None:
    check = checked(run(tmp_path, Asynchronous(), 5))
    assert (check.asked, check.rows) == (5, [])


def test_a_run_that_was_given_up_is_not_checked(tmp_path: Path) -> None:
    result = run(tmp_path, FakeModel(lambda request: Response.failure(request.id, "auth", "no key")), 3)
    assert (checked(result).asked, checked(result).stopped) == (0, "not made, since the run did not end")


@for_each(("alone", "same"), [(-2.0001, True), (-2.001, False)], ids=["within a hundredth of a percent", "beyond"])
def test_likelihoods_agree_within_a_tolerance(alone: float, same: bool) -> None:
    assert is_same(Response("r", loglikelihood=-2.0), Response("r", loglikelihood=alone)) is same


def test_pictures_are_compared_by_content() -> None:
    def drawn(data: bytes) -> Response:
        return Response.interleaved("r", ["see", GeneratedImage.from_bytes(data, "image/png")])

    kept = structs.replace(drawn(b"a"), parts=("see", replace(drawn(b"a").parts[1], data=None, path="somewhere")))  # type: ignore[type-var]
    assert is_same(kept, drawn(b"a")) and not is_same(kept, drawn(b"b"))


def test_long_texts_are_cut(tmp_path: Path) -> None:
    def long(request: Request, batch: list[Request]) -> Response:
        return Response(request.id, text="x" * 500 + str(len(batch)))

    row = checked(run(tmp_path, Batching(long), 1)).rows[0]
    assert (row.recorded, row.alone) == ("x" * 200, "x" * 200)
