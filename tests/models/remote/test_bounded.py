"""Replies that are too large, from real servers on loopback."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.text_to_image.illustrated import DrawingError, ImagesApi
from tests.cases import for_each
from tests.models.openai.support import ask, make_request
from tests.models.remote.dialects import ANTHROPIC, GEMINI, LITELLM

SPACES = b" " * (64 * 2**20)
ANSWER = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()


@contextmanager
def serving(body: bytes, encoding: str = "", status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that answers everything with ``body``, and the requests that came."""
    came: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            came.append(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.end_headers()
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """65 kB that unpack to 64 MiB."""
    return gzip.compress(SPACES, 1)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_reply_that_is_too_large_fails_once(bomb: bytes, encoding: str, status: int) -> None:
    body = bomb if encoding else SPACES[: 3 * 2**20]
    with serving(body, encoding, status) as (address, came):
        model = OpenAI(model="m", base_url=f"{address}/v1", api_key="k", max_reply_mb=2, max_retries=3)
        tracemalloc.start()
        response = ask(model, [make_request("one")])["one"]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert response.error is not None and response.error.kind == "malformed"
    assert f"{address}/v1/chat/completions sent a reply of more than 2 MiB (max_reply_mb=...)" in response.error.message
    assert len(came) == 1
    assert peak < 40 * 2**20


@for_each("encoding", ["", "gzip"])
def test_a_reply_within_the_bound_is_read(encoding: str) -> None:
    body = ANSWER + b" " * 2**20
    with serving(gzip.compress(body) if encoding else body, encoding) as (address, _):
        model = OpenAI(model="m", base_url=f"{address}/v1", api_key="k", max_reply_mb=2)
        assert ask(model, [make_request("one")])["one"].text == "yes"


def test_pictures_are_bounded_too(bomb: bytes) -> None:
    with serving(bomb, "gzip") as (address, _):
        painter = ImagesApi("m", {"base_url": f"{address}/v1", "api_key": "k", "max_reply_mb": 1})
        with pytest.raises(DrawingError, match="more than 1 MiB"):
            painter.draw(["a cat"], 0)
        painter.close()


@pytest.mark.parametrize("dialect", [ANTHROPIC, GEMINI], ids=lambda dialect: str(dialect.name))
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_vendors_packages_are_bounded_too(bomb: bytes, dialect, encoding: str) -> None:
    dialect.need()
    with serving(bomb if encoding else SPACES[: 3 * 2**20], encoding) as (address, came):
        model = dialect.build(base_url=address, max_reply_mb=2, max_retries=3)
        tracemalloc.start()
        response = dialect.ask(model, [make_request("one")])["one"]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert response.error is not None and response.error.kind == "malformed"
    assert "2 MiB (max_reply_mb=...)" in response.error.message or "encoded as gzip" in response.error.message
    assert len(came) == 1
    assert peak < 40 * 2**20


def test_litellm_takes_no_bound() -> None:
    with pytest.raises(ModelError, match=r"max_reply_mb: .*leave it out"):
        LITELLM.build(max_reply_mb=3)
