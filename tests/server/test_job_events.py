"""Events that clients of either kind follow: over lost connections, to the job's end, and no further."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import text_task
from lmms_eval.entrypoints import AsyncEvalClient, EvalClient
from lmms_eval.errors import EvaluationServerError
from lmms_eval.server.calls import JobEvent, LogEvent, ProgressEvent, StateEvent
from tests.server.process import ServerProcess
from tests.server.scripted import Answer, scripted

Follow = Callable[..., list[JobEvent]]
STREAM = {"content-type": "text/event-stream"}


@pytest.fixture(params=["sync", "async"])
def follow(request: pytest.FixtureRequest) -> Follow:
    """Collect the events that a client of either kind goes through."""

    def sync(url: str, *place: str, patience: float = 20.0) -> list[JobEvent]:
        with EvalClient(url, patience=patience) as client:
            return list(client.events("j1", *place))

    def asynchronous(url: str, *place: str, patience: float = 20.0) -> list[JobEvent]:
        async def collect() -> list[JobEvent]:
            async with AsyncEvalClient(url, patience=patience) as client:
                return [event async for event in client.events("j1", *place)]

        return asyncio.run(collect())

    return sync if request.param == "sync" else asynchronous


def _stream(*events: tuple[str, Any, str]) -> Answer:
    text = ": still here\n\n"
    for kind, content, place in events:
        text += f"event: {kind}\n" + (f"id: {place}\n" if place else "") + f"data: {json.dumps(content)}\n\n"
    return Answer(text.encode(), headers=STREAM)


def _state(status: str) -> tuple[str, Any, str]:
    return "state", {"status": status, "position_in_queue": 0}, ""


def _log(text: str, place: int) -> tuple[str, Any, str]:
    return "log", {"text": text, "left_out": 0}, str(place)


def test_lost_connections_are_made_again_behind_the_last_event(follow: Follow) -> None:
    answers = [
        _stream(_state("running"), _log("a\n", 2)),
        Answer(status=0),
        Answer({"detail": "busy"}, 503),
        _stream(("later_kind", {}, ""), _state("running"), _log("b\n", 4), _state("completed")),
    ]
    with scripted(answers) as server:
        found = follow(server.url)
    assert found == [
        StateEvent("", "running", 0),
        LogEvent("2", "a\n", 0),
        LogEvent("4", "b\n", 0),
        StateEvent("4", "completed", 0),
    ]
    assert [request["headers"].get("last-event-id") for request in server.seen] == [None, "2", "2", "2"]


def test_following_begins_where_it_is_told(follow: Follow) -> None:
    with scripted([_stream(_state("cancelled"))]) as server:
        assert follow(server.url, "77") == [StateEvent("77", "cancelled", 0)]
    assert server.seen[0]["headers"]["last-event-id"] == "77"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer({"detail": "Job j1 not found"}, 404), "Job j1 not found"),
        (Answer({"job_id": "j1"}), "text/event-stream"),
        (_stream(("progress", {"done": 3}, "")), "an event 'progress' of job j1 has an unexpected form"),
    ],
)
def test_what_cannot_be_followed_is_refused(follow: Follow, answer: Answer, said: str) -> None:
    with scripted([answer]) as server, pytest.raises(EvaluationServerError, match=said):
        follow(server.url, patience=0.5)


def test_events_go_on_when_the_server_is_killed_and_comes_back(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 12)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("--include_path", str(tmp_path / "tasks"), "--port", str(port))
    server = ServerProcess(tmp_path / "server", words)
    server.start()
    try:
        with EvalClient(f"http://127.0.0.1:{port}") as client:
            job = client.evaluate("baseline", ["bench_text"], {"strategy": "gold"})["job_id"]
            found: list[JobEvent] = []
            kills = 0
            for event in client.events(job):
                found.append(event)
                if isinstance(event, StateEvent) and event.status == "running":
                    kills += 1
                    server.end(signal.SIGKILL)
                    server.start()
            written = client.download(job, tmp_path / "files")
            log = server.client.get(f"/jobs/{job}/log").text
    finally:
        server.end()
    assert kills == 1
    assert "".join(event.text for event in found if isinstance(event, LogEvent)) == log
    progress = [event.snapshot for event in found if isinstance(event, ProgressEvent)]
    assert (progress[-1].requested, progress[-1].done, progress[-1].tasks[0].name) == (12, 12, "bench_text")
    assert isinstance(found[-1], StateEvent) and found[-1].status == "completed"
    (results,) = [path for path in written if path.name.endswith("_results.json")]
    assert json.loads(results.read_text())["n-samples"]["bench_text"]["effective"] == 12
