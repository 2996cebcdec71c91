"""A chat-completions server on loopback with a fixed delay, counters and faults to order.

``python -m tests.servers.stub --delay 0.05`` prints ``{"port": ...}`` and serves until its input ends or it is
terminated; ``StubServer`` does that for tests. It is written on ``asyncio.Protocol``, so that benchmarks measure the
client. Beside chat completions it speaks the forms of ``dialects``: the address decides. The answer to a question is
the text after ``ANSWER=`` in the last user message, else eight hexadecimal digits of the SHA-1 of that message's text.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import hashlib
import json
import math
import os
import random
import select
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import orjson

from tests.servers import dialects, streaming, tool_calls

ROOT = Path(__file__).resolve().parents[2]
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Command line of the server; ``StubServer`` takes the same names."""

    port: int = 0
    delay: float = 0.0
    """Seconds between the end of a request and its answer."""
    last: int = 0
    """Keep the last request bodies in place of the first ones."""
    fault: str = ""
    """A status code (``500``, ``429``, ``401``, ``404``, ``400``, ...) or a name from ``FAULTS``; empty: none."""
    share: float = 1.0
    """Part of the questions that the fault meets, chosen by the hash of the body."""
    times: int = 0
    """How often the fault meets a question before it is answered; 0: always."""
    retry_after: str = ""
    """``Retry-After`` header of 429 and 5xx answers: a number of seconds, or ``date:N`` for a date N seconds ahead."""
    limit: int = 0
    """Requests beyond so many at a time get 429; 0: no limit."""
    model: str = ""
    """The only model that exists (404 for others); empty: any."""
    key: str = ""
    """The only key that is accepted (401 for others), or the whole ``Authorization`` header; empty: any."""
    reply: str = ""
    """Text of every answer; empty: by the question."""
    flips: float = 0.0
    """Probability that two answers to a question differ: some are the word after ``ELSE=`` in the question, at random.
    """
    pieces: float = 0.0
    """Seconds between the pieces of a stream; answers without a stream take as long as their pieces together."""
    slow: float = 30.0
    """Delay of the fault ``slow`` in seconds."""


@dataclass(slots=True)
class Counts:
    """What ``GET /stats`` gives."""

    total: int = 0
    completed: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    bytes: int = 0
    connections: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    by_body: Counter[str] = field(default_factory=Counter)
    """Requests by SHA-1 of the body."""
    by_text: Counter[str] = field(default_factory=Counter)
    """Requests by the last user text (its first 200 characters)."""
    times: list[float] = field(default_factory=list)
    """Unix time of each arrival."""


def last_user_text(body: dict[str, Any]) -> str:
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            content = message["content"]
            if isinstance(content, str):
                return content
            return "\n".join(part["text"] for part in content if part["type"] == "text")
    return ""


def answer(text: str) -> str:
    _, found, after = text.partition("ANSWER=")
    return after.strip() if found else hashlib.sha1(text.encode()).hexdigest()[:8]


def completion(
    body: dict[str, Any], text: str | None, finish_reason: str = "stop", **message: Any
) -> tuple[int, dict[str, Any]]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish_reason,
    }
    usage = {
        "prompt_tokens": len(last_user_text(body)) // 4 + 1,
        "completion_tokens": len(text or "") // 4 + 1,
        "total_tokens": len(last_user_text(body)) // 4 + len(text or "") // 4 + 2,
        "completion_tokens_details": {"reasoning_tokens": 7 if message.get("reasoning_content") else 0},
    }
    return 200, {"id": "stub", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}


def error(status: int, message: str, code: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"message": message, "type": "stub_error", "code": code}}


Fault = Callable[[dict[str, Any]], tuple[int, Any]]
FAULTS: dict[str, Fault] = {
    "malformed": lambda body: (200, b"<html>gateway</html>"),
    "not_utf8": lambda body: (200, b'{"choices": "\xff"}'),
    "no_choices": lambda body: (200, {"choices": []}),
    "wrong_types": lambda body: (200, {"choices": [{"message": {"content": 7}}]}),
    "error_in_200": lambda body: (200, {"error": {"message": "upstream is overloaded", "code": 503}}),
    "empty": lambda body: completion(body, ""),
    "white_space": lambda body: completion(body, " \n\t"),
    "tool_call": lambda body: completion(body, None, "tool_calls", tool_calls=[{"type": "function", "id": "f"}]),
    "finish_error": lambda body: completion(body, "half an ans", "error"),
    "filtered_text": lambda body: completion(body, "I cannot say.", "content_filter"),
    "other_model": lambda body: completion({**body, "model": "stub-2026-11"}, answer(last_user_text(body))),
    "truncated": lambda body: completion(body, "cut o", "length"),
    "wordy": lambda body: (
        completion(body, "Let me", "length") if body.get("max_tokens", 1 << 20) < 64
        else completion(body, answer(last_user_text(body)))
    ),
    "content_filter": lambda body: completion(body, "", "content_filter"),
    "refusal": lambda body: completion(body, None, refusal="I cannot help with that."),
    "reasoning": lambda body: completion(body, None, reasoning_content="the answer is " + answer(last_user_text(body))),
    "thought_too_long": lambda body: completion(body, None, "length", reasoning_content="well, let me think"),
    "parts": lambda body: completion(body, None, content=[{"type": "text", "text": text} for text in ("par", "ts")]),
    "pictures": lambda body: completion(body, None, content=dialects.PICTURES),
    "context_length": lambda body: error(
        400, "This model's maximum context length is 4096 tokens.", "context_length_exceeded"
    ),
    "policy": lambda body: error(400, "The prompt was rejected.", "content_filter"),
    "quota": lambda body: error(429, "You exceeded your current quota.", "insufficient_quota"),
    "echo_key": lambda body: error(400, f"bad key {body.get('_authorization')}", "bad"),
    "cut_stream": lambda body: completion(body, answer(last_user_text(body))),
    "error_in_stream": lambda body: completion(body, answer(last_user_text(body))),
    "no_stream": lambda body: completion(body, answer(last_user_text(body))),
    "half_closed": lambda body: completion(body, "never seen"),
    "reset": lambda body: completion(body, "never seen"),
    "slow": lambda body: completion(body, answer(last_user_text(body))),
}  # fmt: skip


class Stub:
    """State shared by all connections."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.counts = Counts()
        # An answer that is replaced with probability q differs from another one with 2 q (1 - q).
        self.replaced = (1 - math.sqrt(1 - 2 * settings.flips)) / 2
        self.random = random.Random(settings.flips)
        self.bodies: list[bytes] = []
        self.heads: list[str] = []

    def fault_of(self, digest: str) -> str:
        """The fault that meets this request (counted already)."""
        settings = self.settings
        if not settings.fault or int(digest[:8], 16) / 2**32 >= settings.share:
            return ""
        if settings.times and self.counts.by_body[digest] > settings.times:
            return ""
        return settings.fault

    def decide(self, raw: bytes, authorization: str, path: str) -> tuple[int, Any, str]:
        """Status, JSON (or bytes) and fault of the answer to a request."""
        counts, settings = self.counts, self.settings
        digest = hashlib.sha1(raw).hexdigest()
        body = dialects.read(path, orjson.loads(raw))
        text = last_user_text(body)
        counts.by_body[digest] += 1
        counts.by_text[text[:200]] += 1
        self.bodies = [*self.bodies[-63:], raw] if settings.last else [*self.bodies, raw][:64]
        if settings.key and authorization not in (settings.key, f"Bearer {settings.key}"):
            return *error(401, f"Incorrect API key provided: {authorization}", "invalid_api_key"), ""
        if settings.model and body["model"] != settings.model:
            return *error(404, f"The model `{body['model']}` does not exist.", "model_not_found"), ""
        if settings.limit and counts.in_flight > settings.limit:
            return *error(429, "Rate limit reached", "rate_limit_exceeded"), "429"
        fault = self.fault_of(digest)
        if fault.isdigit():
            return *error(int(fault), f"stub fault {fault}", "stub"), fault
        if fault:
            body["_authorization"] = authorization
            return *FAULTS[fault](body), fault
        if calls := tool_calls.calls_of(body):
            return *completion(body, "Let me look.", "tool_calls", tool_calls=calls), ""
        if self.random.random() < self.replaced:
            text = f"ANSWER={text.partition('ELSE=')[2].partition(' ')[0]}"
        return *completion(body, tool_calls.answer_of(body) if "tools" in body else settings.reply or answer(text)), ""

    def head(self, status: int, length: int, fault: str) -> bytes:
        lines = [
            f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}",
            "Content-Type: application/json",
            f"Content-Length: {length}",
        ]
        wait = self.settings.retry_after
        if wait and (status == 429 or status >= 500):
            date = wait.startswith("date:")
            lines.append(f"Retry-After: {formatdate(time() + float(wait[5:]), usegmt=True) if date else wait}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class StubProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, stub: Stub) -> None:
        self.stub = stub
        self.buffer = bytearray()
        self.head_end = 0
        self.need = 0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.stub.counts.connections += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            if not self.need:
                end = self.buffer.find(b"\r\n\r\n")
                if end < 0:
                    return
                head = bytes(self.buffer[:end]).lower()
                _, found, after = head.partition(b"content-length:")
                self.head_end = end + 4
                self.need = self.head_end + (int(after.split(b"\r\n", 1)[0]) if found else 0)
            if len(self.buffer) < self.need:
                return
            head_bytes, body = bytes(self.buffer[: self.head_end]), bytes(self.buffer[self.head_end : self.need])
            del self.buffer[: self.need]
            self.need = 0
            self.request(head_bytes.decode("latin-1"), body)

    def request(self, head: str, body: bytes) -> None:
        method, target, _ = head.split(" ", 2)
        path = target.partition("?")[0]
        counts = self.stub.counts
        if method == "GET":
            shown: Any = {name: getattr(counts, name) for name in Counts.__slots__}
            if path == "/bodies":
                shown = [raw.decode() for raw in self.stub.bodies]
            elif path == "/heads":
                shown = self.stub.heads
            self.send(200, orjson.dumps(shown, default=dict), "")
            return
        if not dialects.is_known(path):
            self.send(404, b'{"error": {"message": "no such page"}}', "")
            return
        counts.total += 1
        counts.in_flight += 1
        counts.max_in_flight = max(counts.max_in_flight, counts.in_flight)
        counts.bytes += len(body)
        counts.times.append(time())
        if len(self.stub.heads) < 64:
            self.stub.heads.append(head)
        lines = [line for line in head.split("\r\n")[1:] if line.partition(":")[0].lower() in dialects.KEY_HEADERS]
        key = lines[0].partition(":")[2].strip() if lines else ""
        is_streamed = streaming.wants(path, orjson.loads(body)) and path.endswith(streaming.CAPABLE)
        path = path.replace(streaming.STREAMS, ":generateContent")
        status, reply, fault = self.stub.decide(body, key, path)
        is_whole = isinstance(reply, dict) and fault not in ("reset", "half_closed", "slow")
        if (is_streamed or self.stub.settings.pieces) and status == 200 and is_whole:
            self.stream(path, reply, fault, is_streamed)
            return
        payload = reply if isinstance(reply, bytes) else orjson.dumps(dialects.write(path, reply))
        delay = self.stub.settings.slow if fault == "slow" else self.stub.settings.delay
        if delay:
            asyncio.get_running_loop().call_later(delay, self.finish, status, payload, fault)
        else:
            self.finish(status, payload, fault)

    def stream(self, path: str, reply: dict[str, Any], fault: str, is_streamed: bool) -> None:
        """Send an answer in pieces, or as a whole when they would have been sent."""
        written, pause = dialects.write(path, reply), self.stub.settings.pieces
        pieces = streaming.events(path, written) if reply.get("choices") else [b"data: {}\n\n"]
        loop = asyncio.get_running_loop()
        if not is_streamed or fault == "no_stream":
            loop.call_later(pause * len(pieces), self.finish, 200, orjson.dumps(written), "")
            return
        if fault == "error_in_stream":
            pieces = [*pieces[:2], streaming.ERRORS[next(end for end in streaming.ERRORS if path.endswith(end))]]
        elif fault == "cut_stream":
            pieces = pieces[: len(pieces) // 2]
        head = ("HTTP/1.1 200 OK", "Content-Type: text/event-stream; charset=utf-8", "Connection: close")
        self.transport.write(("\r\n".join(head) + "\r\n\r\n").encode())
        for number, piece in enumerate(pieces):
            loop.call_later(pause * number, self.transport.write, piece)
        loop.call_later(pause * len(pieces), self.end_stream)

    def end_stream(self) -> None:
        counts = self.stub.counts
        counts.in_flight -= 1
        counts.completed += 1
        self.transport.close()

    def finish(self, status: int, payload: bytes, fault: str) -> None:
        counts = self.stub.counts
        counts.in_flight -= 1
        counts.completed += 1
        counts.by_status[str(status)] += 1
        if fault == "reset":
            self.transport.abort()
        elif fault == "half_closed":
            self.transport.write(self.stub.head(status, len(payload), fault) + payload[: len(payload) // 2])
            self.transport.close()
        else:
            self.send(status, payload, fault)

    def send(self, status: int, payload: bytes, fault: str) -> None:
        if not self.transport.is_closing():
            self.transport.write(self.stub.head(status, len(payload), fault) + payload)


async def serve(settings: Settings, life: int = 0) -> None:
    """Serve until the file ``life`` ends; its port and process are a line on standard output."""
    stub = Stub(settings)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    server = await loop.create_server(lambda: StubProtocol(stub), "127.0.0.1", settings.port, backlog=2048)
    os.write(1, json.dumps({"port": server.sockets[0].getsockname()[1], "pid": os.getpid()}).encode() + b"\n")

    def watch_life() -> None:
        while os.read(life, 4096):
            pass
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch_life, daemon=True).start()
    await ended.wait()
    server.close()


def fork_servers() -> None:
    """Start a server for each line of settings on standard input, and kill the one whose number a line holds.

    A fork serves at once: a new process first imports for a tenth of a second. All end with this process.
    """
    life, ours = os.pipe()
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            os.kill(asked, signal.SIGKILL)
            os.waitpid(asked, 0)
            os.write(1, b"\n")
        elif not os.fork():
            os.close(ours)
            os.setsid()
            asyncio.run(serve(Settings(**asked), life))
            os._exit(0)


class _Forking:
    """The process of ``fork_servers``, from the first server on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0

    def ask(self, line: Any) -> str:
        """Send a line and return the answer."""
        with self._lock:
            if self._process is None or self._owner != os.getpid():
                self._start()
            process = self._process
            assert process is not None and process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], 30)[0]:
                raise RuntimeError("the stub server did not start within 30 s")
            return process.stdout.readline()

    def _start(self) -> None:
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.stub", "--fork"], cwd=ROOT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        atexit.register(self._close, self._process)

    def _close(self, process: subprocess.Popen[str]) -> None:
        if self._owner == os.getpid():
            process.communicate()


_forking = _Forking()


class StubServer:
    """The server as a process: ``with StubServer(delay=0.05) as server: ... server.url, server.stats()``."""

    def __init__(self, **settings: Any) -> None:
        Settings(**settings)
        self.settings = settings
        self.port, self.pid = 0, 0

    def __enter__(self) -> StubServer:
        found = json.loads(_forking.ask(self.settings))
        self.port, self.pid = found["port"], found["pid"]
        return self

    def __exit__(self, *_: object) -> None:
        _forking.ask(self.pid)

    @property
    def url(self) -> str:
        """Base URL, with ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, Any]:
        """See ``Counts``."""
        return self._get("/stats")  # type: ignore[no-any-return]

    def bodies(self) -> list[dict[str, Any]]:
        """The first 64 request bodies, with ``last`` the last ones."""
        return [json.loads(raw) for raw in self._get("/bodies")]

    def heads(self) -> list[str]:
        """Request line and headers of the first 64 requests."""
        return self._get("/heads")  # type: ignore[no-any-return]

    def _get(self, path: str) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}{path}", timeout=10) as reply:
            return json.load(reply)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for setting in fields(Settings):
        kind = type(setting.default)
        parser.add_argument(f"--{setting.name.replace('_', '-')}", type=kind, default=setting.default)
    if sys.argv[1:] == ["--fork"]:
        fork_servers()
    else:
        asyncio.run(serve(Settings(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
