"""From documents to requests and back: which questions are open, which answers complete a document.

Every (document, repeat) is an ``Exchange`` of its task. On resume an exchange is replayed: rounds whose answers the
journal holds are not asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lmms_eval.api.judging import Verdict
from lmms_eval.api.request import Request, Response, sent_media
from lmms_eval.api.task import Answer, Exchange, Task
from lmms_eval.engine.failures import failure
from lmms_eval.errors import ModelError, UsageError


@dataclass(frozen=True, slots=True)
class Unit:
    """One document to ask ``repeats`` times."""

    task: Task
    doc_id: int
    repeats: int


@dataclass(frozen=True, slots=True)
class Job:
    """A document with all its answers, ready to be scored."""

    task: Task
    doc_id: int
    answers: tuple[Answer, ...]
    verdicts: tuple[Verdict, ...] = ()
    """What a judge said to the task's questions about it."""
    error: str = ""
    """Why it cannot be scored, beyond what its answers say."""

    @property
    def reason(self) -> str:
        """Why the document has failed; empty if it has not."""
        return self.error or next((answer.error for answer in self.answers if answer.error is not None), "")


@dataclass(slots=True)
class _Talk:
    """An open exchange and its current round."""

    unit: Unit
    repeat: int
    exchange: Exchange
    first_input: str = ""
    requests: tuple[Request, ...] = ()
    responses: dict[str, Response] = field(default_factory=dict)


class Conversations:
    """Source of requests and sink of responses. ``known`` looks a response up in the journal; ``deliver`` scores."""

    def __init__(
        self, units: Iterable[Unit], known: Callable[[str], Response | None], deliver: Callable[[Job], None]
    ) -> None:
        self._units, self._known, self._deliver = units, known, deliver
        self._lock = threading.RLock()
        self._open: dict[str, _Talk] = {}
        self._answers: dict[tuple[str, int], dict[int, Answer]] = {}
        self._moving = 0
        """Answers being taken in: their requests are no longer open, those of their next rounds not yet."""

    def has_open(self) -> bool:
        """Requests are out whose answers may bring further rounds."""
        return bool(self._open) or self._moving > 0

    def expect(self, request_id: str) -> None:
        """Raises ``ModelError`` unless this request waits for its answer."""
        if request_id not in self._open:
            raise ModelError(
                f"the model answered {request_id!r}, which is not open: a back end must answer every request that it "
                "took exactly once"
            )

    def open_requests(self) -> list[Request]:
        with self._lock:
            return [
                request for talk in {id(t): t for t in self._open.values()}.values()
                for request in talk.requests if request.id in self._open
            ]  # fmt: skip

    def source(self) -> Iterator[Request]:
        """Requests that no journal answers, built one document at a time."""
        for unit in self._units:
            for repeat in range(unit.repeats):
                yield from self._begin(unit, repeat)

    def take_in(self, response: Response) -> Sequence[Request]:
        """One answer; returns the requests of the next round that it makes ready.

        Raises:
            ModelError: no such request is open (a back end answered twice, or made an id up).
        """
        with self._lock:
            self.expect(response.request_id)
            self._moving += 1
            talk = self._open.pop(response.request_id)
            talk.responses[response.request_id] = response
            is_complete = len(talk.responses) == len(talk.requests)
        try:
            return self._continue(talk) if is_complete else ()
        finally:
            with self._lock:
                self._moving -= 1

    def _begin(self, unit: Unit, repeat: int) -> Sequence[Request]:
        try:
            exchange = unit.task.exchange(unit.doc_id, repeat)
            requests = tuple(exchange.open())
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything: one failed sample
            self._finish(unit, repeat, _failed(failure("building the request", error)))
            return ()
        talk = _Talk(unit, repeat, exchange, requests[0].context if requests else "")
        return self._ask(talk, requests)

    def _ask(self, talk: _Talk, requests: Sequence[Request]) -> Sequence[Request]:
        """Open a round; answers found in the journal are taken in at once."""
        talk.requests = tuple(requests)
        found = {request.id: self._known(request.id) for request in requests}
        talk.responses = {key: response for key, response in found.items() if response is not None}
        missing = [request for request in requests if found[request.id] is None]
        if not missing:
            return self._continue(talk)
        with self._lock:
            self._open.update((request.id, talk) for request in missing)
        return missing

    def _continue(self, talk: _Talk) -> Sequence[Request]:
        """The round is complete: on to the next one, or to the end."""
        responses = [talk.responses[request.id] for request in talk.requests]
        error = next((response.error for response in responses if response.error is not None), None)
        if error is not None:
            failed = _failed(f"{error.kind}: {error.message}", talk.first_input)
            self._finish(talk.unit, talk.repeat, replace(failed, media=sent_media(responses)))
            return ()
        requests: Sequence[Request] = ()
        answer: Answer | None = None
        try:
            requests = talk.exchange.advance(responses)
            answer = None if requests else talk.exchange.answer()
        except UsageError:
            raise
        except Exception as error_in_task:  # noqa: BLE001 - the task's own functions may raise anything
            answer = _failed(failure("continuing the conversation", error_in_task), talk.first_input)
        if answer is None:
            return self._ask(talk, requests)
        self._finish(talk.unit, talk.repeat, answer)
        return ()

    def _finish(self, unit: Unit, repeat: int, answer: Answer) -> None:
        key = (unit.task.name, unit.doc_id)
        with self._lock:
            answers = self._answers.setdefault(key, {})
            answers[repeat] = answer
            if len(answers) < unit.repeats:
                return
            del self._answers[key]
        self._deliver(Job(unit.task, unit.doc_id, tuple(answers[number] for number in range(unit.repeats))))


def _failed(reason: str, first_input: str = "") -> Answer:
    return Answer(value=None, error=reason, input=first_input)
