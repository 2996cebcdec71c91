"""Which questions to the judge are open, and which verdicts complete a document. Safe from several threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loguru import logger

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.fingerprints import content_fingerprint
from lmms_eval.errors import ModelError, TaskError

APART = 1000
"""Between the numbers of two askings of a question; attempts count on from there."""


@dataclass(slots=True)
class Interview:
    """One question and the replies to it so far."""

    question: JudgeQuestion
    place: str
    """What is judged: ``task/doc_id``; with the question's name it makes the requests' ids."""
    task: Task
    doc_id: int
    retries: int = 0
    """How often a reply that cannot be read is asked again."""
    replies: list[str] = field(default_factory=list)
    prompt: str = ""
    usage: Usage | None = None
    error: str | None = None

    def request(self) -> Request:
        """The next request; ``build_messages`` notes the prompt's fingerprint."""
        attempt = len(self.replies)
        number = attempt + APART * (self.question.asking - 1)
        return Request(
            id=f"{self.place}/judge/{self.question.name}/{attempt}",
            kind="generate_until",
            task=self.task,
            doc_id=self.doc_id,
            build_messages=self._build,
            generation=dict(self.question.generation),
            repeat=number,
            seed=number,
        )

    def is_over(self, response: Response) -> bool:
        """Take a response in; ``False`` if the question is to be asked again."""
        if response.error is not None:
            self.error = f"{response.error.kind}: {response.error.message}"
            return True
        self.replies.append(response.text or "")
        self.usage = _added(self.usage, response.usage)
        return self.accepts(self.replies[-1]) or len(self.replies) > self.retries

    def accepts(self, text: str) -> bool:
        """Whether the reply can be read; a reader that raises cannot read it."""
        try:
            return bool(self.question.accepts(text))
        except Exception as error:  # noqa: BLE001 - a task's own reader may raise anything on a judge's text
            logger.warning("{}: reading the judge's reply raised {}: {}", self.place, type(error).__name__, error)
            return False

    def verdict(self, model: str) -> Verdict:
        text = self.replies[-1] if self.replies else None
        return Verdict(
            name=self.question.name,
            text=text,
            accepted=text is not None and self.accepts(text),
            model=model,
            prompt=self.prompt,
            replies=tuple(self.replies),
            usage=self.usage,
            error=self.error if text is None else None,
            details=dict(self.question.details),
        )

    def _build(self) -> ChatMessages:
        messages = self.question.build_messages()
        self.prompt = content_fingerprint(messages)
        return messages


@dataclass(slots=True)
class _Case:
    """A document that waits for its verdicts."""

    job: Job
    names: tuple[str, ...]
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def judged(self) -> Job:
        return replace(self.job, verdicts=tuple(self.verdicts[name] for name in self.names))


@dataclass(frozen=True, slots=True)
class Step:
    """What taking a reply in has led to: requests to be asked next, and a document that is judged completely."""

    requests: tuple[Request, ...] = ()
    job: Job | None = None


@dataclass(slots=True)
class _Open:
    interview: Interview
    case: _Case


class Interviews:
    """``model`` is the judge's name; ``retries`` bounds how often an unreadable reply is asked again."""

    def __init__(self, model: str, retries: int) -> None:
        self._model, self._retries = model, retries
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._over = ""

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, job: Job, questions: Sequence[JudgeQuestion]) -> Step:
        """Open a document's questions; after ``abandon`` they are all answered by its reason.

        Raises:
            TaskError: two questions have the same name.
        """
        case = _Case(job, tuple(question.name for question in questions))
        if len(set(case.names)) < len(case.names):
            raise TaskError(f"task {job.task.name!r}: two questions to the judge have the same name: {case.names}")
        place = f"{job.task.name}/{job.doc_id}"
        interviews = [Interview(question, place, job.task, job.doc_id, self._retries) for question in questions]
        with self._lock:
            if self._over:
                return Step(job=self._ended(case, interviews))
            requests = tuple(interview.request() for interview in interviews)
            for request, interview in zip(requests, interviews, strict=True):
                self._open[request.id] = _Open(interview, case)
        return Step(requests)

    def interview(self, request_id: str) -> Interview:
        """Raises ``ModelError`` unless this request waits for its answer."""
        found = self._open.get(request_id)
        if found is None:
            raise ModelError(f"the judge answered {request_id!r}, which is not open")
        return found.interview

    def take_in(self, response: Response) -> Step:
        with self._lock:
            found = self._open.pop(response.request_id, None)
            if found is None:  # abandoned meanwhile
                return Step()
            interview, case = found.interview, found.case
            if not interview.is_over(response):
                request = interview.request()
                self._open[request.id] = found
                return Step((request,))
            case.verdicts[interview.question.name] = interview.verdict(self._model)
            return Step(job=case.judged() if len(case.verdicts) == len(case.names) else None)

    def abandon(self, reason: str) -> list[Job]:
        """No more replies will come: every open question, and every later one, is answered by the reason."""
        with self._lock:
            self._over = reason
            left, self._open = self._open, {}
            cases: dict[int, tuple[_Case, list[Interview]]] = {}
            for item in left.values():
                cases.setdefault(id(item.case), (item.case, []))[1].append(item.interview)
            return [self._ended(case, interviews) for case, interviews in cases.values()]

    def _ended(self, case: _Case, interviews: Sequence[Interview]) -> Job:
        for interview in interviews:
            interview.error = interview.error or self._over
            case.verdicts[interview.question.name] = interview.verdict(self._model)
        return case.judged()


def _added(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    pairs = zip(one.to_dict().values(), other.to_dict().values(), strict=True)
    return Usage(*(None if a is None and b is None else (a or 0) + (b or 0) for a, b in pairs))
