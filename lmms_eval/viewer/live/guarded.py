"""An ASGI application behind a guard."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmms_eval.viewer.live.guard import Guard

_SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
_SEALED = "default-src 'none'; frame-ancestors 'none'"


class Guarded:
    """Checks each request before anything else sees it, and adds what keeps browsers strict."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

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
                for name, value in {**_SAFE, "content-security-policy": _SEALED}.items():
                    headers.setdefault(name.encode(), value.encode())
                message["headers"] = list(headers.items())
            await send(message)

        known = dict(Headers(scope=scope).items())
        refusal = self._guard.refuses(scope["method"], known, scope.get("query_string", b"").decode("latin-1"))
        if refusal is None:
            await self._app(scope, receive, safely)
            return
        headers = {"allow": ", ".join(self._guard.methods)} if refusal.status == 405 else None
        await PlainTextResponse(f"{refusal.text}\n", refusal.status, headers)(scope, receive, safely)
