"""A scripted server of a model that thinks, on loopback: it honours stop strings and lengths as real servers do.

Every question holds its right answer (``ANSWER=x``). The model thinks in paragraphs, names a wrong answer in its
thoughts, and answers. Questions that say ``LONG`` make it think longer than any limit.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FORMS = ("plain", "inline", "opened", "reasoning_content", "reasoning", "channels", "thinking")
"""Where the thoughts stand: nowhere, in tags, before a closing tag alone, in a field of the message, in other tags."""
TAGS = {
    "inline": ("<think>", "</think>\n\n"),
    "opened": ("", "</think>\n\n"),
    "reasoning_content": ("<think>", "</think>\n\n"),
    "reasoning": ("<think>", "</think>\n\n"),
    "channels": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "thinking": ("<hm>", "</hm>"),
}
THOUGHTS = "Let me see.\n\nPerhaps it is a999.\n\nNo, it is not.\n\n"
_TOKEN = re.compile(r"\S+\s*|\s+")


def written(question: str, form: str) -> str:
    """Return all that the model would write, were it not stopped."""
    right = question.partition("ANSWER=")[2].split()[0]
    if form == "plain":
        return f"Let me see.\n\nPerhaps it is a999.\n\nNo, it is {right}"
    opening, closing = TAGS[form]
    return f"{opening}{THOUGHTS * (1000 if 'LONG' in question else 1)}{closing}{right}"


def generate(text: str, stops: list[str], limit: int) -> tuple[str, str, str | None]:
    """Cut a text as a server does: at a stop string, wherever it stands, or at the limit of tokens."""
    tokens = _TOKEN.findall(text)
    cut = "".join(tokens[:limit])
    places = [(place, stop) for stop in stops if (place := cut.find(stop)) >= 0]
    if places:
        place, stop = min(places)
        return cut[:place], "stop", stop
    return cut, "length" if len(tokens) > limit else "stop", None


class ThinkingServer:
    """Answers chat completions in one of the ``FORMS`` while it is entered.

    ``tells``: it says which stop string ended an answer.
    """

    def __init__(self, form: str, tells: bool = False) -> None:
        self.form, self.tells = form, tells
        self.bodies: list[dict[str, Any]] = []
        """Of all requests, in the order of their arrival."""

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make the completion of a request."""
        question = "".join(part["text"] for part in body["messages"][-1]["content"])
        thinks = body.get("chat_template_kwargs", {}).get("enable_thinking", True)
        form = self.form if thinks else "plain"
        stops = body.get("stop") or []
        text, finish, stop = generate(written(question, form), stops, body["max_tokens"])
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if form in ("reasoning_content", "reasoning"):
            thoughts, end, rest = text.removeprefix("<think>").partition("</think>")
            message = {"role": "assistant", "content": rest.lstrip("\n") if end else None, form: thoughts}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 5, "completion_tokens": len(_TOKEN.findall(text))}
        return {"choices": [{**choice, "stop_reason": stop} if self.tells else choice], "usage": usage, "model": "m"}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ThinkingServer:
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # no 40 ms between head and body

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                scripted.bodies.append(body)
                sent = json.dumps(scripted.answer(body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
