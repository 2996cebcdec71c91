"""The application: endpoints above a service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from lmms_eval.errors import LmmsEvalError
from lmms_eval.server.answers import answer_error
from lmms_eval.server.endpoints import family_router
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
    app.include_router(family_router())
    app.add_api_route("/docs", docs, methods=["GET"], include_in_schema=False, response_class=HTMLResponse)
    return app


def docs(request: Request) -> HTMLResponse:
    """Show the endpoints as a page without scripts."""
    return HTMLResponse(
        reference_page(request.app.openapi()),
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )
