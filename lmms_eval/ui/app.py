"""The evaluation server with its page, behind one guard."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmms_eval.server.app import make_app
from lmms_eval.server.service import Service
from lmms_eval.ui.desk import Desk
from lmms_eval.ui.endpoints import routes
from lmms_eval.viewer.live.guard import Guard

_SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


def page_app(service: Service, guard: Guard) -> ASGIApp:
    """Make the application: the server's endpoints and the page's, all of them for those alone whom the guard lets."""
    app: FastAPI = make_app(service)
    app.router.routes[:0] = routes(Desk(service, guard))
    return Guarded(app, guard)


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
                for name, value in _SAFE.items():
                    headers.setdefault(name.encode(), value.encode())
                message["headers"] = list(headers.items())
            await send(message)

        known = dict(Headers(scope=scope).items())
        refusal = self._guard.refuses(scope["method"], known, scope.get("query_string", b"").decode("latin-1"))
        if refusal is None:
            await self._app(scope, receive, safely)
        else:
            await JSONResponse({"detail": refusal.text}, refusal.status)(scope, receive, safely)
