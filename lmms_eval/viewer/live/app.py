"""The view as an ASGI application, which a larger server may mount: GET only, nothing is ever written."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from lmms_eval.http.guard import Guard
from lmms_eval.http.guarded import Guarded
from lmms_eval.viewer.live.pieces import PieceError
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.page import SCRIPT, STYLE, bundle, live_page, live_policy

WAIT_S = 10.0
"""A page that asks for changes is answered after so many seconds at the latest."""
_LOOK_EVERY_S = 0.1


def live_app(watch: Watch, guard: Guard, is_ending: Callable[[], bool] = lambda: False) -> Starlette:
    """Make the application.

    Args:
        watch: the runs; whoever made it enters and leaves it.
        guard: who may read them.
        is_ending: the server is about to end: pages that wait for changes are told so.
    """
    view = _View(watch, guard, is_ending)
    routes = [
        Route("/", view.page),
        Route(f"/{SCRIPT}", view.script),
        Route(f"/{STYLE}", view.style),
        Route("/favicon.ico", view.icon),
        Route("/changes", view.changes),
        Route("/data/{name}.json", view.piece),
        Route("/media/{name}", view.medium),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guarded, guard=guard)])


class _View:
    def __init__(self, watch: Watch, guard: Guard, is_ending: Callable[[], bool]) -> None:
        self._watch, self._guard, self._is_ending = watch, guard, is_ending

    async def page(self, request: Request) -> Response:
        nonce = secrets.token_urlsafe(18)
        headers = {"content-security-policy": f"{live_policy(nonce)}; frame-ancestors 'none'"}
        if self._guard.is_token(request.url.query):
            headers["set-cookie"] = self._guard.set_cookie
        return Response(live_page(nonce), headers=headers, media_type="text/html")

    async def script(self, _: Request) -> Response:
        return Response(bundle(SCRIPT), media_type="text/javascript")

    async def style(self, _: Request) -> Response:
        return Response(bundle(STYLE), media_type="text/css")

    async def icon(self, _: Request) -> Response:
        return Response(status_code=204)  # browsers ask for it by themselves, and complain where there is none

    async def changes(self, request: Request) -> Response:
        """Wait until something has changed, and name it."""
        view, since = request.query_params.get("view", ""), _number(request.query_params.get("since", ""))
        end = time.monotonic() + WAIT_S
        while True:
            found = self._watch.changes(view, since)
            if found.names or self._is_ending() or time.monotonic() > end:
                told = {"view": found.view, "version": found.version, "names": found.names}
                return JSONResponse({**told, "ending": self._is_ending()})
            await asyncio.sleep(_LOOK_EVERY_S)

    async def piece(self, request: Request) -> Response:
        try:
            text = await run_in_threadpool(self._watch.piece, request.path_params["name"])
        except PieceError as error:
            return PlainTextResponse(str(error), 404)
        return Response(text, media_type="application/json")

    async def medium(self, request: Request) -> Response:
        found = await run_in_threadpool(self._watch.medium, request.path_params["name"])
        if found is None:
            return PlainTextResponse("the view has no such picture or sound", 404)
        return Response(found.data, media_type=found.type)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else -1
