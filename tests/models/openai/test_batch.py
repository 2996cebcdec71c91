"""Requests by batch files against a real batch interface on loopback."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.remote.batch.ledger import JOURNAL
from tests.models.openai.support import MemoryStream, make_request
from tests.servers.batches import BatchServer


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "LMMS_IMAGE_ENCODE_FORMAT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def shared() -> Iterator[BatchServer]:
    with BatchServer() as server:
        yield server


@pytest.fixture
def server(shared: BatchServer) -> BatchServer:
    """The one server of this module, with nothing in it."""
    shared.reset()
    return shared


def build(server: BatchServer, folder: Path, **arguments: Any) -> OpenAI:
    fast = {"batch_poll_s": 0.02, "retry_backoff_s": 0.01, "model": "stub", "base_url": server.url}
    model = OpenAI(**{**fast, "batch": True, **arguments})
    model.attach_folder(folder)
    return model


def questions(count: int) -> list[Request]:
    return [make_request(f"t/{number}/0/0/0", f"question {number} ANSWER={number}") for number in range(count)]


def ask(model: OpenAI, requests: Iterable[Request], most: int | None = None) -> dict[str, Response]:
    """Ask all; with ``most``, break off after so many answers, as a killed process does."""

    async def run() -> dict[str, Response]:
        found: dict[str, Response] = {}
        async with aclosing(model.respond(MemoryStream(map(model.prepare, requests)))) as responses:
            async for response in responses:
                assert response.request_id not in found
                found[response.request_id] = response
                if len(found) == most:
                    break
        return found

    return asyncio.run(run())


def texts(found: dict[str, Response]) -> dict[str, str | None]:
    return {name: response.text for name, response in found.items()}


ALL = {f"t/{number}/0/0/0": str(number) for number in range(10)}


def test_all_questions_in_one_batch(tmp_path: Path, server: BatchServer) -> None:
    model = build(server, tmp_path, api_key="batch-key")
    found = ask(model, questions(10))
    stats = server.stats()
    line = server.lines("batch-0")[0]
    assert texts(found) == ALL
    one = found["t/0/0/0/0"]
    assert one.finish_reason == "stop" and one.usage is not None and one.usage.input_tokens
    assert one.latency is None, "the time of a batch says nothing about a question"
    assert [batch["requests"] for batch in stats["batches"]] == [10]
    assert stats["keys"] == ["Bearer batch-key"]
    assert line["url"] == "/v1/chat/completions" and line["custom_id"] == "t/0/0/0/0"
    assert line["body"]["model"] == "stub" and line["body"]["max_tokens"] == 16
    assert model.describe()["attempts"] == model.describe()["requests"] == 10
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL], "what is taken in leaves no files"


def test_what_a_stop_ended_in_its_thoughts_goes_into_a_batch_without_stops(tmp_path: Path, server: BatchServer) -> None:
    server.reset(thinks=True)
    generation = {"max_new_tokens": 16, "until": ["\n\n"]}
    asked = [
        make_request(f"t/{number}/0/0/0", f"question {number} ANSWER={number}", generation=generation)
        for number in range(3)
    ]
    model = build(server, tmp_path)
    found = ask(model, asked)
    assert texts(found) == {f"t/{number}/0/0/0": f"<think>hm\n\nhm</think>{number}" for number in range(3)}
    assert {response.ended_by for response in found.values()} == {"\n\n"}
    assert [["stop" in line["body"] for line in server.lines(f"batch-{number}")] for number in range(2)] == [
        [True] * 3,
        [False] * 3,
    ]
    assert model.describe()["asked_without_stops"] == 3 and not model.describe()["stops_are_sent"]
    again = build(server, tmp_path)
    ask(again, asked)
    assert [line["body"].get("stop") for line in server.lines("batch-2")] == [None] * 3


def test_files_are_split_by_requests_and_bytes(tmp_path: Path, server: BatchServer) -> None:
    server.reset(max_requests=4)
    assert texts(ask(build(server, tmp_path / "a", batch_max_requests=4), questions(10))) == ALL
    by_count = [batch["requests"] for batch in server.stats()["batches"]]
    server.reset(max_bytes=700)
    assert texts(ask(build(server, tmp_path / "b", batch_max_mb=0.0007), questions(10))) == ALL
    by_size = [batch["requests"] for batch in server.stats()["batches"]]
    assert by_count == [4, 4, 2]
    assert sum(by_size) == 10 and len(by_size) > 3, "the stub refuses larger files"


def test_a_request_that_no_file_may_hold_is_one_failure(tmp_path: Path, server: BatchServer) -> None:
    long = make_request("t/9/0/0/0", "x" * 1000)
    found = ask(build(server, tmp_path, batch_max_mb=0.0007), [*questions(2), long])
    assert texts(found) == {"t/0/0/0/0": "0", "t/1/0/0/0": "1", "t/9/0/0/0": None}
    error = found["t/9/0/0/0"].error
    assert error is not None and error.kind == "bad_request" and "batch_max_mb" in error.message


@pytest.mark.parametrize(
    "fault", [{"line_fault": 500}, {"line_fault": 429}, {"lost": True}, {"ends": "expired"}, {"ends": "failed",
    "reason": "token_limit_exceeded"}, {"refuse": "POST /files"}, {"refuse": "POST /batches"},
    {"refuse": "GET /batches/batch-0"}, {"refuse": "GET /files/file-1/content"}],
)  # fmt: skip
def test_what_may_pass_is_asked_again(fault: dict[str, Any], tmp_path: Path, server: BatchServer) -> None:
    server.reset(**fault)
    model = build(server, tmp_path)
    found = ask(model, questions(10))
    stats = server.stats()
    assert texts(found) == ALL
    is_refused = "refuse" in fault
    assert [batch["requests"] for batch in stats["batches"]] == (
        [10] if is_refused else [10, 5 + 5 * ("reason" in fault)]
    )
    assert sum(model.describe()["retries"].values()) == (0 if is_refused else stats["batches"][1]["requests"])


@pytest.mark.parametrize(
    ("fault", "failed", "kind", "words"),
    [
        ({"line_fault": 400}, 5, "bad_request", "HTTP 400"),
        ({"line_fault": 500, "times": 99}, 2, "server_error", "HTTP 500"),
        ({"ends": "cancelled"}, 5, "server_error", "batch_cancelled"),
        ({"ends": "expired", "times": 99}, 2, "timeout", "batch_expired"),
        ({"ends": "failed"}, 10, "bad_request", "invalid_json_line"),
        ({"refuse": "POST /files", "status": 404, "times": 99}, 10, "bad_request", "HTTP 404"),
        ({"refuse": "POST /batches", "status": 401, "times": 99}, 10, "auth", "OPENAI_API_KEY"),
        ({"refuse": "POST /batches", "times": 99}, 10, "server_error", "HTTP 500"),
        ({"refuse": "GET /batches/batch-0", "times": 99}, 10, "server_error", "start the same command again"),
        ({"slow_after": 1, "ends": "expired"}, 5, "timeout", "batch_timeout"),
    ],
)  # fmt: skip
def test_failures_name_their_reason(
    fault: dict[str, Any], failed: int, kind: str, words: str, tmp_path: Path, server: BatchServer
) -> None:
    server.reset(**fault)
    found = ask(build(server, tmp_path, max_retries=1, batch_timeout=0.5), questions(10))
    errors = [response.error for response in found.values() if response.error is not None]
    assert len(found) == 10 and len(errors) == failed
    assert {error.kind for error in errors} == {kind}
    assert words in errors[0].message and server.url in errors[0].message


def test_a_batch_that_was_made_though_the_answer_failed_is_found_not_made_again(
    tmp_path: Path, server: BatchServer
) -> None:
    server.reset(refuse="POST /batches", is_done=True)
    assert texts(ask(build(server, tmp_path), questions(10))) == ALL
    assert len(server.stats()["batches"]) == 1


def test_results_that_were_taken_in_halfway_are_taken_in_by_the_next_start(tmp_path: Path, server: BatchServer) -> None:
    first = ask(build(server, tmp_path), questions(10), most=3)
    left = [request for request in questions(10) if request.id not in first]
    second = ask(build(server, tmp_path), left)
    assert texts({**first, **second}) == ALL and not first.keys() & second.keys()
    assert len(server.stats()["batches"]) == 1


def test_a_full_queue_of_the_service_is_waited_for(tmp_path: Path, server: BatchServer) -> None:
    """Three files, one of which may wait at a time: a refusal for that reason is no try."""
    server.reset(queue=1, delay=0.2)
    model = build(server, tmp_path, batch_max_requests=2, max_retries=0)
    found = ask(model, questions(6))
    assert set(server.stats()["asked"].values()) == {1}
    assert texts(found) == {name: text for name, text in ALL.items() if int(text) < 6}


def test_rounds_are_a_batch_each(tmp_path: Path, server: BatchServer) -> None:
    """Answers bring further requests: those of one batch go into the next together."""

    async def run(model: OpenAI) -> list[str]:
        stream = MemoryStream(map(model.prepare, questions(4)), closed=False)
        asked = []
        async with aclosing(model.respond(stream)) as responses:
            async for response in responses:
                asked.append(response.request_id)
                if len(asked) <= 4:
                    stream.push(model.prepare(make_request(response.request_id.replace("/0/0/0", "/0/1/0"))))
                elif len(asked) == 8:
                    stream.close()
        return asked

    asked = asyncio.run(run(build(server, tmp_path)))
    assert [batch["requests"] for batch in server.stats()["batches"]] == [4, 4]
    assert len(set(asked)) == 8


def test_a_stopped_stream_leaves_the_batch_running_and_says_so(
    tmp_path: Path, server: BatchServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(model: OpenAI, server: BatchServer) -> list[Response]:
        stream = MemoryStream(map(model.prepare, questions(10)), closed=False)
        loop = asyncio.get_running_loop()

        def stop_when_created() -> None:
            server.wait_for("looking")
            loop.call_soon_threadsafe(stream.stop)

        threading.Thread(target=stop_when_created).start()
        return [response async for response in model.respond(stream)]

    server.reset(slow_after=0, delay=1000)
    with caplog.at_level(logging.INFO, "lmms_eval"):
        began = time.monotonic()
        assert asyncio.run(run(build(server, tmp_path), server)) == []
        assert time.monotonic() - began < 20
        assert "batch batch-0 continues at http://127.0.0.1" in caplog.messages[-1]
        server.release()
        assert texts(ask(build(server, tmp_path), questions(10))) == ALL
        assert len(server.stats()["batches"]) == 1


def test_a_batch_that_may_live_and_cannot_be_listed_stops_the_run(tmp_path: Path, server: BatchServer) -> None:
    server.reset(refuse="POST /batches", is_done=True, times=99)
    found = ask(build(server, tmp_path, max_retries=0), questions(2))
    assert {response.error.kind for response in found.values() if response.error} == {"server_error"}
    server.reset(refuse="GET /batches", status=404, times=99)
    with pytest.raises(ModelError, match="file-0"):
        ask(build(server, tmp_path), questions(2))


def test_azure_batches_belong_to_the_resource(tmp_path: Path, server: BatchServer) -> None:
    base = server.url.removesuffix("/v1")
    model = build(server, tmp_path, azure_openai=True, base_url=base, api_key="k-azure", api_version="2024-10-21")
    assert texts(ask(model, questions(10))) == ALL
    assert server.lines("batch-0")[0]["url"] == "/chat/completions"
    assert server.stats()["keys"] == ["k-azure"]


def test_what_batches_cannot_do_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: BatchServer
) -> None:
    model = OpenAI(model="stub", base_url=server.url, batch=True)
    assert model.kinds == {"generate_until"}
    with pytest.raises(ModelError, match="judge"):
        ask(model, [])
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ModelError, match="one process"):
        build(server, tmp_path)
