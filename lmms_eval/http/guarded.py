"""Middleware that checks each request before anything else sees it, and adds what keeps browsers strict."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmms_eval.http.guard import Guard, Refusal
from lmms_eval.http.rates import Rates, retry_after

_SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
_HEAD_BYTES = 32 << 10


def plain_answer(refusal: Refusal) -> Response:
    """Answer a refused request of a browser."""
    return PlainTextResponse(f"{refusal.text}\n", refusal.status)


def json_answer(refusal: Refusal) -> Response:
    """Answer a refused request of a program."""
    return JSONResponse({"detail": refusal.text}, refusal.status)


class Guarded:
    """An application behind a guard.

    Args:
        app: the application.
        guard: who may ask.
        answer: makes the answer to a refused request.
        failures: how many wrong tokens a client may send; beyond that nothing it sends is looked at for a while.
    """

    def __init__(
        self,
        app: ASGIApp,
        guard: Guard,
        answer: Callable[[Refusal], Response] = plain_answer,
        failures: Rates | None = None,
    ) -> None:
        self._app, self._guard, self._answer, self._failures = app, guard, answer, failures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: there are none
            await send({"type": "websocket.close", "code": 1008})
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = {name.lower(): value for name, value in message.get("headers", ())}
                for name, value in _SAFE.items():
                    headers.setdefault(name.encode(), value.encode())
                message["headers"] = list(headers.items())
            await send(message)

        answer = self._refused(scope)
        if answer is None:
            await self._app(scope, receive, safely)
            return
        answer.headers["connection"] = "close"  # whatever else it sends is not read
        await answer(scope, receive, safely)

    def _refused(self, scope: Scope) -> Response | None:
        client = (scope.get("client") or ("",))[0]
        if self._failures is not None and (wait := self._failures.wait_s(client)):
            answer = self._answer(Refusal(429, "too many wrong tokens came from this address: wait"))
            answer.headers["retry-after"] = retry_after(wait)
            return answer
        if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["raw_path"]) > _HEAD_BYTES:
            return self._answer(Refusal(431, f"the head of the request is larger than {_HEAD_BYTES} bytes"))
        known = dict(Headers(scope=scope).items())
        refusal = self._guard.refuses(scope["method"], known, scope.get("query_string", b"").decode("latin-1"))
        if refusal is None:
            return None
        if refusal.is_guess and self._failures is not None:
            self._failures.take(client)
        answer = self._answer(refusal)
        if refusal.status == 405:
            answer.headers["allow"] = ", ".join(self._guard.methods)
        elif refusal.status == 401:
            answer.headers["www-authenticate"] = "Bearer"
        return answer
