"""A collector of OpenTelemetry that takes OTLP over HTTP, or misbehaves."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector:
    """Keeps the spans that it receives: ``with Collector() as collector: ... collector.url``.

    Args:
        status: code of its replies.
        delay: seconds until each reply.
        dies_after: number of requests that it answers before it ends for good.
    """

    def __init__(self, status: int = 200, delay: float = 0.0, dies_after: int | None = None) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.heads: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._status, self._delay, self._dies_after = status, delay, dies_after
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = handler.rfile.read(int(handler.headers["content-length"]))
        self.paths.append(handler.path)
        self.heads.append({name.lower(): value for name, value in handler.headers.items()})
        time.sleep(self._delay)
        request = ExportTraceServiceRequest.FromString(body)
        if self._status == 200:
            for resource in request.resource_spans:
                self.resources.append({one.key: one.value.string_value for one in resource.resource.attributes})
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        handler.send_response(self._status)
        handler.send_header("content-length", "0")
        handler.end_headers()
        if self._dies_after is not None and len(self.paths) >= self._dies_after:
            threading.Thread(target=self.die, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.take(self)

            def log_message(self, *_: object) -> None: ...

        return Handler


def attributes(span: Any) -> dict[str, Any]:
    """Return the attributes of a span, or of an event, as plain values."""
    return {one.key: _plain(one.value) for one in span.attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_plain(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)
