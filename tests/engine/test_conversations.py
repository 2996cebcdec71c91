from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer, Exchange
from lmms_eval.engine.conversations import AnsweredDocument, Conversations, DocumentConversations, Unit
from lmms_eval.errors import DataError, ModelError
from tests.cases import for_each
from tests.engine.fakes import EchoExchange, FakeTask


class Desk:
    """Conversations over a task, with a journal in memory and the delivered jobs."""

    def __init__(self, task: FakeTask, known: dict[str, str] | None = None, docs: int | None = None) -> None:
        self.jobs: list[AnsweredDocument] = []
        held = {key: Response(key, text=text) for key, text in (known or {}).items()}
        units = [Unit(task, number, task.repeats) for number in range(task.size if docs is None else docs)]
        self.conversations = Conversations(DocumentConversations(units, self.jobs.append), held.get)

    def ask_all(self) -> list[str]:
        """Answer everything, round after round; ids in the order asked."""
        asked: list[str] = []
        waiting = list(self.conversations.source())
        while waiting:
            request = waiting.pop(0)
            asked.append(request.id)
            waiting += self.conversations.take_in(Response(request.id, text=f"said {request.id}"))
        return asked

    @property
    def values(self) -> dict[int, list[Any]]:
        return {job.doc_id: [answer.value for answer in job.answers] for job in self.jobs}


def test_documents_are_built_one_at_a_time() -> None:
    built: list[int] = []

    class Noting(FakeTask):
        def exchange(self, doc_id: int, repeat: int) -> Exchange:
            built.append(doc_id)
            return super().exchange(doc_id, repeat)

    source = Desk(Noting(10)).conversations.source()
    next(source), next(source)
    assert built == [0, 1]


def test_a_document_is_delivered_when_all_its_repeats_are_answered() -> None:
    desk = Desk(FakeTask(2, repeats=2))
    requests = list(desk.conversations.source())
    assert [request.id for request in requests] == [f"fake/{doc}/{rep}/0/0" for doc in (0, 1) for rep in (0, 1)]
    desk.conversations.take_in(Response(requests[1].id, text="second"))
    desk.conversations.take_in(Response(requests[2].id, text="other"))
    assert desk.jobs == []
    desk.conversations.take_in(Response(requests[0].id, text="first"))
    assert desk.values == {0: ["first", "second"]}


def test_rounds_follow_each_other() -> None:
    desk = Desk(FakeTask(1, rounds=3))
    assert desk.ask_all() == ["fake/0/0/0/0", "fake/0/0/1/0", "fake/0/0/2/0"]
    assert desk.values == {0: [["said fake/0/0/0/0", "said fake/0/0/1/0", "said fake/0/0/2/0"]]}
    assert not desk.conversations.has_open()


def test_what_the_journal_holds_is_not_asked() -> None:
    known = {"fake/0/0/0/0": "old 0", "fake/0/0/1/0": "old 1", "fake/1/0/0/0": "old", "fake/2/0/1/0": "not reached"}
    desk = Desk(FakeTask(3, rounds=2), known)
    assert desk.ask_all() == ["fake/1/0/1/0", "fake/2/0/0/0"]
    assert desk.values == {
        0: [["old 0", "old 1"]],
        1: [["old", "said fake/1/0/1/0"]],
        2: [["said fake/2/0/0/0", "not reached"]],
    }


def test_an_answer_that_nobody_waits_for_is_refused() -> None:
    desk = Desk(FakeTask(1))
    (request,) = desk.conversations.source()
    for unknown in ("fake/9/0/0/0", ""):
        with pytest.raises(ModelError, match="which is not open"):
            desk.conversations.take_in(Response(unknown, text="x"))
    desk.conversations.take_in(Response(request.id, text="x"))
    with pytest.raises(ModelError, match="exactly once"):
        desk.conversations.take_in(Response(request.id, text="x"))


def test_something_is_open_while_a_next_round_is_made() -> None:
    """Otherwise a model that takes requests in another thread would see the stream end between two rounds."""
    seen: list[bool] = []

    class Looking(EchoExchange):
        def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
            seen.append(desk.conversations.has_open())
            return super().advance(responses)

    class Task(FakeTask):
        def exchange(self, doc_id: int, repeat: int) -> Exchange:
            return Looking(self, doc_id, repeat)

    desk = Desk(Task(1, rounds=2))
    desk.ask_all()
    assert seen == [True, True]
    assert not desk.conversations.has_open()


def test_a_given_up_request_ends_its_document_with_the_reason() -> None:
    desk = Desk(FakeTask(2, rounds=2))
    first, second = desk.conversations.source()
    assert desk.conversations.take_in(Response.failure(first.id, "timeout", "no answer", 5)) == ()
    assert desk.jobs[0].answers == (Answer(None, error="timeout: no answer", input="question 0 round 0", attempts=5),)
    assert [request.id for request in desk.conversations.open_requests()] == [second.id]


@for_each("stage", ["open", "advance", "answer"])
def test_a_task_that_raises_fails_one_document(stage: str) -> None:
    class Raises(EchoExchange):
        def __getattribute__(self, name: str) -> Any:
            if name == stage and object.__getattribute__(self, "doc_id") == 1:
                return lambda *_: [][0]
            return object.__getattribute__(self, name)

    class Task(FakeTask):
        def exchange(self, doc_id: int, repeat: int) -> Exchange:
            return Raises(self, doc_id, repeat)

    desk = Desk(Task(3))
    desk.ask_all()
    errors = {job.doc_id: job.answers[0].error for job in desk.jobs}
    assert errors[0] is errors[2] is None
    assert "raised IndexError: list index out of range" in str(errors[1])
    assert not desk.conversations.has_open()


def test_unusable_data_ends_the_run() -> None:
    class Broken(FakeTask):
        def exchange(self, doc_id: int, repeat: int) -> Exchange:
            raise DataError("data.zip is missing")

    with pytest.raises(DataError):
        list(Desk(Broken(3)).conversations.source())


def test_thoughts_in_the_journal_reach_neither_the_next_round_nor_the_answer() -> None:
    seen: list[str | None] = []

    class Noting(EchoExchange):
        def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
            seen.extend(response.text for response in responses)
            return super().advance(responses)

    class Noted(FakeTask):
        def exchange(self, doc_id: int, repeat: int) -> Exchange:
            return Noting(self, doc_id, repeat)

    known = {"fake/0/0/0/0": "<think>a</think>one", "fake/0/0/1/0": "<think>cut"}
    desk = Desk(Noted(1, rounds=2), known)
    assert desk.ask_all() == [] and seen == ["one", ""]
    assert desk.values == {0: [["one", ""]]}
    keeps = Noted(1, rounds=2)
    keeps.thought_tags = ()
    desk = Desk(keeps, known)
    desk.ask_all()
    assert desk.values == {0: [["<think>a</think>one", "<think>cut"]]}
