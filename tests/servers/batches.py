"""A batch interface on loopback, as a process of its own: files, batches, their list, results, and faults to order.

``BatchServer`` starts it for tests. A batch ends ``delay`` seconds after it was created; each line of its file is
answered as the stub server answers (``tests.servers.stub``). ``hold`` names an instant at which the server stays silent
until ``release``: a client can be killed there.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.servers import batch_forms
from tests.servers.dialects import KEY_HEADERS
from tests.servers.stub import answer, completion, error, last_user_text

ROOT = Path(__file__).resolve().parents[2]
GARBAGE = (
    b'<html>\xff\n[1, 2]\n7\n{"custom_id": 7, "key": []}\n{"custom_id": "other-000000", "key": "other"}\n\n{"resp\n'
)
"""Lines that are no results."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Behaviour of the server; ``BatchServer`` takes the same names."""

    delay: float = 0.0
    """Seconds from a batch's creation to its end."""
    slow_after: int = 0
    """Batches after so many never end; 0: all end."""
    ends: str = "completed"
    """State in which the first ``times`` batches end; then they are completed. ``expired``, ``cancelled``: half of
    their lines are answered; ``failed``: none, for the reason ``reason``."""
    reason: str = "invalid_json_line"
    times: int = 1
    line_fault: int = 0
    """Status of every second line of the first ``times`` batches; 0: none."""
    lost: bool = False
    """Every second line of the first ``times`` batches is in no file of results."""
    refuse: str = ""
    """``POST`` or ``GET``, and a path: it is answered with ``status``; the first ``times`` times."""
    status: int = 500
    is_done: bool = False
    """What is refused was done all the same."""
    hold: str = ""
    """``uploading``, ``uploaded``, ``listing``, ``creating``, ``created``, ``looking`` or ``reading``."""
    garbage: str = ""
    """``results``: their first lines are garbage; ``bodies``: so is every second answer of the first ``times`` batches;
    ``look``: the first ``times`` looks get it."""
    thinks: bool = False
    """Answers follow thoughts with a blank line in them, at which a stop string ends them."""
    queue: int = 0
    """Batches that may wait; a further one ends as ``failed``, for ``token_limit_exceeded``. 0: any number."""
    most_live: int = 0
    """Batches that may live; the creation of a further one gets status 429. 0: any number."""
    page: int = 2
    """Batches on a page of the list."""
    max_requests: int = 50_000
    max_bytes: int = 200_000_000


@dataclass(slots=True)
class Batch:
    id: str
    file_id: str
    metadata: dict[str, str]
    lines: list[dict[str, Any]]
    ready_at: float
    ends: str
    status: str = "in_progress"
    output_file_id: str | None = None
    error_file_id: str | None = None
    code: str = ""
    form: str = "openai"
    """The wire form: ``openai``, ``anthropic`` or ``gemini``."""

    def shown(self) -> dict[str, Any]:
        errors = {"data": [{"code": self.code, "message": "stub: the batch is refused", "line": 1}]}
        return {
            "id": self.id,
            "object": "batch",
            "input_file_id": self.file_id,
            "metadata": self.metadata,
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "errors": errors if self.status == "failed" else None,
            "request_counts": {"total": len(self.lines), "completed": 0, "failed": 0},
        }


@dataclass(slots=True)
class Service:
    """State of the server."""

    settings: Settings
    files: dict[str, bytes] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    batches: dict[str, Batch] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by id (those of Anthropic's form by text), in batches that did not fail as a whole."""
    reached: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    keys: set[str] = field(default_factory=set)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def at(self, point: str) -> None:
        """Note that an instant is reached, and stay there if it is to be held."""
        self.reached[point] += 1
        if point == self.settings.hold:
            await self.released.wait()

    def refuses(self, request: web.Request) -> bool:
        call = f"{request.method} /{request.path.removeprefix('/v1/').removeprefix('/')}"
        self.calls[call] += 1
        sent = (request.headers.get(name) for name in KEY_HEADERS)
        self.keys.add(next((key for key in sent if key), ""))
        return self.settings.refuse == call and self.calls[call] <= self.settings.times

    def refusal(self) -> web.Response:
        status, body = error(self.settings.status, "stub refuses", "stub")
        return web.json_response(body, status=status)

    def add_file(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def end(self, batch: Batch) -> None:
        """Let a batch end if its time has come."""
        if batch.status != "in_progress" or time.monotonic() < batch.ready_at:
            return
        is_met = batch.ends != "completed" or int(batch.id.removeprefix("batch-")) < self.settings.times
        batch.status = batch.ends
        if batch.ends == "failed":
            return
        output, errors = [], []
        for number, line in enumerate(batch.lines):
            is_odd, name = is_met and number % 2 == 1, line["custom_id"]
            if batch.ends in ("expired", "cancelled") and is_odd:
                if (missing := batch_forms.unanswered(batch.form, name, batch.ends)) is not None:
                    errors.append(missing)
            elif not (is_odd and self.settings.lost):
                status, body = self._answered(batch, line, is_odd)
                into = output if status == 200 else errors
                into.append(batch_forms.result(batch.form, name, status, body))
                if is_odd and self.settings.garbage == "bodies":
                    batch_forms.spoil(into[-1])
        if batch.form != "openai":  # one file
            output, errors = [*errors, *output], []
        batch.output_file_id = self._results(output[::-1])  # in no order that anybody promised
        batch.error_file_id = self._results(errors)

    def _answered(self, batch: Batch, line: dict[str, Any], is_odd: bool) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer to a line, as chat completion."""
        asked = batch_forms.chat_body(batch.form, line["body"])
        said = answer(last_user_text(asked))
        if self.settings.thinks:
            stops = batch_forms.stops_of(line["body"])
            said = "<think>hm" if stops else f"<think>hm\n\nhm</think>{said}\n\nmore"
        if is_odd and self.settings.line_fault:
            return error(self.settings.line_fault, "stub fault of one line", "stub")
        return completion({"model": "stub", **asked}, said)

    def _results(self, lines: list[dict[str, Any]]) -> str | None:
        noise = GARBAGE if self.settings.garbage == "results" else b""
        return self.add_file(noise + b"".join(orjson.dumps(line) + b"\n" for line in lines)) if lines else None


class Handlers:
    """Answers of the server."""

    def __init__(self, service: Service) -> None:
        self.service, self.settings = service, service.settings

    async def reset(self, request: web.Request) -> web.Response:
        """Forget everything, and take other settings."""
        self.service.released.set()
        self.service = Service(Settings(**await request.json()))
        self.settings = self.service.settings
        return web.json_response({})

    def routes(self) -> list[web.RouteDef]:
        made = []
        for root in ("/v1", "/openai"):
            made += [
                web.post(f"{root}/files", self.upload),
                web.get(f"{root}/files/{{id}}/content", self.content),
                web.post(f"{root}/batches", self.create),
                web.get(f"{root}/batches", self.listed),
                web.get(f"{root}/batches/{{id}}", self.look),
            ]
        for form in (batch_forms.Anthropic(self), batch_forms.Gemini(self)):
            made += form.routes()
        return [
            *made, web.get("/stats", self.stats), web.get("/lines/{id}", self.lines),
            web.post("/release", self.release), web.post("/reset", self.reset),
            web.post("/hold", self.hold), web.post("/foreign", self.foreign),
            web.post("/allow", self.allow),
        ]  # fmt: skip

    async def upload(self, request: web.Request) -> web.Response:
        service, refused = self.service, self.service.refuses(request)
        form = await request.post()
        await service.at("uploading")
        assert form["purpose"] == "batch"
        sent: Any = form["file"]
        content = sent.file.read()
        assert len(content) <= self.settings.max_bytes
        if refused:
            return service.refusal()
        name = service.add_file(content)
        service.names.append(sent.filename)
        await service.at("uploaded")
        return web.json_response({"id": name, "object": "file", "purpose": "batch", "status": "processed"})

    async def create(self, request: web.Request) -> web.Response:
        service, refused = self.service, self.service.refuses(request)
        wanted = await request.json()
        await service.at("creating")
        is_gone = request.transport is None or request.transport.is_closing()
        if is_gone or (refused and not self.settings.is_done):
            return service.refusal()
        assert wanted["completion_window"] == "24h"
        lines = [json.loads(line) for line in service.files[wanted["input_file_id"]].splitlines()]
        assert all(line["method"] == "POST" and line["url"] == wanted["endpoint"] for line in lines)
        batch = self.add_batch("openai", lines, wanted["metadata"], wanted["input_file_id"])
        await service.at("created")
        return service.refusal() if refused else web.json_response(batch.shown())

    def add_batch(
        self, form: str, lines: list[dict[str, Any]], metadata: dict[str, str] | None = None, file_id: str = ""
    ) -> Batch:
        """Check the lines as the vendor does, and make their batch."""
        service, settings = self.service, self.settings
        for other in service.batches.values():
            service.end(other)
        if (
            settings.most_live
            and len([b for b in service.batches.values() if b.status == "in_progress"]) >= settings.most_live
        ):
            raise web.HTTPTooManyRequests(body=b'{"error": {"message": "the queue is full"}}')
        assert 1 <= len(lines) <= settings.max_requests
        assert len({line["custom_id"] for line in lines}) == len(lines)
        number = len(service.batches)
        is_slow = settings.slow_after and number >= settings.slow_after
        ends = settings.ends if number < settings.times else "completed"
        batch = Batch(
            f"batch-{number}", file_id, metadata or {}, lines,
            time.monotonic() + (1e9 if is_slow else settings.delay), ends, code=settings.reason, form=form,
        )  # fmt: skip
        live = sum(other.status == "in_progress" for other in service.batches.values())
        if settings.queue and live >= settings.queue:
            batch.ends, batch.ready_at, batch.code = "failed", 0.0, "token_limit_exceeded"
        service.batches[batch.id] = batch
        if batch.ends != "failed":
            service.asked.update(
                last_user_text(batch_forms.chat_body(form, line["body"])) if form == "anthropic" else line["custom_id"]
                for line in lines
            )
        return batch

    async def foreign(self, request: web.Request) -> web.Response:
        """Make a batch of somebody else, with so many requests."""
        body = {"model": "m", "messages": [{"role": "user", "content": "of somebody else"}]}
        lines = [{"custom_id": f"theirs-{number:06}", "body": body} for number in range(int(await request.text()))]
        self.add_batch("anthropic", lines)
        del self.service.asked["of somebody else"]
        return web.json_response({})

    async def looked(self, request: web.Request) -> Batch | None:
        """The batch that is asked for, which may have ended; ``None``: the request is refused."""
        service, refused = self.service, self.service.refuses(request)
        await service.at("looking")
        batch = service.batches.get(request.match_info["id"])
        if refused or batch is None:
            return None
        if self.settings.garbage == "look" and service.reached["looking"] <= self.settings.times:
            raise web.HTTPOk(body=b'{"status": 7, "processing_status": [], "metadata": 4, "request_counts": "x"}')
        service.end(batch)
        return batch

    async def read_results(self, request: web.Request, name: str) -> web.Response:
        """The file of results of this name, or of the batch."""
        service, refused = self.service, self.service.refuses(request)
        await service.at("reading")
        batch = service.batches.get(name)
        if refused:
            return service.refusal()
        return web.Response(body=service.files[name if batch is None else str(batch.output_file_id)])

    async def look(self, request: web.Request) -> web.Response:
        batch = await self.looked(request)
        return self.service.refusal() if batch is None else web.json_response(batch.shown())

    async def listed(self, request: web.Request) -> web.Response:
        service, settings = self.service, self.settings
        if service.refuses(request):
            return service.refusal()
        newest = list(service.batches.values())[::-1]
        after = request.query.get("after")
        start = [batch.id for batch in newest].index(after) + 1 if after else 0
        page = newest[start : start + settings.page]
        has_more = start + settings.page < len(newest)
        return web.json_response({"object": "list", "data": [b.shown() for b in page], "has_more": has_more})

    async def content(self, request: web.Request) -> web.Response:
        return await self.read_results(request, request.match_info["id"])

    async def stats(self, _request: web.Request) -> web.Response:
        service = self.service
        shown = [
            {"id": b.id, "requests": len(b.lines), "metadata": b.metadata, "status": b.status}
            for b in service.batches.values()
        ]
        counted = {"asked": service.asked, "reached": service.reached, "calls": service.calls, "batches": shown}
        return web.json_response({**counted, "names": service.names, "keys": sorted(service.keys)})

    async def lines(self, request: web.Request) -> web.Response:
        return web.json_response(self.service.batches[request.match_info["id"]].lines)

    async def hold(self, request: web.Request) -> web.Response:
        self.service.released.set()
        self.service.released = asyncio.Event()
        object.__setattr__(self.settings, "hold", await request.text())
        return web.json_response({})

    async def allow(self, _request: web.Request) -> web.Response:
        object.__setattr__(self.settings, "refuse", "")
        return web.json_response({})

    async def release(self, _request: web.Request) -> web.Response:
        self.service.released.set()
        for batch in self.service.batches.values():
            batch.ready_at = 0.0
        object.__setattr__(self.settings, "slow_after", 0)
        object.__setattr__(self.settings, "delay", 0.0)
        return web.json_response({})


async def serve(settings: Settings) -> None:
    """Serve until standard input ends."""
    application = web.Application(client_max_size=1 << 30)
    application.add_routes(Handlers(Service(settings)).routes())
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(json.dumps({"port": runner.addresses[0][1]}) + "\n")
    sys.stdout.flush()
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def watch_input() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch_input, daemon=True).start()
    await ended.wait()


class BatchServer:
    """The server as a process: ``with BatchServer(delay=0.1) as server: ... server.url, server.stats()``."""

    def __init__(self, **settings: Any) -> None:
        self.settings, self.port = settings, 0

    def __enter__(self) -> BatchServer:
        command = [sys.executable, "-m", "tests.servers.batches"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], 30)[0]:
            self.__exit__()
            raise RuntimeError("the batch server did not start within 30 s")
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.reset(**self.settings)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def url(self) -> str:
        """Base URL, with ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, Any]:
        """Counts of ``Service``, and the batches."""
        return self._ask("/stats")  # type: ignore[no-any-return]

    def lines(self, batch_id: str) -> list[dict[str, Any]]:
        """The lines of a batch's file."""
        return self._ask(f"/lines/{batch_id}")  # type: ignore[no-any-return]

    def add_foreign(self, requests: int) -> None:
        """Make a batch of somebody else in the same account."""
        self._ask("/foreign", str(requests).encode())

    def allow(self) -> None:
        """Refuse nothing any more."""
        self._ask("/allow", b"")

    def reset(self, **settings: Any) -> None:
        """Forget everything, and take other settings: cheaper than another server."""
        self._ask("/reset", json.dumps(settings).encode())

    def hold(self, point: str) -> None:
        """Let go what is held, and stay silent at another instant from now on."""
        self._ask("/hold", point.encode())

    def release(self) -> None:
        """Hold nothing any more, and let every batch end."""
        self._ask("/release", b"")

    def wait_for(self, point: str, times: int = 1) -> None:
        """Wait until an instant (``hold``) was reached so often."""
        deadline = time.monotonic() + 60
        while self.stats()["reached"].get(point, 0) < times:
            assert time.monotonic() < deadline, f"{point} was not reached"
            time.sleep(0.02)

    def _ask(self, path: str, data: bytes | None = None) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}{path}", data=data, timeout=10) as reply:
            return json.load(reply)


if __name__ == "__main__":
    asyncio.run(serve(Settings()))
