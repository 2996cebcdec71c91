"""Generation in one request, or in one call of a plugin that runs the rounds itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lmms_eval.api.interleaved import response_text
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.api.task import Answer
from lmms_eval.filters.reasoning import THOUGHT_TAGS, split_thoughts
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.requests import Ask, MessageBuilder


class SingleExchange(TaskExchange):
    """``generate_until``: one request."""

    kind: RequestKind = "generate_until"

    def open(self) -> Sequence[Request]:
        return [self._request(Ask(self._first(), MessageBuilder(self.requests, self.doc_id), self.kind))]

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
