"""Base of exchanges with a model about one (document, repeat)."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.request import Request, Response, sent_media
from lmms_eval.api.task import Answer, Exchange
from lmms_eval.tasks.yaml.requests import Ask, RequestSettings


@dataclass(slots=True)
class TaskExchange(Exchange):
    requests: RequestSettings
    doc_id: int
    repeat: int
    _responses: list[Response] = field(default_factory=list)
    _input: str = ""

    def _request(self, ask: Ask) -> Request:
        """Make one request; its seed follows from the run's seed and its name."""
        shared, doc_id = self.requests, self.doc_id
        name = f"{shared.task.name}/{doc_id}/{self.repeat}/{ask.round}/{ask.index}"
        digest = hashlib.sha256(f"{shared.options.seed}|{name}".encode()).digest()
        generates = ask.kind != "loglikelihood"
        sent = shared.sent.copy() if generates else {}
        for key in shared.changeable if generates else ():
            sent[key] = copy.deepcopy(sent[key])
        return Request(
            id=name,
            kind=ask.kind,
            task=shared.task,
            doc_id=doc_id,
            build_messages=ask.messages,
            context=ask.context,
            generation=sent,
            continuation=ask.continuation,
            implied_delimiter=ask.implied_delimiter,
            implied_stop=shared.implied_stop if generates else "",
            repeat=self.repeat,
            round=ask.round,
            index=ask.index,
            seed=int.from_bytes(digest[:4], "big") >> 1,
            cost=shared.cost(doc_id),
        )

    def _first(self) -> str:
        with self.requests.seeding.prompt(self.doc_id):
            self._input = self.requests.builder.context(self.doc_id)
        return self._input

    def _answer(self, value: Any, is_loss: bool = True) -> Answer:
        latencies = [response.latency for response in self._responses if response.latency is not None]
        thoughts = tuple(response.thoughts for response in self._responses)
        ended_by = tuple(response.ended_by for response in self._responses)
        return Answer(
            value=value,
            usage=tuple(response.usage for response in self._responses),
            thoughts=thoughts if any(one is not None for one in thoughts) else (),
            stops=tuple(dict.fromkeys(stop for response in self._responses for stop in response.stops)),
            ended_by=ended_by if any(one is not None for one in ended_by) else (),
            finish_reason=self._responses[-1].finish_reason if self._responses else None,
            model=self._responses[-1].model if self._responses else None,
            latency=sum(latencies) if latencies else None,
            input=self._input,
            is_loss=is_loss,
            media=sent_media(self._responses),
        )
