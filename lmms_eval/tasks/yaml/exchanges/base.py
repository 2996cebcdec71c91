"""Base of exchanges with a model about one (document, repeat)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lmms_eval.api.request import Request, Response, sent_media
from lmms_eval.api.task import Answer, Exchange
from lmms_eval.tasks.yaml.requests import Ask, RequestFactory

T = TypeVar("T")


@dataclass(slots=True)
class TaskExchange(Exchange):
    requests: RequestFactory
    doc_id: int
    repeat: int
    _responses: list[Response] = field(default_factory=list)
    _input: str = ""

    def _request(self, ask: Ask) -> Request:
        return self.requests.request(self.doc_id, self.repeat, ask)

    def _first(self) -> str:
        with self.requests.seeding.prompt(self.doc_id):
            self._input = self.requests.builder.context(self.doc_id)
        return self._input

    def _answer(self, value: Any, is_loss: bool = True) -> Answer:
        latencies = [response.latency for response in self._responses if response.latency is not None]
        return Answer(
            value=value,
            usage=tuple(response.usage for response in self._responses),
            thoughts=_of_each([response.thoughts for response in self._responses]),
            stops=tuple(dict.fromkeys(stop for response in self._responses for stop in response.stops)),
            ended_by=_of_each([response.ended_by for response in self._responses]),
            finish_reason=self._responses[-1].finish_reason if self._responses else None,
            model=self._responses[-1].model if self._responses else None,
            latency=sum(latencies) if latencies else None,
            input=self._input,
            is_loss=is_loss,
            media=sent_media(self._responses),
        )


def _of_each(values: Sequence[T | None]) -> tuple[T | None, ...]:
    """Return the values of all responses; empty if no response has one."""
    return tuple(values) if any(value is not None for value in values) else ()
