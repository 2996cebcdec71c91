"""Endpoints of the page, and the application that serves it."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lmms_eval.errors import LmmsEvalError, RequestError
from lmms_eval.http.guard import Guard, Guarded, plain_answer
from lmms_eval.server.app import make_app
from lmms_eval.server.choices import TaskSearch
from lmms_eval.server.endpoints import WrongStateError, answer_error
from lmms_eval.server.events import ALIVE_S, EVERY_S, event
from lmms_eval.server.outcome import page_of, runs_of
from lmms_eval.server.page.desk import Desk, Views, scores
from lmms_eval.server.page.preview import as_yaml
from lmms_eval.server.service import Service
from lmms_eval.server.store import Job, State
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.redaction import redact
from lmms_eval.viewer.page import bundle

SCRIPT, STYLE = "ui.js", "ui.css"
_ENDS: dict[State, str] = {"completed": "done", "cancelled": "stopped", "failed": "error"}
MOST_BODY = 1 << 20
"""Bytes that a request may have."""
MOST_LETTERS = 200
"""Characters of a search that count."""
Work = Callable[["EndpointCall"], Any]


def policy(nonce: str) -> str:
    """Return the Content-Security-Policy: scripts and styles with this answer's nonce, data of this server only."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'nonce-{nonce}'",
        "style-src": f"'nonce-{nonce}'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def page(nonce: str) -> str:
    """Return the HTML of the page."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>lmms-eval</title>
<link rel="stylesheet" href="{STYLE}" nonce="{nonce}">
</head>
<body>
<div id="app"></div>
<noscript>This page is drawn by a script of the same server: allow scripts to use it.</noscript>
<script src="{SCRIPT}" nonce="{nonce}"></script>
</body>
</html>
"""


async def stream(desk: Desk, job_id: str) -> AsyncIterator[bytes]:
    """Yield the log of a job from its beginning, and at the end its final state."""
    place, quiet_s = 0, 0.0
    while True:
        job = await run_in_threadpool(desk.service.store.get, job_id)
        if job is None:  # no longer in the list
            return
        while True:
            piece = await run_in_threadpool(desk.log, job_id, place)
            if piece["next"] == place:
                break
            place, quiet_s = piece["next"], 0.0
            yield event("output", json.dumps({"text": piece["text"]}))
        if job.has_ended:
            yield event(_ENDS[job.state], json.dumps({"job_id": job_id}))
            return
        quiet_s += EVERY_S
        if quiet_s > ALIVE_S:
            quiet_s = 0.0
            yield b": still here\n\n"
        await asyncio.sleep(EVERY_S)


class EndpointCall:
    """A request, as the function behind an endpoint receives it."""

    def __init__(self, desk: Desk, request: Request, body: bytes) -> None:
        self.desk, self.request, self.body = desk, request, body

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def job(self) -> Job:
        """Find the job that the path names. Raises ``NoJobError``."""
        return self.desk.service.job(self.path("job_id"))

    def mapping(self) -> dict[str, Any]:
        """Return the body, which must be a JSON object. Raises ``RequestError``."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the body is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise RequestError("the body is not a JSON object")
        return found


def endpoint(desk: Desk, work: Work) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that runs ``work`` in a thread and answers errors as the server does."""

    async def answered(request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                return JSONResponse({"detail": f"more than {MOST_BODY} bytes"}, 413)
        try:
            found = await run_in_threadpool(work, EndpointCall(desk, request, bytes(body)))
        except LmmsEvalError as error:
            return answer_error(request, error)
        return found if isinstance(found, Response) else JSONResponse(found)

    return answered


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the page."""
    reads: dict[str, Work] = {
        "/": show,
        f"/{SCRIPT}": lambda _: Response(bundle(SCRIPT), media_type="text/javascript"),
        f"/{STYLE}": lambda _: Response(bundle(STYLE), media_type="text/css"),
        "/favicon.ico": lambda _: Response(status_code=204),  # browsers request it on their own
        "/ui/offer": lambda call: call.desk.offer(),
        "/ui/tasks": search_tasks,
        "/ui/models/{name:path}": describe_model,
        "/ui/tasks/{name:path}": lambda call: call.desk.tasks.details(call.path("name")),
        "/tasks/{name:path}/yaml": lambda call: PlainTextResponse(call.desk.tasks.yaml(call.path("name"))),
        "/ui/machine": lambda call: call.desk.machine("fresh" in call.request.query_params),
        "/ui/jobs": lambda call: {"jobs": call.desk.jobs()},
        "/ui/jobs/{job_id}": lambda call: call.desk.job(call.path("job_id")),
        "/ui/jobs/{job_id}/log": read_log,
        "/ui/submissions/{key}": lambda call: {
            "job_id": getattr(call.desk.service.store.of_key(call.path("key")), "job_id", None)
        },
        "/pages/{name}/{file:path}": read_page,
        "/eval/{job_id}/stream": follow,
        "/logs/runs/{job_id}/samples/{task:path}": read_samples,
        "/logs/runs": lambda call: {"runs": call.desk.runs()},
        "/logs/runs/{job_id}/results": lambda call: {"job_id": call.path("job_id"), "scores": scores(call.job())},
    }
    writes: dict[str, Work] = {
        "/ui/tasks/{name:path}/check": lambda call: {"missing": call.desk.missing(call.path("name"))},
        "/ui/pages": lambda call: to_dict(call.desk.make_pages(call.mapping().get("jobs"))),
        "/eval/preview": lambda call: to_dict(call.desk.preview(call.mapping())),
        "/eval/export-yaml": lambda call: {"yaml": as_yaml(redact(call.mapping()))},
        "/eval/import-yaml": import_yaml,
        "/eval/start": start,
        "/eval/{job_id}/stop": stop,
    }
    made = [Route(path, endpoint(desk, work), methods=["POST"]) for path, work in writes.items()]
    return [*made, *(Route(path, endpoint(desk, work), methods=["GET"]) for path, work in reads.items())]


def show(call: EndpointCall) -> Response:
    """Answer with the page. An address with the token redirects, and the browser keeps the token as a cookie."""
    guard = call.desk.guard
    if guard.is_token(call.request.url.query):
        return RedirectResponse("/", 303, {"set-cookie": guard.set_cookie})
    nonce = secrets.token_urlsafe(18)
    return Response(page(nonce), headers={"content-security-policy": policy(nonce)}, media_type="text/html")


def describe_model(call: EndpointCall) -> dict[str, Any]:
    """Describe the arguments of a model, and those that the name of a service implies."""
    arguments, fixed = call.desk.models.details(call.path("name"))
    return {"name": call.path("name"), "arguments": [to_dict(one) for one in arguments], "fixed": fixed}


def search_tasks(call: EndpointCall) -> dict[str, Any]:
    """Search tasks, groups and tags. ``name``, which may be repeated, asks for the facts of names instead."""
    given = call.request.query_params
    if names := given.getlist("name"):
        return {"tasks": [to_dict(one) for one in call.desk.tasks.named(names)]}
    most = given.get("most", str(TaskSearch().most))
    if not (most.isascii() and most.isdigit() and 0 < len(most) < 6):
        raise RequestError("most: give a whole number")
    terms = {key: given.get(key, "")[:MOST_LETTERS] for key in ("word", "kind", "modality", "need")}
    return to_dict(call.desk.tasks.search(TaskSearch(**terms, source=given.get("source"), most=int(most))))


def read_log(call: EndpointCall) -> dict[str, Any]:
    """Read the log of a job from a position on."""
    text = call.request.query_params.get("from", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise RequestError("from: give a place in the log, 0 or more")
    return call.desk.log(call.path("job_id"), int(text))


def follow(call: EndpointCall) -> Response:
    """Follow the log of a job to its end."""
    return StreamingResponse(stream(call.desk, call.job().job_id), media_type="text/event-stream")


def read_samples(call: EndpointCall) -> dict[str, Any]:
    """Read samples of a task of a job's run."""
    numbers = {
        name: call.request.query_params.get(name, default) for name, default in (("offset", "0"), ("limit", "50"))
    }
    for name, text in numbers.items():
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise RequestError(f"{name}: give a whole number")
    runs = runs_of(call.job())
    return page_of(runs, call.path("task"), int(numbers["offset"]), int(numbers["limit"]), None)


def read_page(call: EndpointCall) -> Response:
    """Send a file of the pages of runs. HTML pages contain their own Content-Security-Policy."""
    found = call.desk.page_file(call.path("name"), call.path("file") or "index.html")
    if found is None:
        return PlainTextResponse("there is no such page", 404)
    is_page = found.suffix == ".html"
    rules = "frame-ancestors 'none'" if is_page else "default-src 'none'; sandbox; frame-ancestors 'none'"
    return FileResponse(found, headers={"content-security-policy": rules})


def import_yaml(call: EndpointCall) -> dict[str, Any]:
    """Convert the text of a configuration file to a request."""
    text = call.mapping().get("yaml")
    if not isinstance(text, str):
        raise RequestError("yaml: give the text of the file")
    return to_dict(call.desk.read_request(text))


def start(call: EndpointCall) -> dict[str, Any]:
    """Submit a job, once for each ``Idempotency-Key``."""
    client = call.request.client.host if call.request.client else ""
    return call.desk.start(call.mapping(), call.request.headers.get("idempotency-key"), client)


def stop(call: EndpointCall) -> dict[str, Any]:
    """Cancel a job."""
    job = call.job()
    if job.has_ended:
        raise WrongStateError(f"the evaluation has ended: it is {job.state}")
    call.desk.service.cancel(job.job_id)
    return {"message": f"Job {job.job_id} is being stopped"}


@contextmanager
def page_app(service: Service, guard: Guard, is_ending: Callable[[], bool] = lambda: False) -> Iterator[ASGIApp]:
    """Build the application: the endpoints of the server and of the page, behind a guard.

    Args:
        service: runs the jobs. The caller starts and stops it.
        guard: rules for requests.
        is_ending: returns whether the server is about to end, so that pages that wait for news are released.
    """
    app: FastAPI = make_app(service)
    with Views(guard, is_ending) as views:
        desk = Desk(service, guard, views)
        desk.tasks.read_ahead()

        async def view_of_job(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                view: ASGIApp = await run_in_threadpool(desk.view, scope["path_params"]["job_id"])
            except LmmsEvalError as error:
                view = PlainTextResponse(str(error), 404)
            await view(scope, receive, send)

        app.router.routes[:0] = [*routes(desk), Mount("/view/{job_id}", view_of_job)]
        yield Guarded(app, guard, answer=plain_answer)
