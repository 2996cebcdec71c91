"""Requests, and a stream of them in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.api.model import Model
from lmms_eval.api.request import Request, Response


class MemoryStream:
    """A ``RequestStream`` over a list; ``push`` and ``close`` feed it while it is read."""

    def __init__(self, requests: Iterable[Request], closed: bool = True) -> None:
        self._ready = list(requests)
        self._closed = closed
        self._changed = asyncio.Event()
        self.asked_for: list[int] = []
        self.is_stopped = False

    def push(self, *requests: Request) -> None:
        self._ready.extend(requests)
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    def take(self, max_n: int) -> list[Request]:
        self.asked_for.append(max_n)
        taken, self._ready = self._ready[:max_n], self._ready[max_n:]
        return taken

    async def take_async(self, max_n: int) -> list[Request]:
        while not self._ready and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        return self.take(max_n)

    def take_full(self, max_n: int) -> list[Request] | None:
        return None if self.is_stopped else self.take(max_n)

    def put_away(self, request: Request) -> None:
        request.free()

    def stop(self) -> None:
        """Hand out nothing more."""
        self.is_stopped, self._ready = True, []
        self.close()


def make_request(
    name: str | int,
    text: str | None = None,
    visuals: Sequence[Any] = (),
    generation: Mapping[str, Any] | None = None,
    messages: ChatMessages | None = None,
    seed: int = 0,
) -> Request:
    """A question named ``name`` whose right answer at the stub server is ``name`` too."""
    shown = text if text is not None else f"question {name} ANSWER={name}"

    def build() -> ChatMessages:
        return messages or ChatMessages.model_validate({"messages": build_user_turn(list(visuals), shown)})

    return Request(
        id=str(name),
        kind="generate_until",
        task=None,  # type: ignore[arg-type]
        doc_id=0,
        build_messages=build,
        context=shown,
        generation=generation or {"max_new_tokens": 16, "temperature": 0},
        seed=seed,
    )


def ask(model: Model, requests: Iterable[Request], leaves_tasks: bool = False) -> dict[str, Response]:
    """Prepare and ask all; responses by request id, each exactly once."""

    async def run() -> dict[str, Response]:
        found: dict[str, Response] = {}
        async for response in model.respond(MemoryStream([model.prepare(request) for request in requests])):  # type: ignore[union-attr]
            assert response.request_id not in found
            found[response.request_id] = response
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert leaves_tasks or not left
        return found

    return asyncio.run(run())
