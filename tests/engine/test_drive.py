from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, Thoughts
from lmms_eval.engine.conversations import AnsweredDocument, Conversations, DocumentConversations, Unit
from lmms_eval.engine.drive import Drive, Driven
from lmms_eval.engine.response_cache import CacheFile, CacheKeys, ResponseCache
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.errors import JournalError
from tests.engine.fakes import FakeModel, FakeTask


class Noted:
    """A journal in memory that records its calls in order."""

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self.known = known or {}
        self.events: list[tuple[str, str]] = []
        self.responses: list[Response] = []

    def recall(self, request: Request, build_messages: Callable[[], ChatMessages]) -> Response | None:
        text = self.known.get(request.id)
        return None if text is None else Response(request.id, text=text)

    def keep(self, response: Response, prompt: str) -> Response:
        self.events.append(("kept", response.request_id))
        self.responses.append(response)
        return response

    def counted(self, response: Response) -> None:
        self.events.append(("counted", response.request_id))

    def delivered(self, job: AnsweredDocument) -> None:
        self.events.append(("delivered", f"{job.task.name}/{job.doc_id}"))


def drive(
    model: Model,
    journal: Noted,
    size: int,
    deliver: Callable[[AnsweredDocument], None],
    cache: ResponseCache | None = None,
) -> Drive:
    conversations = Conversations(DocumentConversations([Unit(FakeTask(size), n, 1) for n in range(size)], deliver))
    limits = StreamLimits(threads=1)
    return Drive(Driven(model, journal, cache, journal.counted), conversations, limits)


def test_a_response_is_durable_before_it_counts_and_counts_before_it_is_passed_on() -> None:
    journal = Noted()
    driven = drive(FakeModel(), journal, 3, journal.delivered)
    driven.run()
    driven.stream.close()
    of_first = [event for event, name in journal.events if name.startswith("fake/0")]
    assert of_first == ["kept", "counted", "delivered"]
    assert (driven.report.answered, driven.report.output_tokens) == (3, 6)


def test_what_the_journal_recalls_is_neither_asked_nor_counted_nor_kept_again() -> None:
    journal, model, jobs = Noted({"fake/1/0/0/0": "known"}), FakeModel(), list[AnsweredDocument]()
    driven = drive(model, journal, 3, jobs.append)
    driven.run()
    driven.stream.close()
    assert sorted(model.asked) == ["fake/0/0/0/0", "fake/2/0/0/0"]
    assert {job.doc_id: job.answers[0].value for job in jobs} == {0: "answer 0", 1: "known", 2: "answer 2"}
    assert driven.report.answered == 2
    assert ("kept", "fake/1/0/0/0") not in journal.events


def test_a_hit_of_the_cache_is_kept_and_not_counted(tmp_path: Path) -> None:
    def once() -> tuple[FakeModel, Noted, Drive]:
        cache = ResponseCache(CacheFile(tmp_path / "cache.db"), CacheKeys({"name": "m"}, False), "m")
        journal, model = Noted(), FakeModel()
        driven = drive(model, journal, 2, journal.delivered, cache)
        driven.run()
        driven.stream.close()
        cache.close()
        return model, journal, driven

    assert len(once()[0].asked) == 2
    model, journal, driven = once()
    assert (model.asked, driven.report.answered) == ([], 0)
    assert sorted(event for event, _ in journal.events) == ["delivered", "delivered", "kept", "kept"]


def test_thoughts_are_apart_wherever_an_answer_comes_from(tmp_path: Path) -> None:
    def thinks(request: Request) -> Response:
        return Response(request.id, text=f"<think>hm</think>answer {request.doc_id}")

    thoughts = Thoughts("hm", "<think>", "</think>")
    for _ in range(2):  # the second time the answers come out of the cache
        cache = ResponseCache(CacheFile(tmp_path / "cache.db"), CacheKeys({"name": "m"}, False), "m")
        journal = Noted({"fake/1/0/0/0": "<think>hm</think>known"})
        jobs: list[AnsweredDocument] = []
        driven = drive(FakeModel(thinks), journal, 3, jobs.append, cache)
        driven.run()
        driven.stream.close()
        cache.close()
        assert {job.doc_id: job.answers[0].value for job in jobs} == {0: "answer 0", 1: "known", 2: "answer 2"}
        assert [response.thoughts for response in journal.responses] == [thoughts, thoughts]


def test_a_preparation_that_raises_is_a_failure_of_its_request() -> None:
    class Picky(FakeModel):
        def prepare(self, request: Request) -> Request:
            if request.doc_id == 1:
                raise ValueError("no such size")
            return super().prepare(request)

    jobs: list[AnsweredDocument] = []
    driven = drive(Picky(), Noted(), 3, jobs.append)
    driven.run()
    driven.stream.close()
    assert {job.doc_id: job.reason for job in jobs} == {
        0: "", 2: "",
        1: "internal: preparing the request raised ValueError: no such size (tests/engine/test_drive.py:113)",
    }  # fmt: skip
    assert (driven.report.answered, driven.report.failed) == (2, 1)


def test_what_is_open_when_the_model_ends_fails_and_so_does_what_comes_later() -> None:
    class Ends(Model):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            stream.take(1)
            yield from ()

    journal, jobs = Noted(), list[AnsweredDocument]()
    driven = drive(Ends(), journal, 1, jobs.append)
    driven.run()
    driven.stream.close()
    assert jobs == []
    driven.fail_open("it is gone")
    assert [job.reason for job in jobs] == ["internal: it is gone"]
    assert journal.events == [("kept", "fake/0/0/0/0"), ("counted", "fake/0/0/0/0")]
    late = DocumentConversations([Unit(FakeTask(1, "late"), 0, 1)], jobs.append)
    assert [request for one in late for request in driven._conversations.begin(one)] == []
    assert jobs[1].reason == "internal: it is gone"


def test_a_response_that_cannot_be_kept_ends_the_asking_uncounted() -> None:
    class Full(Noted):
        def keep(self, response: Response, prompt: str) -> Response:
            raise JournalError("no space left")

    journal = Full()
    driven = drive(FakeModel(), journal, 3, journal.delivered)
    with pytest.raises(JournalError, match="no space left"):
        driven.run()
    driven.stream.close()
    assert journal.events == [] and driven.report.answered == 0
