"""The web application of a server, its metrics and documentation page, and the process that serves it."""

from __future__ import annotations

import errno
import html
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmms_eval.errors import LmmsEvalError, MissingOptionalDependencyError, UsageError
from lmms_eval.http.bounds import BoundedBody, listening
from lmms_eval.http.guard import Guard, Guarded, Rates, json_answer
from lmms_eval.server.endpoints import answer_error, server_router
from lmms_eval.server.events import Feeds
from lmms_eval.server.service import Service
from lmms_eval.server.settings import TOKEN_VARIABLE, ServerSettings
from lmms_eval.server.store import STATES
from lmms_eval.utils.addresses import is_loopback
from lmms_eval.utils.redaction import learn_secrets

if TYPE_CHECKING:
    import uvicorn


_HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>lmms-eval server</title>'
    '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}'
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td{border-top:1px solid #8886;padding:.2rem .6rem .2rem 0;"
    "vertical-align:top;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .3rem}</style>"
    "<h1>lmms-eval server</h1><p>The same as a schema: <a href=openapi.json>openapi.json</a></p>"
)
log = logging.getLogger(__name__)
METHODS = ("GET", "HEAD", "POST", "DELETE")
_GUESSES, _GUESSES_PER_S = 20, 0.2
"""Wrong tokens that one client may send: as a burst, and per second after that."""
_EXTRA = "the server needs further packages: pip install 'lmms_eval[server]'"


class Metrics(Collector):
    """Prometheus metrics of one server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._seconds = Histogram(
            "lmms_eval_request_seconds",
            "Time to the beginning of an answer",
            ["method", "route", "status"],
            registry=self._registry,
        )

    def collect(self) -> Iterator[Metric]:
        counts = self._service.store.counts()
        jobs = GaugeMetricFamily("lmms_eval_jobs", "Jobs in the list, by state", labels=["state"])
        for state in STATES:
            jobs.add_metric([state], counts.get(state, 0))
        yield jobs
        scheduler = self._service.scheduler
        ended = CounterMetricFamily("lmms_eval_jobs_ended", "Jobs that have ended since the start", labels=["state"])
        for final, count in scheduler.ended.items():
            ended.add_metric([final], count)
        yield ended
        yield GaugeMetricFamily("lmms_eval_gpus", "GPUs that are given out to jobs", len(scheduler.room.gpus))
        yield GaugeMetricFamily("lmms_eval_gpus_held", "GPUs that running jobs hold", len(scheduler.held_gpus))

    def timing(self, app: ASGIApp) -> ASGIApp:
        """Return an application that also records how long its answers take to begin."""

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            begin = time.monotonic()

            async def recorded(message: Message) -> None:
                if message["type"] == "http.response.start":
                    # The pattern of the path: so the number of time series is bounded.
                    route = getattr(scope.get("route"), "path", "none")
                    labels = scope["method"], route, str(message["status"])
                    self._seconds.labels(*labels).observe(time.monotonic() - begin)
                await send(message)

            await app(scope, receive, recorded)

        return timed

    def text(self) -> bytes:
        return generate_latest(self._registry)


def reference_page(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a page that shows an OpenAPI description."""
    yield _HEAD
    for path, methods in schema.get("paths", {}).items():
        for method, operation in methods.items():
            yield f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"
            yield f"<p>{html.escape(operation.get('description', ''))}</p>"
            rows = [
                _row(one["name"], one.get("schema", {}), one.get("description", f"in the {one['in']}"))
                for one in operation.get("parameters", ())
            ]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            if "$ref" in body:
                body = schema["components"]["schemas"][body["$ref"].rpartition("/")[2]]
            for name, field in body.get("properties", {}).items():
                rows.append(_row(name, field, field.get("description", "")))
            if rows:
                yield f"<table>{''.join(rows)}</table>"


def _row(name: str, field: Mapping[str, Any], text: str) -> str:
    parts = (part for part in field.get("anyOf", [field]) if part.get("type") != "null")
    kind = " or ".join(str(part.get("type", part.get("enum", "any"))) for part in parts)
    default = field.get("default")
    text += f" (default: {default})" if default is not None else ""
    return f"<tr><td><code>{html.escape(name)}</code><td>{html.escape(kind)}<td>{html.escape(text)}"


def make_app(service: Service) -> FastAPI:
    """Build the application. The service starts and stops with it."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    # FastAPI's own documentation pages load their scripts from another site.
    app = FastAPI(title="lmms-eval", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = service
    app.add_exception_handler(LmmsEvalError, answer_error)
    app.state.feeds, app.state.metrics = Feeds(service), Metrics(service)
    app.include_router(server_router())
    app.add_middleware(BoundedBody)
    app.add_middleware(lambda inner: app.state.metrics.timing(inner))
    app.add_api_route("/docs", docs, methods=["GET"], include_in_schema=False, response_class=HTMLResponse)
    return app


def docs(request: Request) -> HTMLResponse:
    """Answer with a page of the endpoints that needs no scripts."""
    return HTMLResponse(
        "".join(reference_page(request.app.openapi())),
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )


def serve(settings: ServerSettings, announce: Callable[[str], None] = log.info) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        settings: settings of the server.
        announce: called with the address that the server listens on.

    Raises:
        UsageError: the address is in use or the folder cannot be used.
        MissingOptionalDependencyError: the extra is not installed.
    """
    try:
        import uvicorn

        from lmms_eval.http.bounds import bounded_config
        from lmms_eval.server.service import Service
    except ImportError as error:
        raise MissingOptionalDependencyError(f"{_EXTRA} ({error})") from error
    check_token(settings)
    with bound(settings) as listener:
        host, port = listener.getsockname()[:2]
        app = guarded(make_app(Service(settings)), settings, port)
        server = uvicorn.Server(bounded_config(app, timeout_graceful_shutdown=5, lifespan="on"))
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        with ending_quietly(server):
            announce(f"listening on http://{place}, jobs in {settings.folder.absolute()}")
            server.run(sockets=[listener])


def check_token(settings: ServerSettings) -> None:
    """Keep the token out of logs. Raises ``UsageError`` if other machines can reach the server and it has no token."""
    if not is_loopback(settings.host) and not settings.token:
        port = settings.port or "PORT"
        raise UsageError(
            f"--host {settings.host}: everyone who reaches this address could run evaluations: give a token "
            f"(--token_file FILE, or {TOKEN_VARIABLE}), or leave the address out and reach the server through a "
            f"tunnel (ssh -L {port}:localhost:{port} HOST)"
        )
    learn_secrets({"token": settings.token}, os.environ)


def guarded(app: ASGIApp, settings: ServerSettings, port: int) -> ASGIApp:
    """Return an application that answers only the requests that the server's rules allow."""
    is_open = not is_loopback(settings.host)
    own = {settings.host, socket.gethostname()} if is_open else set()
    names = frozenset(name.lower().rstrip(".") for name in (*own, *settings.allow_hosts))
    guard = Guard(str(port), settings.token, "serve", METHODS, is_page=False, names=names, any_address=is_open)
    return Guarded(app, guard, json_answer, Rates(_GUESSES, _GUESSES_PER_S))


@contextmanager
def ending_quietly(server: uvicorn.Server) -> Iterator[None]:
    """Make SIGINT and SIGTERM end the server and nothing else, also when uvicorn raises the signal again at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def bound(settings: ServerSettings) -> socket.socket:
    """Bind the server's address. Raises ``UsageError``."""
    place = f"{settings.host}:{settings.port}"
    try:
        return listening(settings.host, settings.port)
    except socket.gaierror as error:
        raise UsageError(f"{place}: not an address of this machine: {error}") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"{place} is in use: another process listens there; choose another --port") from error
        raise UsageError(f"cannot listen on {place}: {error.strerror or error}") from error
