"""A server on loopback that answers from a list: answers that a sound server seldom gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One answer; ``status`` 0 closes the connection instead."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Scripted:
    url: str
    seen: list[dict[str, Any]]
    """Each request: ``method, path, headers, body``."""


@contextmanager
def scripted(answers: list[Answer], port: int = 0) -> Iterator[Scripted]:
    """Serve the answers in order, the last one again and again."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # no 40 ms between head and body

        def _answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.loads(content) if content else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.append({"method": self.command, "path": self.path, "headers": headers, "body": body})
            answer = answers[min(len(seen), len(answers)) - 1]
            if not answer.status:
                self.close_connection = True
                return
            text = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {**answer.headers, "content-length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Scripted(f"http://127.0.0.1:{server.server_address[1]}", seen)
    finally:
        server.shutdown()
        server.server_close()
