"""The application: endpoints above a service."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmms_eval.errors import LmmsEvalError
from lmms_eval.http.bodies import BoundedBody
from lmms_eval.server.answers import answer_error
from lmms_eval.server.contents import Runs
from lmms_eval.server.endpoints import family_router
from lmms_eval.server.events import Feeds
from lmms_eval.server.job_endpoints import contents_router
from lmms_eval.server.metrics import Metrics
from lmms_eval.server.reference import reference_page
from lmms_eval.server.service import Service


def make_app(service: Service) -> FastAPI:
    """Make the application; the service begins its work when the application does, and ends with it."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    # FastAPI's own pages of documentation load their scripts from another site.
    app = FastAPI(title="lmms-eval", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = service
    app.add_exception_handler(LmmsEvalError, answer_error)
    app.state.runs, app.state.feeds, app.state.metrics = Runs(), Feeds(service), Metrics(service)
    app.include_router(family_router())
    app.include_router(contents_router())
    app.add_middleware(BoundedBody)
    app.add_middleware(Timing, metrics=app.state.metrics)
    app.add_api_route("/docs", docs, methods=["GET"], include_in_schema=False, response_class=HTMLResponse)
    return app


def docs(request: Request) -> HTMLResponse:
    """Show the endpoints as a page without scripts."""
    return HTMLResponse(
        reference_page(request.app.openapi()),
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )


class Timing:
    """Middleware that notes how long answers take to begin."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.monotonic()

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "none")
                self._metrics.saw(scope["method"], route, message["status"], time.monotonic() - begin)
            await send(message)

        await self._app(scope, receive, noted)
