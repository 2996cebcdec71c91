"""The live view as a read-only ASGI application, which a larger server may mount, and its own server."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.http.bounds import bounded_config, listening
from lmms_eval.http.guard import Guard, Guarded
from lmms_eval.viewer.live.pieces import PieceError
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.page import SCRIPT, STYLE, bundle, live_page, live_policy

HOST = "127.0.0.1"
GRACE_S = 3
"""Seconds that open responses may take when the server ends."""


def listen(port: int) -> socket.socket:
    """Listen on a port of loopback, or on any free one for 0.

    Raises ``UsageError`` if the port is in use or not permitted.
    """
    if not 0 <= port < 1 << 16:
        raise UsageError(f"--port {port}: a number from 0 (any free one) to 65535 is needed")
    try:
        return listening(HOST, port)
    except OSError as error:
        why = "it is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
        raise UsageError(f"--port {port}: {why}; give another one, or none for any that is free") from error


class ViewServer(uvicorn.Server):
    """Serves an application until SIGINT or SIGTERM, which end it quietly. ``is_up`` is called when it can answer."""

    def __init__(self, app: ASGIApp, is_up: Callable[[], None]) -> None:
        super().__init__(bounded_config(app, log_level="error", timeout_graceful_shutdown=GRACE_S, lifespan="off"))
        self._is_up = is_up

    def run_on(self, listening: socket.socket) -> None:
        """Serve over a listening socket."""
        try:
            self.run(sockets=[listening])
        except SystemExit as error:
            raise LmmsEvalError("the view could not be served") from error

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_up()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as asyncio calls it
        self.force_exit = self.should_exit  # the server does not raise the signal again, unlike uvicorn
        self.should_exit = True


def can_open_browser(environ: Mapping[str, str]) -> bool:
    """Return whether the user who started the view can see a browser that is opened on this machine."""
    if any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")):
        return False
    return sys.platform in ("darwin", "win32") or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def ssh_hint(environ: Mapping[str, str], port: int, host: str) -> str:
    """Return the command that makes the view reachable from another machine."""
    words = environ.get("SSH_CONNECTION", "").split()
    server = words[2] if len(words) == 4 else host
    return f"ssh -N -L {port}:{HOST}:{port} {server}"


WAIT_S = 10.0
"""Most seconds until a request for changes is answered."""
_LOOK_EVERY_S = 0.1


def live_app(watch: Watch, guard: Guard, is_ending: Callable[[], bool] = lambda: False) -> Starlette:
    """Make the application. The caller enters and leaves the watch. The guard decides who may read the runs.

    Pages that wait for changes are answered when ``is_ending`` returns that the server is about to end.
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
        return Response(status_code=204)  # browsers request it by themselves, and complain about a 404

    async def changes(self, request: Request) -> Response:
        """Wait until pieces have changed, and return their names."""
        view, since = request.query_params.get("view", ""), _number(request.query_params.get("since", ""))
        end = time.monotonic() + WAIT_S
        while True:
            found = self._watch.changes(view, since)
            if found["names"] or self._is_ending() or time.monotonic() > end:
                return JSONResponse({**found, "ending": self._is_ending()})
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
        data, media_type = found
        return Response(data, media_type=media_type)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else -1
