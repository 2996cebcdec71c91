"""A server on loopback with a language model of one token a character, in the plain form and that of chat completions.

A capital letter has the log-probability -1 where -0.5 is the highest, any other character is the likeliest with -0.25.
``<s>`` is a token that the plain form puts first.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def logprobs(token: str) -> tuple[float, float]:
    """The token's own, and the highest at its place."""
    return (-1.0, -0.5) if token.isupper() else (-0.25, -0.25)


def rendered(body: dict[str, Any]) -> list[str]:
    """The tokens of a conversation: a word for each role, and the characters of its texts."""
    tokens = []
    for message in body["messages"]:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
        tokens += [f"<{message['role']}>", *"".join(texts)]
    return tokens if body.get("continue_final_message") else [*tokens, "<assistant>"]


def chat(body: dict[str, Any]) -> dict[str, Any]:
    tokens = rendered(body)
    reply: dict[str, Any] = {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}
    if "prompt_logprobs" in body:
        told = []
        for number, token in enumerate(tokens):
            own, best = logprobs(token)
            entry = {str(number): {"logprob": own}, **({"-1": {"logprob": best}} if own != best else {})}
            told.append(entry if number else None)
        reply["prompt_logprobs"] = told
    return {**reply, "usage": {"prompt_tokens": len(tokens), "completion_tokens": 1}}


Scores = Callable[[list[int]], list[tuple[float, float]]]
"""From the tokens of a prompt to the scores of all but the first: the token's own, and the highest at its place."""


def of_ids(body: dict[str, Any], scores: Scores) -> dict[str, Any]:
    """As the plain form answers a prompt of token ids: without a token put first."""
    found = [*scores(body["prompt"]), (-9.0, -8.0)]  # with the one that was generated
    told = {
        "token_logprobs": [None, *(own for own, _ in found)],
        "top_logprobs": [None, *({"?": best} for _, best in found)],
    }
    usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": 1}
    return {"choices": [{"text": "x", "finish_reason": "length", "logprobs": told}], "usage": usage, "model": "m"}


def plain(body: dict[str, Any]) -> dict[str, Any]:
    tokens = ["<s>", *body["prompt"]]
    choice: dict[str, Any] = {"text": body["prompt"][::-1], "finish_reason": "stop"}
    if body.get("echo"):
        shown = [*tokens, "Z"]  # with the one that was generated
        choice["logprobs"] = {
            "token_logprobs": [None, *(logprobs(token)[0] for token in shown[1:])],
            "top_logprobs": [None, *({"?": logprobs(token)[1]} for token in shown[1:])],
        }
    return {"choices": [choice], "usage": {"prompt_tokens": len(tokens), "completion_tokens": 1}}


@contextmanager
def scoring_server(
    tells: bool = True, scores: Scores | None = None, status: Callable[[int], int] = lambda _: 200
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve; gives the address and the bodies received. ``tells``: log-probabilities are told where asked for.

    ``scores`` answers prompts of token ids; ``status`` gives the status of each reply by its number from 0.
    """
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # no 40 ms between head and body

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(dict(body))
            for name in () if tells else ("prompt_logprobs", "echo"):
                body.pop(name, None)
            if scores is not None and isinstance(body.get("prompt"), list):
                made = of_ids(body, scores)
            else:
                made = chat(body) if self.path.endswith("/chat/completions") else plain(body)
            reply = json.dumps(made).encode()
            self.send_response(status(len(bodies) - 1))
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
