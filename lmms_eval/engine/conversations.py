"""Open conversations with a model: which requests are out, and which responses lead to what.

A conversation goes round after round. Of the model under test it is the exchange of a (document, repeat), of a judge a
question that is asked again while its replies cannot be read. On resume a conversation is replayed: rounds whose
answers the journal holds are not asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Protocol, TypeAlias

from lmms_eval.api.judging import Verdict
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response, ResponseError, SentMedia, SentMessage, SentPart
from lmms_eval.api.task import Answer, Exchange, Task, first_asking
from lmms_eval.engine.prompts import message_fingerprint
from lmms_eval.engine.records import failure
from lmms_eval.errors import ModelError, UsageError
from lmms_eval.filters.reasoning import thoughts_apart

_Key: TypeAlias = "tuple[str, tuple[object, ...]]"
"""Form of a message in which equal ones are equal, whichever request they stand in."""


class Transcript:
    """The messages of one exchange, of a round with several requests (choices) those of the first."""

    def __init__(self) -> None:
        self._messages: list[SentMessage] = []
        """In order of time; media by their numbers in ``_media``."""
        self._keys: list[_Key] = []
        self._last: list[_Key] = []
        """The messages of the last round with its answer."""
        self._media: dict[SentMedia, int] = {}
        self._rounds = self._attempts = 0
        self._context = ""
        self._is_answered = False
        """The last message is the answer to the last round."""
        self._taken: list[tuple[Request, Response]] = []
        """Rounds that are not among the messages yet: most exchanges have one, of which there is nothing to tell."""

    def added(
        self, request: Request, messages: tuple[SentMessage, ...], media: Sequence[SentMedia]
    ) -> tuple[SentMessage, ...]:
        """Return what a rendered request adds to the conversation so far."""
        if request.index:
            return ()
        self._settle()
        if not self._rounds:
            return messages
        messages = messages or (_only(request.context),)
        keys = [_key(message, request.context, tuple(dict.fromkeys(media))) for message in messages]
        if len(keys) > len(self._last) and keys[: len(self._last)] == self._last:
            first, *rest = messages[len(self._last) :]
            return (replace(first, continues=True), *rest)
        pairs = zip(keys[:-1], self._keys, strict=False)  # the last message is always told
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return (replace(messages[common], after=common), *messages[common + 1 :])

    def take(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        """Add a round: what was asked, and the answer where there is one."""
        for response in responses:
            for medium in response.media:
                self._media.setdefault(medium, len(self._media))
            self._attempts = max(self._attempts, response.attempts)
        first = next((one for one in responses if one.request_id == requests[0].id), None)
        if first is not None:
            self._taken.append((requests[0], first))

    def observe(self, text: str) -> None:
        """Add what the task made of the last answer, unless it is nothing."""
        if text:
            self._settle()
            self._is_answered = False
            self._messages.append(SentMessage("tool", (SentPart(text=text),), self._rounds - 1))
            self._keys.append(("tool", (text,)))

    @property
    def media(self) -> tuple[SentMedia, ...]:
        """All that was sent, each once."""
        return tuple(self._media)

    def of(self, answer: Answer) -> Answer:
        """Return the answer with its conversation; the answer to the only round is its value."""
        attempts = max(1, self._attempts)
        if not self._rounds and attempts == 1 and self._has_only(answer.input):
            return answer
        self._settle()
        messages = self._messages[:-1] if self._rounds == 1 and self._is_answered else self._messages
        if answer.input != self._context:
            messages = [_without_spans(message, self._context) for message in messages]
        elif messages == [_only(self._context)]:
            messages = []
        if not messages and attempts == 1:
            return answer
        return replace(answer, messages=tuple(messages), attempts=attempts)

    def _has_only(self, text: str) -> bool:
        """Tell whether nothing was taken, or one round of which no more is known than this text."""
        if len(self._taken) != 1:
            return not self._taken
        request, response = self._taken[0]
        return not response.messages and not response.tool_messages and request.context == text

    def _settle(self) -> None:
        for request, response in self._taken:
            self._add(request, response)
        self._taken.clear()

    def _add(self, request: Request, response: Response) -> None:
        context, number = request.context, self._rounds
        if not number:
            self._context = context
        sent = response.messages or (_only(context),)
        own = tuple(dict.fromkeys(response.media))
        keys = [_key(message, context, own) for message in sent]
        if not sent[0].continues:
            self._last = self._keys[: sent[0].after or 0]
        for message in sent:
            parts = (self._of_answer(part, context if number else None, own) for part in message.content)
            self._messages.append(replace(message, content=tuple(parts), round=number))
        for message in response.tool_messages:
            self._messages.append(replace(message, round=number))
            keys.append(_key(message, "", ()))
        answer = _answer_message(response, number)
        self._is_answered = answer is not None
        if answer is not None:
            self._messages.append(answer)
            keys.append(_key(answer, "", ()))
        self._keys += keys
        self._last = self._last + keys
        self._rounds += 1

    def _of_answer(self, part: SentPart, context: str | None, own: Sequence[SentMedia]) -> SentPart:
        """Return a part with its medium by its number in the whole conversation."""
        if part.medium is not None:
            return replace(part, medium=self._media[own[part.medium]])
        return part if context is None else _without_span(part, context)


def _only(context: str) -> SentMessage:
    """Return the message of a request of which nothing is told: one text of the user."""
    return SentMessage("user", (SentPart(span=(0, len(context))),))


def _answer_message(response: Response, number: int) -> SentMessage | None:
    if response.error is not None or (response.text is None and not response.parts):
        return None
    parts = (SentPart(text=one) if isinstance(one, str) else SentPart(picture=one) for one in response.parts)
    content = tuple(parts) or (SentPart(text=response.text),)
    return SentMessage("assistant", content, number)


def _key(message: SentMessage, context: str, media: Sequence[SentMedia]) -> _Key:
    """White space around texts is left out: tasks strip an answer before they send it again."""
    parts: list[object] = []
    for part in message.content:
        if part.picture is not None:
            parts.append(part.picture.sha256)
        elif part.call is not None:
            parts.append(part.call)
        elif part.medium is not None:
            parts.append((media[part.medium], part.frame))
        elif part.kind:
            parts.append((part.kind, part.frame))
        else:
            parts.append((_without_span(part, context).text or "").strip())
    return message.role, tuple(parts)


def _without_spans(message: SentMessage, context: str) -> SentMessage:
    return replace(message, content=tuple(_without_span(part, context) for part in message.content))


def _without_span(part: SentPart, context: str) -> SentPart:
    return part if part.span is None else SentPart(text=context[slice(*part.span)])


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
    """Those of a judge on the task's questions about it."""
    error: str = ""
    """Reason for which it cannot be scored, beyond those of its answers."""

    @property
    def reason(self) -> str:
        """Reason for which the document has failed; empty if it has not."""
        return self.error or next((answer.error for answer in self.answers if answer.error is not None), "")


class Conversation(Protocol):
    """Rounds of requests. Each conversation hands its outcome on by itself when it is over."""

    @property
    def thought_tags(self) -> Sequence[tuple[str, str]] | None:
        """Tags of the thoughts that are taken out of its responses, as ``filters.reasoning.thoughts_apart`` has it."""

    def open(self) -> Sequence[Request] | None:
        """Build the requests of the first round; ``None``: it is over already."""

    def advance(self, responses: Sequence[Response]) -> Sequence[Request] | None:
        """Go on after a round whose requests are all answered, none failed; ``None``: it is over."""

    def fail(self, error: ResponseError, responses: Sequence[Response]) -> None:
        """End it: a request of the round was given up. ``responses`` are those of the round."""

    def accepts(self, response: Response) -> bool:
        """Tell whether a response is fit to be kept for later runs."""

    def fingerprint(self, messages: ChatMessages) -> str:
        """Fingerprint of a rendered request, as the journal keeps it."""

    def added(
        self, request: Request, messages: tuple[SentMessage, ...], media: Sequence[SentMedia]
    ) -> tuple[SentMessage, ...]:
        """Return those messages of a rendered request that are to be kept with its response."""


@dataclass(slots=True)
class _OpenConversation:
    """An open conversation and its current round."""

    conversation: Conversation
    requests: tuple[Request, ...] = ()
    responses: dict[str, Response] = field(default_factory=dict)


class Conversations:
    """Source of requests and sink of responses; safe from several threads.

    Args:
        source: conversations, begun one at a time.
        known: finds a response in the journal by the request's id.
        is_fed: further conversations come by ``begin`` until this is set to false.
    """

    def __init__(
        self,
        source: Iterable[Conversation] = (),
        known: Callable[[str], Response | None] = lambda _: None,
        is_fed: bool = False,
    ) -> None:
        self._source, self._known, self.is_fed = source, known, is_fed
        self._lock = threading.RLock()
        self._open: dict[str, _OpenConversation] = {}
        self._over: ResponseError | None = None
        self._moving = 0
        """Answers being taken in: their requests are no longer open, those of their next rounds not yet."""

    def has_open(self) -> bool:
        """Further requests may come: answers are outstanding, or conversations."""
        return self.is_fed or bool(self._open) or self._moving > 0

    def of(self, request_id: str) -> Conversation:
        """Find the conversation in which a request waits for its answer. Raises ``ModelError`` if there is none."""
        talk = self._open.get(request_id)
        if talk is None:
            raise ModelError(
                f"the model answered {request_id!r}, which is not open: a back end must answer every request that it "
                "took exactly once"
            )
        return talk.conversation

    def read(self, response: Response) -> Response:
        """Take the thoughts in a response apart from its answer. Raises ``ModelError`` as ``of``."""
        return thoughts_apart(response, self.of(response.request_id).thought_tags)

    def open_requests(self) -> list[Request]:
        with self._lock:
            return [
                request for talk in {id(t): t for t in self._open.values()}.values()
                for request in talk.requests if request.id in self._open
            ]  # fmt: skip

    def source(self) -> Iterator[Request]:
        """Requests that no journal answers, built one conversation at a time."""
        for conversation in self._source:
            yield from self.begin(conversation)

    def begin(self, conversation: Conversation) -> Sequence[Request]:
        """Open a conversation; returns what is to be asked."""
        requests = conversation.open()
        return () if requests is None else self._ask(_OpenConversation(conversation), requests)

    def close(self, error: ResponseError) -> list[Request]:
        """Let every conversation that begins from now on fail at once; returns the requests that are open."""
        with self._lock:
            self._over = error
            return self.open_requests()

    def take_in(self, response: Response) -> Sequence[Request]:
        """One answer; returns the requests of the next round that it makes ready.

        Raises:
            ModelError: no such request is open (a back end answered twice, or made an id up).
        """
        with self._lock:
            self.of(response.request_id)
            self._moving += 1
            talk = self._open.pop(response.request_id)
            talk.responses[response.request_id] = response
            is_complete = len(talk.responses) == len(talk.requests)
        try:
            return self._continue(talk) if is_complete else ()
        finally:
            with self._lock:
                self._moving -= 1

    def _ask(self, talk: _OpenConversation, requests: Sequence[Request]) -> Sequence[Request]:
        """Open a round; answers found in the journal are taken in at once."""
        talk.requests = tuple(requests)
        found = {request.id: self._known(request.id) for request in requests}
        tags = talk.conversation.thought_tags
        talk.responses = {
            key: thoughts_apart(response, tags) for key, response in found.items() if response is not None
        }
        missing = [request for request in requests if found[request.id] is None]
        if not missing:
            return self._continue(talk)
        with self._lock:
            if self._over is None:
                self._open.update((request.id, talk) for request in missing)
                return missing
        talk.conversation.fail(self._over, tuple(talk.responses.values()))
        return ()

    def _continue(self, talk: _OpenConversation) -> Sequence[Request]:
        """The round is complete: on to the next one, or to the end."""
        responses = [talk.responses[request.id] for request in talk.requests]
        error = next((response.error for response in responses if response.error is not None), None)
        if error is not None:
            talk.conversation.fail(error, responses)
            return ()
        requests = talk.conversation.advance(responses)
        return () if requests is None else self._ask(talk, requests)


class Documents:
    """Documents as conversations, one for each repeat; a document goes to ``deliver`` with all its answers."""

    def __init__(
        self,
        units: Iterable[Unit],
        deliver: Callable[[Job], None],
        is_given_up: Callable[[str], object] = lambda _: False,
        more_tokens: str = "",
    ) -> None:
        """Make conversations of documents.

        Args:
            units: the documents.
            deliver: takes each document with all its answers.
            is_given_up: tells whether the task of this name is not to be asked any further.
            more_tokens: limit with which a truncated answer is asked for once more; empty: it stays as it is.
        """
        self.more_tokens = more_tokens
        self._units, self._deliver, self._is_given_up = units, deliver, is_given_up
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, int], dict[int, Answer]] = {}

    def __iter__(self) -> Iterator[Conversation]:
        for unit in self._units:
            if self._is_given_up(unit.task.name):
                continue
            for repeat in range(unit.repeats):
                yield _DocumentConversation(self, unit, repeat)

    def finish(self, unit: Unit, repeat: int, answer: Answer) -> None:
        """Take the answer of one repeat."""
        key = (unit.task.name, unit.doc_id)
        with self._lock:
            answers = self._answers.setdefault(key, {})
            answers[repeat] = answer
            if len(answers) < unit.repeats:
                return
            del self._answers[key]
        self._deliver(Job(unit.task, unit.doc_id, tuple(answers[number] for number in range(unit.repeats))))


class _DocumentConversation:
    """The exchange of one (document, repeat). What the task's functions raise is one failed sample."""

    __slots__ = ("_cut", "_documents", "_exchange", "_first_input", "_repeat", "_requests", "_transcript", "_unit")

    def __init__(self, documents: Documents, unit: Unit, repeat: int) -> None:
        self._documents, self._unit, self._repeat = documents, unit, repeat
        self._exchange: Exchange
        self._first_input = ""
        self._cut: Sequence[Response] = ()
        """Answers of a round, some of which are asked for again with more tokens."""
        self._requests: Sequence[Request] = ()
        self._transcript = Transcript()

    @property
    def thought_tags(self) -> Sequence[tuple[str, str]] | None:
        return self._unit.task.thought_tags

    def open(self) -> Sequence[Request] | None:
        try:
            self._exchange = self._unit.task.exchange(self._unit.doc_id, self._repeat)
            self._requests = self._exchange.open()
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything: one failed sample
            self._finish(self._failed(failure("building the request", error)))
            return None
        self._first_input = self._requests[0].context if self._requests else ""
        return self._requests

    def advance(self, responses: Sequence[Response]) -> Sequence[Request] | None:
        if again := self._again(responses):
            return again
        if self._cut:
            responses = self._completed(responses)
        self._take(responses)
        try:
            self._requests = self._exchange.advance(responses)
            self._transcript.observe(self._exchange.observation())
            if self._requests:
                return self._requests
            answer = self._exchange.answer()
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            answer = self._failed(failure("continuing the conversation", error))
        self._finish(answer)
        return None

    def fail(self, error: ResponseError, responses: Sequence[Response]) -> None:
        if self._cut:  # the answers that are there stay, and another start asks for the rest of them
            further = self.advance([response for response in responses if response.error is None])
            if further is not None:
                self._finish(replace(self._failed(f"{error.kind}: {error.message}"), media=self._transcript.media))
            return
        self._take(responses)
        failed = self._failed(f"{error.kind}: {error.message}")
        self._finish(replace(failed, media=self._transcript.media))

    def accepts(self, response: Response) -> bool:
        return response.error is None

    def fingerprint(self, messages: ChatMessages) -> str:
        return message_fingerprint(messages)

    def added(
        self, request: Request, messages: tuple[SentMessage, ...], media: Sequence[SentMedia]
    ) -> tuple[SentMessage, ...]:
        return self._transcript.added(request, messages, media)

    def _again(self, responses: Sequence[Response]) -> list[Request]:
        """Return the requests of truncated answers with more tokens, once for each round."""
        limit = self._documents.more_tokens
        if not limit or self._cut:
            return []
        cut = {response.request_id for response in responses if response.finish_reason == "length"}
        if cut:
            self._cut = responses
        return [request.with_more_tokens(limit) for request in self._requests if request.id in cut]

    def _completed(self, further: Sequence[Response]) -> list[Response]:
        """Put the further attempts in the place of the truncated answers."""
        found = {first_asking(response.request_id): response for response in further}
        responses, self._cut = self._cut, ()
        return [
            replace(later, request_id=first.request_id, attempts=first.attempts + later.attempts)
            if (later := found.get(first.request_id)) is not None
            else first
            for first in responses
        ]

    def _take(self, responses: Sequence[Response]) -> None:
        if self._requests:
            self._transcript.take(self._requests, responses)

    def _finish(self, answer: Answer) -> None:
        self._documents.finish(self._unit, self._repeat, self._transcript.of(answer))

    def _failed(self, reason: str) -> Answer:
        return Answer(value=None, error=reason, input=self._first_input)
