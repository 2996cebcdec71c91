"""Generation in one request, in several rounds, or in one call of a plugin that runs the rounds itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.interleaved import response_text
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.api.task import Answer
from lmms_eval.filters.reasoning import THOUGHT_TAGS, split_thoughts
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.prompts import as_turns
from lmms_eval.tasks.yaml.render import RenderError, keep_originals
from lmms_eval.tasks.yaml.requests import Ask, MediaQuestion, MessageBuilder
from lmms_eval.utils.signatures import accepts, keywords_for

MAX_ROUNDS = 1000


class SingleExchange(TaskExchange):
    """``generate_until``: one request."""

    kind: RequestKind = "generate_until"

    def open(self) -> Sequence[Request]:
        context, requests = self._first(), self.requests
        question = context if requests.asks_context else None
        return [self._request(Ask(context, MessageBuilder(requests, self.doc_id, question=question), self.kind))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        return ()

    def answer(self) -> Answer:
        return self._answer(response_text(self._responses[0]))


class PluginRoundsExchange(SingleExchange):
    """``generate_until_multi_round`` of a plugin of the class interface: one call returns all rounds."""

    kind: RequestKind = "generate_until_multi_round"

    def answer(self) -> Answer:
        response = self._responses[0]
        if response.rounds is None:
            return self._answer([response_text(response)])
        tags = self.requests.task.thought_tags
        rounds = [split_thoughts(text, THOUGHT_TAGS if tags is None else tags) for text in response.rounds]
        made = self._answer([answer for _, answer in rounds])
        thoughts = tuple(thoughts for thoughts, _ in rounds)
        return replace(made, thoughts=thoughts) if any(thoughts) else made


class RoundsExchange(TaskExchange):
    """``generate_until_multi_round``: each round is a request; the task's function gives the next one or stops."""

    def open(self) -> Sequence[Request]:
        self._outputs: list[Any] = []
        self._info: Any = None
        return [self._request(Ask(self._first(), MessageBuilder(self.requests, self.doc_id)))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        self._outputs.append(response_text(responses[0]))
        number = len(self._responses)
        if number >= MAX_ROUNDS:
            raise RenderError(
                f"{self.requests.where}: the rounds of document {self.doc_id} did not stop after {MAX_ROUNDS}"
            )
        with self.requests.seeding.prompt(self.doc_id):
            follows = self._next(number)
        return [] if follows is None else [self._request(follows)]

    def answer(self) -> Answer:
        return self._answer(list(self._outputs))

    def _next(self, number: int) -> Ask | None:
        given = {"round_idx": number, "previous_output": list(self._outputs), "previous_round_info": self._info}
        by_messages = self.requests.config.doc_to_messages
        if by_messages is not None and accepts(by_messages, "round_idx"):
            return self._next_messages(keywords_for(by_messages, given), number)
        prompts, doc = self.requests.prompts, self.requests.documents[self.doc_id]
        made = prompts.text(doc, **given)
        visuals, text, stop, outputs, self._info = _elements(made, 5, f"{self.requests.where}: doc_to_text")
        self._keep(outputs)
        if stop:
            return None
        question = MediaQuestion(prompts, str(text), visuals or [])
        return Ask(str(text), MessageBuilder(self.requests, self.doc_id, question, bare=True), round=number)

    def _next_messages(self, given: Mapping[str, Any], number: int) -> Ask | None:
        where, messages_of = f"{self.requests.where}: doc_to_messages", self.requests.prompts.messages
        assert messages_of is not None
        keep_originals()
        made = messages_of(self.requests.documents[self.doc_id], **given)
        messages, stop, outputs, self._info = _elements(made, 4, where)
        self._keep(outputs)
        if stop:
            return None
        turns = as_turns(messages, where)
        context = "\n".join(p["text"] for t in turns for p in t["content"] if p.get("type") == "text")
        return Ask(context, MessageBuilder(self.requests, self.doc_id, lambda _doc: turns, bare=True), round=number)

    def _keep(self, outputs: Any) -> None:
        if outputs is not None:
            self._outputs = list(outputs)


def _elements(made: Any, count: int, where: str) -> Sequence[Any]:
    if not isinstance(made, tuple | list) or len(made) != count:
        raise RenderError(f"{where} must return {count} values for a later round, not {made!r:.120}")
    return made
