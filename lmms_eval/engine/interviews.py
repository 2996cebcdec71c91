"""Questions to a judge as conversations, and the verdicts that complete a document."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace

from loguru import logger

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response, ResponseError, SentMedia, SentMessage, Usage
from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.failures import failure
from lmms_eval.engine.fingerprints import content_fingerprint
from lmms_eval.errors import ItemError, LmmsEvalError, TaskError

APART = 1000
"""Between the numbers of two askings of a question; attempts count on from there."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """Terms on which questions are asked."""

    judge: str
    """Name that verdicts state."""
    retries: int = 0
    """Further attempts if a reply cannot be read."""
    again: Container[tuple[str, int]] = frozenset()
    """Documents, by task and number, whose unreadable replies from earlier starts do not count as attempts."""
    recalled: Container[str] = frozenset()
    """Requests that the journal of an earlier start answered, by id."""


@dataclass(slots=True)
class Interview:
    """One question and the replies to it so far: a conversation whose rounds are the attempts at a readable reply."""

    question: JudgeQuestion
    place: str
    """Name of the thing judged, ``task/doc_id``; with the question's name it makes the requests' ids."""
    task: Task
    doc_id: int
    inquiry: Inquiry
    finish: Callable[[Verdict], None]
    replies: list[str] = field(default_factory=list)
    prompt: str = ""
    usage: Usage | None = None
    thought_tags: None = None
    """A judge's thoughts are none of its reply."""
    attempts: int = 0
    """Those that count against the retries."""

    def open(self) -> Sequence[Request]:
        attempt = len(self.replies)
        number = attempt + APART * (self.question.asking - 1)
        request = Request(
            id=request_id(self.place, self.question.name, attempt),
            kind="generate_until",
            task=self.task,
            doc_id=self.doc_id,
            build_messages=self._build,
            generation=dict(self.question.generation),
            repeat=number,
            seed=number,
        )
        return (request,)

    def advance(self, responses: Sequence[Response]) -> Sequence[Request] | None:
        (response,) = responses
        self.replies.append(response.text or "")
        self.usage = _added(self.usage, response.usage)
        is_anew = (self.task.name, self.doc_id) in self.inquiry.again
        self.attempts += not (is_anew and response.request_id in self.inquiry.recalled)
        is_read = self.accepts(response)
        if not is_read and self.attempts <= self.inquiry.retries:
            return self.open()
        self._close(is_read)
        return None

    def fail(self, error: ResponseError, responses: Sequence[Response]) -> None:  # noqa: ARG002 - one request a round
        self._close(False, f"{error.kind}: {error.message}")

    def accepts(self, response: Response) -> bool:
        """Tell whether a reply can be read; a reader that raises cannot read it."""
        if response.error is not None:
            return False
        try:
            return bool(self.question.accepts(response.text or ""))
        except Exception as error:  # noqa: BLE001 - a task's own reader may raise anything on a judge's text
            kind = type(error).__name__
            logger.warning("{}: reading the judge's reply raised {}: {}", self.place, kind, error)
            return False

    def added(
        self,
        request: Request,  # noqa: ARG002
        messages: tuple[SentMessage, ...],
        media: Sequence[SentMedia],  # noqa: ARG002
    ) -> tuple[SentMessage, ...]:
        return messages

    def fingerprint(self, messages: ChatMessages) -> str:  # noqa: ARG002 - noted when they were built
        return self.prompt

    def _build(self) -> ChatMessages:
        try:
            messages = self.question.build_messages()
        except (LmmsEvalError, OSError):
            raise
        except Exception as error:  # a task's own functions may raise anything
            raise ItemError(failure("preparing the question", error)) from error
        self.prompt = content_fingerprint(messages)
        return messages

    def _close(self, accepted: bool, error: str | None = None) -> None:
        text = self.replies[-1] if self.replies else None
        verdict = Verdict(
            name=self.question.name,
            text=text,
            accepted=accepted,
            model=self.inquiry.judge,
            prompt=self.prompt,
            replies=tuple(self.replies),
            usage=self.usage,
            error=error if text is None else None,
            details=dict(self.question.details),
        )
        self.finish(verdict)


class Case:
    """A document that waits for its verdicts, and goes to ``deliver`` with the last one.

    Raises:
        TaskError: two questions have the same name.
    """

    def __init__(self, job: Job, questions: Sequence[JudgeQuestion], deliver: Callable[[Job], None]) -> None:
        self._job, self._questions, self._deliver = job, questions, deliver
        names = [question.name for question in questions]
        if len(set(names)) < len(names):
            raise TaskError(f"task {job.task.name!r}: two questions to the judge have the same name: {tuple(names)}")
        self._lock = threading.Lock()
        self._verdicts: dict[str, Verdict] = {}

    def interviews(self, inquiry: Inquiry) -> list[Interview]:
        """Make a conversation of each question."""
        task, doc_id = self._job.task, self._job.doc_id
        place = f"{task.name}/{doc_id}"
        return [Interview(question, place, task, doc_id, inquiry, self._take) for question in self._questions]

    def _take(self, verdict: Verdict) -> None:
        with self._lock:
            self._verdicts[verdict.name] = verdict
            if len(self._verdicts) < len(self._questions):
                return
        verdicts = tuple(self._verdicts[question.name] for question in self._questions)
        self._deliver(replace(self._job, verdicts=verdicts))


def request_id(place: str, question: str, attempt: int = 0) -> str:
    """Name a request to a judge: the same on every start."""
    return f"{place}/judge/{question}/{attempt}"


def _added(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    pairs = zip(one.to_dict().values(), other.to_dict().values(), strict=True)
    return Usage(*(None if a is None and b is None else (a or 0) + (b or 0) for a, b in pairs))
