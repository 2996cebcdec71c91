"""A judge that a program registers under a name: for tests and demonstrations, not to be named by a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, ResponseError
from lmms_eval.errors import UnknownNameError

Script = Callable[[ChatMessages, Request], str | ResponseError]
"""Function from the rendered prompt and its request to the reply, or to the error that it ends with."""
_SCRIPTS: dict[str, Script] = {}


def register_script(name: str, script: Script) -> None:
    """Make ``scripted:NAME`` a judge in this process."""
    _SCRIPTS[name] = script


class ScriptedJudge(Model):
    """Answers by a registered function. Raises ``UnknownNameError`` for a name that nobody registered."""

    concurrency = 8

    def __init__(self, name: str) -> None:
        if name not in _SCRIPTS:
            raise UnknownNameError("scripted judge", name, _SCRIPTS)
        self.name, self._script = name, _SCRIPTS[name]

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(self.concurrency):
            for request in requests:
                said = self._script(request.payload, request)
                if isinstance(said, ResponseError):
                    yield Response(request.id, error=said)
                else:
                    yield Response(request.id, text=said, finish_reason="stop")

    def identity(self) -> Mapping[str, Any]:
        return {"scripted": self.name}
