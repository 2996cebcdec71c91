"""The evaluation server with its page, behind one guard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from lmms_eval.errors import LmmsEvalError
from lmms_eval.http.guard import Guard
from lmms_eval.http.guarded import Guarded, plain_answer
from lmms_eval.server.app import make_app
from lmms_eval.server.service import Service
from lmms_eval.ui.desk import Desk
from lmms_eval.ui.endpoints import routes
from lmms_eval.ui.views import Views


@contextmanager
def page_app(service: Service, guard: Guard, is_ending: Callable[[], bool] = lambda: False) -> Iterator[ASGIApp]:
    """Make the application: the server's endpoints and the page's, all of them for those alone whom the guard lets.

    Args:
        service: runs the jobs; whoever made it starts and stops it.
        guard: who may ask.
        is_ending: the server is about to end: pages that wait for news are told so.
    """
    app: FastAPI = make_app(service)
    with Views(guard, is_ending) as views:
        desk = Desk(service, guard, views)
        app.router.routes[:0] = [*routes(desk), Mount("/view/{job_id}", ViewOfJob(desk))]
        yield Guarded(app, guard, answer=plain_answer)


class ViewOfJob:
    """The live view of the job that the address names."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            view = await run_in_threadpool(self._desk.view, scope["path_params"]["job_id"])
        except LmmsEvalError as error:
            await PlainTextResponse(str(error), 404)(scope, receive, send)
        else:
            await view(scope, receive, send)
