"""Conversations with a model as they went: what each round added, the answers between, what the task made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypeAlias

from lmms_eval.api.request import Request, Response, SentMedia, SentMessage, SentPart
from lmms_eval.api.task import Answer

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
        answer = _said(response, number)
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


def _said(response: Response, number: int) -> SentMessage | None:
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
