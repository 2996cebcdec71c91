from __future__ import annotations

import pytest

from lmms_eval.api.request import Response, ResponseError, Usage
from lmms_eval.api.task import Answer
from lmms_eval.engine.conversations import AnsweredDocument, Conversations
from lmms_eval.engine.judging import Case, Inquiry
from lmms_eval.errors import ModelError
from lmms_eval.filters.reasoning import thoughts_apart
from tests.engine.judged import JudgedTask


class Court:
    """One document's open questions, and the delivered jobs."""

    def __init__(self, retries: int = 0) -> None:
        self.task, self.inquiry = JudgedTask(), Inquiry("jury", retries)
        self.job = AnsweredDocument(self.task, 4, (Answer("reply"),))
        self.judged: list[AnsweredDocument] = []
        self.conversations = Conversations()
        self.form, self.content = self.begin()

    def begin(self) -> list[str]:
        """Open the document's questions; ids of their requests."""
        case = Case(self.job, self.task.judge_questions(4, self.job.answers), self.judged.append)
        return [request.id for one in case.interviews(self.inquiry) for request in self.conversations.begin(one)]


def test_a_document_goes_on_when_its_last_verdict_is_there() -> None:
    court = Court()
    assert (court.form, court.content) == ("fake/4/judge/form/0", "fake/4/judge/content/0")
    court.conversations.take_in(Response(court.content, text="3", usage=Usage(5, 1)))
    assert court.judged == []
    court.conversations.take_in(Response(court.form, text="7"))
    (judged,) = court.judged
    assert (judged.task, judged.answers) == (court.job.task, court.job.answers)
    assert [(verdict.name, verdict.text) for verdict in judged.verdicts] == [("form", "7"), ("content", "3")]
    assert judged.verdicts[1].usage == Usage(5, 1)
    assert not court.conversations.has_open()


def test_another_attempt_is_another_request() -> None:
    court = Court(retries=1)
    court.conversations.take_in(Response(court.content, text="1"))
    (again,) = court.conversations.take_in(Response(court.form, text="hm", usage=Usage(5, 1)))
    assert (again.id, again.repeat) == ("fake/4/judge/form/1", 1)
    court.conversations.take_in(Response(again.id, text="hm hm", usage=Usage(5, 2)))
    verdict = court.judged[0].verdicts[0]
    assert verdict.replies == ("hm", "hm hm")
    assert verdict.usage == Usage(10, 3)
    assert not verdict.accepted


def test_an_error_after_an_unreadable_reply_leaves_that_reply() -> None:
    court = Court(retries=3)
    court.conversations.take_in(Response(court.content, text="1"))
    (again,) = court.conversations.take_in(Response(court.form, text="hm"))
    court.conversations.take_in(Response.failure(again.id, "timeout", "slow"))
    verdict = court.judged[0].verdicts[0]
    assert (verdict.text, verdict.accepted, verdict.error) == ("hm", False, None)


def test_after_the_end_every_question_has_the_reason() -> None:
    court = Court()
    court.conversations.take_in(Response(court.form, text="7"))
    error = ResponseError("auth", "HTTP 401")
    for request in court.conversations.close(error):
        court.conversations.take_in(Response(request.id, error=error))
    assert [(one.text, one.error) for one in court.judged[0].verdicts] == [("7", None), (None, "auth: HTTP 401")]
    assert court.begin() == []
    assert {one.error for one in court.judged[1].verdicts} == {"auth: HTTP 401"}


def test_an_answer_that_nobody_waits_for() -> None:
    court = Court()
    assert court.conversations.of(court.form).question.name == "form"  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="not open"):
        court.conversations.of("fake/5/judge/form/0")


def test_a_judge_may_think() -> None:
    court = Court(retries=1)
    court.conversations.take_in(Response(court.content, text="3"))
    (again,) = court.conversations.take_in(thoughts_apart(Response(court.form, text="<think>perhaps 7")))
    court.conversations.take_in(thoughts_apart(Response(again.id, text="<think>perhaps 6</think>7")))
    (judged,) = court.judged
    assert judged.verdicts[0].replies == ("", "7") and judged.verdicts[0].accepted
