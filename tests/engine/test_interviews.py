from __future__ import annotations

import pytest

from lmms_eval.api.request import Response, Usage
from lmms_eval.api.task import Answer
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.interviews import Interviews
from lmms_eval.errors import ModelError
from tests.engine.judged import JudgedTask


def begun(retries: int = 0) -> tuple[Interviews, Job, list[str]]:
    interviews, task = Interviews("jury", retries), JudgedTask()
    job = Job(task, 4, (Answer("reply"),))
    step = interviews.begin(job, task.judge_questions(4, job.answers))
    return interviews, job, [request.id for request in step.requests]


def test_a_document_goes_on_when_its_last_verdict_is_there() -> None:
    interviews, job, (form, content) = begun()
    assert (form, content) == ("fake/4/judge/form/0", "fake/4/judge/content/0")
    assert interviews.take_in(Response(content, text="3", usage=Usage(5, 1))).job is None
    judged = interviews.take_in(Response(form, text="7")).job
    assert judged is not None
    assert (judged.task, judged.answers) == (job.task, job.answers)
    assert [(verdict.name, verdict.text) for verdict in judged.verdicts] == [("form", "7"), ("content", "3")]
    assert judged.verdicts[1].usage == Usage(5, 1)
    assert len(interviews) == 0


def test_another_attempt_is_another_request() -> None:
    interviews, _, (form, content) = begun(retries=1)
    interviews.take_in(Response(content, text="1"))
    (again,) = interviews.take_in(Response(form, text="hm", usage=Usage(5, 1))).requests
    assert (again.id, again.repeat) == ("fake/4/judge/form/1", 1)
    judged = interviews.take_in(Response(again.id, text="hm hm", usage=Usage(5, 2))).job
    assert judged is not None
    assert judged.verdicts[0].replies == ("hm", "hm hm")
    assert judged.verdicts[0].usage == Usage(10, 3)
    assert not judged.verdicts[0].accepted


def test_an_error_after_an_unreadable_reply_leaves_that_reply() -> None:
    interviews, _, (form, content) = begun(retries=3)
    interviews.take_in(Response(content, text="1"))
    (again,) = interviews.take_in(Response(form, text="hm")).requests
    judged = interviews.take_in(Response.failure(again.id, "timeout", "slow")).job
    assert judged is not None
    assert (judged.verdicts[0].text, judged.verdicts[0].error) == ("hm", None)


def test_after_the_end_every_question_has_the_reason() -> None:
    interviews, job, (form, _) = begun()
    interviews.take_in(Response(form, text="7"))
    (judged,) = interviews.abandon("HTTP 401")
    assert [(verdict.text, verdict.error) for verdict in judged.verdicts] == [("7", None), (None, "HTTP 401")]
    later = interviews.begin(job, job.task.judge_questions(4, job.answers))
    assert later.requests == ()
    assert later.job is not None
    assert {verdict.error for verdict in later.job.verdicts} == {"HTTP 401"}
    assert interviews.take_in(Response(form, text="8")).job is None


def test_an_answer_that_nobody_waits_for() -> None:
    interviews, _, (form, _) = begun()
    assert interviews.interview(form).question.name == "form"
    with pytest.raises(ModelError, match="not open"):
        interviews.interview("fake/5/judge/form/0")
