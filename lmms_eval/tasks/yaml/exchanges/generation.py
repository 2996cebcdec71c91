"""Generation in one request, or in one call of a plugin that makes the rounds itself."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval.api.interleaved import said
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.api.task import Answer
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.requests import Ask, MessageBuilder


class SingleExchange(TaskExchange):
    """``generate_until``: one request. Also a multi-round plugin, which makes the rounds itself."""

    kind: RequestKind = "generate_until"

    def open(self) -> Sequence[Request]:
        return [self._request(Ask(self._first(), MessageBuilder(self.requests, self.doc_id), self.kind))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        return ()

    def answer(self) -> Answer:
        return self._answer(said(self._responses[0]))


class PluginRoundsExchange(SingleExchange):
    """``generate_until_multi_round`` by a plugin of the class interface: one call gives all rounds."""

    kind: RequestKind = "generate_until_multi_round"

    def answer(self) -> Answer:
        response = self._responses[0]
        return self._answer(list(response.rounds) if response.rounds is not None else [said(response)])
