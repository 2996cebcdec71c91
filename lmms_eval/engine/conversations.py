"""Open conversations with a model: the requests that wait for a response, and the next step after each response.

A conversation consists of rounds. With the model under test it is the exchange of a (document, repeat); with a judge it
is a question that is repeated until a reply can be parsed. On resume a conversation is replayed: rounds whose answers
are in the journal are not asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Protocol, TypeAlias

from msgspec import Struct, field, structs

from lmms_eval.api.judging import Verdict
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response, ResponseError, SentMedia, SentMessage, SentPart
from lmms_eval.api.task import Answer, Exchange, Task, first_asking
from lmms_eval.engine.prompts import message_fingerprint
from lmms_eval.engine.records import failure
from lmms_eval.errors import ModelError, UsageError
from lmms_eval.filters.reasoning import thoughts_apart

_Key: TypeAlias = "tuple[str, tuple[object, ...]]"
"""Key for comparing messages of different requests."""


class Transcript(Struct):
    """The messages of one exchange. Of a round with several requests (choices) only the first counts."""

    _messages: list[SentMessage] = field(default_factory=list)
    """Messages in order of time; media are numbered as in ``_media``."""
    _keys: list[_Key] = field(default_factory=list)
    _last: list[_Key] = field(default_factory=list)
    """Keys of the messages of the last round, including its answer."""
    _media: dict[SentMedia, int] = field(default_factory=dict)
    _rounds: int = 0
    _attempts: int = 0
    _context: str = ""
    _is_answered: bool = False
    """The last message is the answer to the last round."""
    _taken: list[tuple[Request, Response]] = field(default_factory=list)
    """Rounds that are not yet in ``_messages``: most exchanges have a single round, which needs no transcript."""

    def added(
        self, request: Request, messages: tuple[SentMessage, ...], media: Sequence[SentMedia]
    ) -> tuple[SentMessage, ...]:
        """Return the messages that a rendered request adds to the conversation so far."""
        if request.index:
            return ()
        if not self._rounds and not self._taken:
            return messages
        self._settle()
        messages = messages or (_only(request.context),)
        keys = [_key(message, request.context, tuple(dict.fromkeys(media))) for message in messages]
        if len(keys) > len(self._last) and keys[: len(self._last)] == self._last:
            first, *rest = messages[len(self._last) :]
            return (structs.replace(first, continues=True), *rest)
        pairs = zip(keys[:-1], self._keys, strict=False)  # the last message is always kept
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return (structs.replace(messages[common], after=common), *messages[common + 1 :])

    def take(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        """Add a round with its answer, if it has one."""
        for response in responses:
            for medium in response.media:
                self._media.setdefault(medium, len(self._media))
            self._attempts = max(self._attempts, response.attempts)
        first = next((one for one in responses if one.request_id == requests[0].id), None)
        if first is not None:
            self._taken.append((requests[0], first))

    def observe(self, text: str) -> None:
        """Add the task's observation on the last answer, unless it is empty."""
        if text:
            self._settle()
            self._is_answered = False
            self._messages.append(SentMessage("tool", (SentPart(text=text),), self._rounds - 1))
            self._keys.append(("tool", (text,)))

    @property
    def media(self) -> tuple[SentMedia, ...]:
        """The distinct media that were sent."""
        return tuple(self._media)

    def of(self, answer: Answer) -> Answer:
        """Return the answer with its conversation; the answer of a single round is already its value."""
        attempts = max(1, self._attempts)
        if not self._rounds and len(self._taken) == 1 and not self._taken[0][1].tool_messages:
            request, response = self._taken[0]  # the numbers of its media are those of the conversation
            self._context = context = request.context
            is_known = not response.messages and answer.input == context
            messages = [] if is_known else list(response.messages or (_only(context),))
        else:
            self._settle()
            messages = self._messages[:-1] if self._rounds == 1 and self._is_answered else self._messages
        if answer.input != self._context:
            messages = [
                structs.replace(message, content=tuple(_without_span(part, self._context) for part in message.content))
                for message in messages
            ]
        elif len(messages) == 1 and messages[0] == _only(self._context):
            messages = []
        if not messages and attempts == 1:
            return answer
        return structs.replace(answer, messages=tuple(messages), attempts=attempts)

    def _settle(self) -> None:
        for request, response in self._taken:
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
                self._messages.append(structs.replace(message, content=tuple(parts), round=number))
            for message in response.tool_messages:
                self._messages.append(structs.replace(message, round=number))
                keys.append(_key(message, "", ()))
            answer = _answer_message(response, number)
            self._is_answered = answer is not None
            if answer is not None:
                self._messages.append(answer)
                keys.append(_key(answer, "", ()))
            self._keys += keys
            self._last = self._last + keys
            self._rounds += 1
        self._taken.clear()

    def _of_answer(self, part: SentPart, context: str | None, own: Sequence[SentMedia]) -> SentPart:
        """Return a part with the number of its medium in the whole conversation."""
        if part.medium is not None:
            return structs.replace(part, medium=self._media[own[part.medium]])
        return part if context is None else _without_span(part, context)


def _only(context: str) -> SentMessage:
    """Return the message of a request without known messages: one user text."""
    return SentMessage("user", (SentPart(span=(0, len(context))),))


def _answer_message(response: Response, number: int) -> SentMessage | None:
    if response.error is not None or (response.text is None and not response.parts):
        return None
    parts = (SentPart(text=one) if isinstance(one, str) else SentPart(picture=one) for one in response.parts)
    content = tuple(parts) or (SentPart(text=response.text),)
    return SentMessage("assistant", content, number)


def _key(message: SentMessage, context: str, media: Sequence[SentMedia]) -> _Key:
    """Return the key of a message, with texts stripped: tasks strip an answer before they send it again."""
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


def _without_span(part: SentPart, context: str) -> SentPart:
    return part if part.span is None else SentPart(text=context[slice(*part.span)])


class Unit(Struct, frozen=True):
    """A document that is asked ``repeats`` times."""

    task: Task
    doc_id: int
    repeats: int


class AnsweredDocument(Struct, frozen=True):
    """A document with all its answers, ready for scoring."""

    task: Task
    doc_id: int
    answers: tuple[Answer, ...]
    verdicts: tuple[Verdict, ...] = ()
    """Verdicts of the judge on the task's questions about the document."""
    error: str = ""
    """Reason, other than a failed answer, why the document cannot be scored."""

    @property
    def reason(self) -> str:
        """Reason why the document failed; empty if it did not fail."""
        return self.error or next((answer.error for answer in self.answers if answer.error is not None), "")


class Conversation(Protocol):
    """Rounds of requests. A conversation delivers its outcome by itself when it ends."""

    @property
    def thought_tags(self) -> Sequence[tuple[str, str]] | None:
        """Tags of thoughts to remove from responses (``filters.reasoning.thoughts_apart``)."""

    def open(self) -> Sequence[Request] | None:
        """Build the requests of the first round; ``None``: the conversation has ended."""

    def advance(self, responses: Sequence[Response]) -> Sequence[Request] | None:
        """Build the next round after successful responses to all requests; ``None``: the conversation has ended."""

    def fail(self, error: ResponseError, responses: Sequence[Response]) -> None:
        """End the conversation because a request of the round was given up; ``responses`` are those of the round."""

    def accepts(self, response: Response) -> bool:
        """Return whether a response may be cached for later runs."""

    def fingerprint(self, messages: ChatMessages) -> str:
        """Return the fingerprint of a rendered request for the journal."""

    def added(
        self, request: Request, messages: tuple[SentMessage, ...], media: Sequence[SentMedia]
    ) -> tuple[SentMessage, ...]:
        """Return the messages of a rendered request that are recorded with its response."""


class _OpenConversation(Struct):
    """A conversation with its current round."""

    conversation: Conversation
    requests: tuple[Request, ...] = ()
    responses: dict[str, Response] = field(default_factory=dict)


class Conversations:
    """Source of requests and sink of responses; thread-safe.

    Args:
        source: conversations, which are opened one at a time.
        known: returns the recorded response to a request's id; ``None``: nothing is recorded.
        is_fed: further conversations arrive through ``begin`` until this is set to false.
    """

    def __init__(
        self,
        source: Iterable[Conversation] = (),
        known: Callable[[str], Response | None] | None = None,
        is_fed: bool = False,
    ) -> None:
        self._source, self._known, self.is_fed = source, known, is_fed
        self._lock = threading.RLock()
        self._open: dict[str, _OpenConversation] = {}
        self._over: ResponseError | None = None
        self._moving = 0
        """Number of responses being processed: their requests are no longer open, the next rounds not yet."""

    def has_open(self) -> bool:
        """Return whether further requests may arrive, since responses or conversations are outstanding."""
        return self.is_fed or bool(self._open) or self._moving > 0

    def of(self, request_id: str) -> Conversation:
        """Return the conversation of an open request. Raises ``ModelError`` if the request is not open."""
        opened = self._open.get(request_id)
        if opened is None:
            raise _not_open(request_id)
        return opened.conversation

    def request(self, request_id: str) -> Request:
        """Return an open request. Raises ``ModelError`` if it is not open."""
        opened = self._open.get(request_id)
        if opened is None:
            raise _not_open(request_id)
        return next(request for request in opened.requests if request.id == request_id)

    def open_requests(self) -> list[Request]:
        with self._lock:
            return [
                request for opened in {id(t): t for t in self._open.values()}.values()
                for request in opened.requests if request.id in self._open
            ]  # fmt: skip

    def source(self) -> Iterator[Request]:
        """Yield the requests without a recorded response, built one conversation at a time."""
        for conversation in self._source:
            yield from self.begin(conversation)

    def begin(self, conversation: Conversation) -> Sequence[Request]:
        """Open a conversation; returns the requests to send."""
        requests = conversation.open()
        return () if requests is None else self._ask(_OpenConversation(conversation), requests)

    def close(self, error: ResponseError) -> list[Request]:
        """Make every conversation fail that begins from now on; returns the open requests."""
        with self._lock:
            self._over = error
            return self.open_requests()

    def take_in(self, response: Response) -> Sequence[Request]:
        """Process one response; returns the requests of the next round, if the round is complete.

        Raises ``ModelError`` if the request is not open (the back end answered twice, or invented an id).
        """
        with self._lock:
            if response.request_id not in self._open:
                raise _not_open(response.request_id)
            self._moving += 1
            opened = self._open.pop(response.request_id)
            opened.responses[response.request_id] = response
            is_complete = len(opened.responses) == len(opened.requests)
        try:
            return self._continue(opened) if is_complete else ()
        finally:
            with self._lock:
                self._moving -= 1

    def _ask(self, opened: _OpenConversation, requests: Sequence[Request]) -> Sequence[Request]:
        """Open a round; recorded responses are processed at once."""
        opened.requests, opened.responses = tuple(requests), {}
        for request in requests:
            if self._known is not None and (response := self._known(request.id)) is not None:
                opened.responses[request.id] = thoughts_apart(response, opened.conversation.thought_tags)
        missing = [request for request in requests if request.id not in opened.responses]
        if not missing:
            return self._continue(opened)
        with self._lock:
            if self._over is None:
                self._open.update((request.id, opened) for request in missing)
                return missing
        opened.conversation.fail(self._over, tuple(opened.responses.values()))
        return ()

    def _continue(self, opened: _OpenConversation) -> Sequence[Request]:
        """Continue a conversation whose round is complete."""
        responses = [opened.responses[request.id] for request in opened.requests]
        error = next((response.error for response in responses if response.error is not None), None)
        if error is not None:
            opened.conversation.fail(error, responses)
            return ()
        requests = opened.conversation.advance(responses)
        return () if requests is None else self._ask(opened, requests)


def _not_open(request_id: str) -> ModelError:
    return ModelError(
        f"the model answered {request_id!r}, which is not open: a back end must answer every request that it took "
        "exactly once"
    )


class DocumentConversations:
    """Conversations about documents, one per repeat. A document with all its answers is passed to ``deliver``."""

    def __init__(
        self,
        units: Iterable[Unit],
        deliver: Callable[[AnsweredDocument], None],
        is_given_up: Callable[[str], object] = lambda _: False,
        more_tokens: str = "",
    ) -> None:
        """Create the source.

        Args:
            deliver: receives each document with all its answers.
            is_given_up: returns a true value for the name of a task that is not asked any further.
            more_tokens: token limit of the retry of a truncated answer; empty: no retry.
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

    def finish(self, conversation: _DocumentConversation, answer: Answer) -> None:
        """Receive the answer of one repeat."""
        unit, answer = conversation.unit, conversation.transcript.of(answer)
        key = (unit.task.name, unit.doc_id)
        with self._lock:
            answers = self._answers.setdefault(key, {})
            answers[conversation.repeat] = answer
            if len(answers) < unit.repeats:
                return
            del self._answers[key]
        self._deliver(
            AnsweredDocument(unit.task, unit.doc_id, tuple(answers[number] for number in range(unit.repeats)))
        )


class _DocumentConversation:
    """The exchange of one (document, repeat). If a function of the task raises, this sample fails."""

    __slots__ = (
        "_cut", "_documents", "_exchange", "_first_input", "_requests", "added", "repeat", "thought_tags", "transcript",
        "unit",
    )  # fmt: skip

    def __init__(self, documents: DocumentConversations, unit: Unit, repeat: int) -> None:
        self._documents, self.unit, self.repeat = documents, unit, repeat
        self._exchange: Exchange
        self._first_input = ""
        self._cut: Sequence[Response] = ()
        """Responses of a round. Some are being retried with more tokens."""
        self._requests: Sequence[Request] = ()
        self.transcript = Transcript()
        self.added = self.transcript.added
        self.thought_tags: Sequence[tuple[str, str]] | None = unit.task.thought_tags

    def open(self) -> Sequence[Request] | None:
        try:
            self._exchange = self.unit.task.exchange(self.unit.doc_id, self.repeat)
            self._requests = self._exchange.open()
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - a task's functions may raise anything: this sample fails
            self._documents.finish(self, self._failed(failure("building the request", error)))
            return None
        self._first_input = self._requests[0].context if self._requests else ""
        return self._requests

    def advance(self, responses: Sequence[Response]) -> Sequence[Request] | None:
        if self._documents.more_tokens and not self._cut and (retries := self._retries(responses)):
            return retries
        if self._cut:
            responses = self._completed(responses)
        if self._requests:
            self.transcript.take(self._requests, responses)
        try:
            self._requests = self._exchange.advance(responses)
            if observed := self._exchange.observation():
                self.transcript.observe(observed)
            if self._requests:
                return self._requests
            answer = self._exchange.answer()
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            answer = self._failed(failure("continuing the conversation", error))
        self._documents.finish(self, answer)
        return None

    def fail(self, error: ResponseError, responses: Sequence[Response]) -> None:
        if self._cut:  # a retry failed: use the answers that exist; another start retries the rest
            if self.advance([response for response in responses if response.error is None]) is None:
                return
        elif self._requests:
            self.transcript.take(self._requests, responses)
        failed = self._failed(f"{error.kind}: {error.message}")
        self._documents.finish(self, structs.replace(failed, media=self.transcript.media))

    def accepts(self, response: Response) -> bool:
        return response.error is None

    fingerprint = staticmethod(message_fingerprint)

    def _retries(self, responses: Sequence[Response]) -> list[Request]:
        """Return the requests of truncated answers with a higher token limit, once per round."""
        limit = self._documents.more_tokens
        cut = {response.request_id for response in responses if response.finish_reason == "length"}
        if cut:
            self._cut = responses
        return [request.with_more_tokens(limit) for request in self._requests if request.id in cut]

    def _completed(self, further: Sequence[Response]) -> list[Response]:
        """Replace the truncated responses by their retries."""
        found = {first_asking(response.request_id): response for response in further}
        responses, self._cut = self._cut, ()
        return [
            structs.replace(later, request_id=first.request_id, attempts=first.attempts + later.attempts)
            if (later := found.get(first.request_id)) is not None
            else first
            for first in responses
        ]

    def _failed(self, reason: str) -> Answer:
        return Answer(value=None, error=reason, input=self._first_input)
