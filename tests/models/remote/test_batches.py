"""The batch interfaces of Anthropic and Gemini against real services on loopback, by the mechanism of OpenAI's."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.remote.batch.ledger import JOURNAL
from lmms_eval.models.remote.sdk import camel_case
from tests.models.openai import test_batch as openai
from tests.models.openai.support import MemoryStream, make_request
from tests.models.openai.test_batch import ALL, ask, questions, texts
from tests.servers.batches import BatchServer
from tests.servers.stub import StubServer

KEY = "sk-batch-0123456789"
VENDORS = ("anthropic", "gemini")
PLACES = {
    "anthropic": {"create": "POST /messages/batches", "look": "GET /messages/batches/batch-0",
                  "read": "GET /messages/batches/batch-0/results", "list": "GET /messages/batches"},
    "gemini": {"create": "POST /v1beta/models/stub:batchGenerateContent", "look": "GET /v1beta/batches/batch-0",
               "read": "GET /v1beta/files/file-1:download", "list": "GET /v1beta/batches"},
}  # fmt: skip
"""The calls of the steps in a batch's life."""


@pytest.fixture(scope="module")
def shared() -> Iterator[BatchServer]:
    with BatchServer() as server:
        yield server


@pytest.fixture
def server(shared: BatchServer) -> BatchServer:
    """The one server of this module, with nothing in it."""
    shared.reset()
    return shared


def build(vendor: str, server: BatchServer, folder: Path, **arguments: Any) -> Any:
    pytest.importorskip({"anthropic": "anthropic", "gemini": "google.genai"}[vendor])
    given = {
        "model": "stub", "base_url": f"http://127.0.0.1:{server.port}", "api_key": KEY, "batch": True,
        "batch_poll_s": 0.02, "retry_backoff_s": 0.01,
    }  # fmt: skip
    model = ModelRegistry().build(vendor, {**given, **arguments})[0]
    model.attach_folder(folder)
    return model


@pytest.mark.parametrize("vendor", VENDORS)
def test_all_questions_in_one_batch(vendor: str, tmp_path: Path, server: BatchServer) -> None:
    model = build(vendor, server, tmp_path)
    found = ask(model, questions(10))
    stats = server.stats()
    assert texts(found) == ALL
    one = found["t/3/0/0/0"]
    assert one.finish_reason == "stop" and one.usage is not None and one.usage.input_tokens and one.latency is None
    assert [batch["requests"] for batch in stats["batches"]] == [10] and stats["keys"] == [KEY]
    assert model.describe()["batches"] == ["batch-0" if vendor == "anthropic" else "batches/batch-0"]
    assert model.kinds == {"generate_until"}
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL], "what is taken in leaves no files"


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("generation", [
    {"max_new_tokens": 16, "temperature": 0, "until": ["END"]},
    {"max_new_tokens": 9, "do_sample": True, "temperature": 0.5, "top_k": 3, "reasoning_effort": "low"},
])  # fmt: skip
def test_a_line_has_the_body_that_the_package_sends(
    vendor: str, generation: dict[str, Any], tmp_path: Path, server: BatchServer
) -> None:
    from PIL import Image

    request = make_request("t/0/0/0/0", "look ANSWER=0", [Image.new("RGB", (8, 8), "red")], generation)
    arguments = {"system_prompt": "Be brief.", **({"safety_threshold": "OFF"} if vendor == "gemini" else {})}
    ask(build(vendor, server, tmp_path, **arguments), [request])
    line = server.lines("batch-0")[0]
    with StubServer() as stub:
        request = make_request("t/0/0/0/0", "look ANSWER=0", [Image.new("RGB", (8, 8), "red")], generation)
        single = {"base_url": f"http://127.0.0.1:{stub.port}", "batch": False}
        ask(build(vendor, server, tmp_path, **arguments, **single), [request])
        (body,) = stub.bodies()
    expected = _in_camel_case(body) if vendor == "gemini" else body
    assert line["body"] == expected


def _in_camel_case(value: Any, name: str = "") -> Any:
    """The package leaves some names as they are given, and encodes data for addresses; the service takes both forms."""
    if isinstance(value, dict):
        return {camel_case(name): _in_camel_case(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_in_camel_case(item) for item in value]
    return value.replace("-", "+").replace("_", "/") if name == "data" else value


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_a_stop_ended_in_its_thoughts_goes_into_a_batch_without_stops(
    vendor: str, tmp_path: Path, server: BatchServer
) -> None:
    server.reset(thinks=True)
    generation = {"max_new_tokens": 16, "until": ["\n\n", "END"]}
    asked = [make_request(f"t/{n}/0/0/0", f"question {n} ANSWER={n}", generation=generation) for n in range(3)]
    found = ask(build(vendor, server, tmp_path), asked)
    assert texts(found) == {f"t/{number}/0/0/0": f"<think>hm\n\nhm</think>{number}" for number in range(3)}
    shown = [json.dumps(server.lines(f"batch-{number}")) for number in range(2)]
    assert ["END" in lines for lines in shown] == [True, False]


@pytest.mark.parametrize("vendor", VENDORS)
def test_batches_are_split_by_requests_and_bytes(vendor: str, tmp_path: Path, server: BatchServer) -> None:
    server.reset(max_requests=4)
    assert texts(ask(build(vendor, server, tmp_path / "a", batch_max_requests=4), questions(10))) == ALL
    by_count = [batch["requests"] for batch in server.stats()["batches"]]
    server.reset(max_bytes=900)
    assert texts(ask(build(vendor, server, tmp_path / "b", batch_max_mb=0.0009), questions(10))) == ALL
    by_size = [batch["requests"] for batch in server.stats()["batches"]]
    assert by_count == [4, 4, 2]
    assert sum(by_size) == 10 and len(by_size) > 1, "the stub refuses larger bodies"
    long = make_request("t/9/0/0/0", "x" * 1000)
    error = ask(build(vendor, server, tmp_path / "b", batch_max_mb=0.0009), [long])["t/9/0/0/0"].error
    assert error is not None and error.kind == "bad_request" and "batch_max_mb" in error.message


def test_limits_of_the_services() -> None:
    for vendor, limits in {"anthropic": (100_001, 257), "gemini": (0, 2001)}.items():
        for name, value in zip(("batch_max_requests", "batch_max_mb"), limits, strict=True):
            with pytest.raises(ModelError, match=name):
                ModelRegistry().build(vendor, {"model": "m", "api_key": "k", "batch": True, name: value})


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("fault", [
    {"line_fault": 500}, {"line_fault": 429}, {"lost": True}, {"ends": "expired"}, {"refuse": "create"},
    {"refuse": "look"}, {"refuse": "read"}, {"garbage": "results"}, {"garbage": "look"}, {"garbage": "bodies"},
    {"refuse": "list"},
])  # fmt: skip
def test_what_may_pass_is_asked_again(vendor: str, fault: dict[str, Any], tmp_path: Path, server: BatchServer) -> None:
    refused = fault.get("refuse")
    server.reset(**{**fault, **({"refuse": PLACES[vendor][refused]} if refused else {})})
    found = ask(build(vendor, server, tmp_path), questions(10))
    assert texts(found) == ALL
    asked_again = 0 if refused or fault.get("garbage") in ("results", "look") else 5
    assert sum(server.stats()["asked"].values()) == 10 + asked_again


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("fault", "failed", "kind", "words"), [
    ({"line_fault": 400}, 5, "bad_request", "HTTP 400"),
    ({"line_fault": 500, "times": 99}, 2, "server_error", "HTTP 500"),
    ({"ends": "cancelled"}, 5, "server_error", "cancelled"),
    ({"ends": "expired", "times": 99}, 2, "timeout", "expired"),
    ({"refuse": "create", "status": 401, "times": 99}, 10, "auth", "API_KEY"),
    ({"refuse": "create", "times": 99}, 10, "server_error", "HTTP 500"),
    ({"refuse": "look", "times": 99}, 10, "server_error", "start the same command again"),
    ({"refuse": "read", "times": 99}, 10, "server_error", "start the same command again"),
])  # fmt: skip
def test_failures_name_their_reason(
    vendor: str, fault: dict[str, Any], failed: int, kind: str, words: str, tmp_path: Path, server: BatchServer
) -> None:
    server.reset(**{**fault, **({"refuse": PLACES[vendor][fault["refuse"]]} if "refuse" in fault else {})})
    found = ask(build(vendor, server, tmp_path, max_retries=1), questions(10))
    errors = [response.error for response in found.values() if response.error is not None]
    assert len(found) == 10 and len(errors) == failed
    assert {error.kind for error in errors} == {kind}
    assert words in errors[0].message and f"127.0.0.1:{server.port}" in errors[0].message
    assert KEY not in errors[0].message


def test_a_failed_batch_of_gemini_names_its_reason(tmp_path: Path, server: BatchServer) -> None:
    server.reset(ends="failed")
    found = ask(build("gemini", server, tmp_path), questions(2))
    assert {response.error.kind for response in found.values() if response.error} == {"bad_request"}
    server.reset(ends="failed", reason="token_limit_exceeded")
    assert texts(ask(build("gemini", server, tmp_path), questions(10))) == ALL


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_that_was_made_though_the_answer_failed_is_found_not_made_again(
    vendor: str, tmp_path: Path, server: BatchServer
) -> None:
    server.reset(refuse=PLACES[vendor]["create"], is_done=True)
    assert texts(ask(build(vendor, server, tmp_path), questions(10))) == ALL
    assert len(server.stats()["batches"]) == 1


@pytest.mark.parametrize("vendor", VENDORS)
def test_results_that_were_taken_in_halfway_are_taken_in_by_the_next_start(
    vendor: str, tmp_path: Path, server: BatchServer
) -> None:
    first = ask(build(vendor, server, tmp_path), questions(10), most=3)
    left = [request for request in questions(10) if request.id not in first]
    second = ask(build(vendor, server, tmp_path), left)
    assert texts({**first, **second}) == ALL and not first.keys() & second.keys()
    assert len(server.stats()["batches"]) == 1


@pytest.mark.parametrize("vendor", ["openai", *VENDORS])
def test_the_journal_is_cut_at_any_place(vendor: str, tmp_path: Path, server: BatchServer) -> None:
    """A start finds the batch whose id the journal has lost, and asks nothing twice."""
    server.reset(slow_after=0, delay=1000)
    journal = _journal_of_a_live_batch(vendor, tmp_path / "whole", server)
    lines = journal.splitlines(keepends=True)
    begin = len(lines[0]) + len(lines[1])
    assert len(lines) == 3
    server.release()
    for number, end in enumerate((begin, begin + 1, begin + len(lines[2]) // 2, len(journal) - 1, len(journal))):
        folder = tmp_path / str(number)
        folder.mkdir()
        for path in (tmp_path / "whole").iterdir():
            (folder / path.name).write_bytes(journal[:end] if path.name == JOURNAL else path.read_bytes())
        assert texts(ask(_model(vendor, server, folder), questions(10))) == ALL
    assert len(server.stats()["batches"]) == 1 and set(server.stats()["asked"].values()) == {1}


def _model(vendor: str, server: BatchServer, folder: Path) -> Any:
    if vendor == "openai":
        return openai.build(server, folder)
    return build(vendor, server, folder)


def _journal_of_a_live_batch(vendor: str, folder: Path, server: BatchServer) -> bytes:
    async def run(model: Any) -> None:
        stream = MemoryStream(map(model.prepare, questions(10)), closed=False)
        loop = asyncio.get_running_loop()

        def stop_when_created() -> None:
            server.wait_for("looking")
            loop.call_soon_threadsafe(stream.stop)

        threading.Thread(target=stop_when_created).start()
        assert [response async for response in model.respond(stream)] == []

    asyncio.run(run(_model(vendor, server, folder)))
    return (folder / JOURNAL).read_bytes()


class TestGuesses:
    """Anthropic's batches have no name of ours: the one of a killed start is found by its time and its size."""

    def killed(self, folder: Path, server: BatchServer, **settings: Any) -> None:
        """Send a batch whose id is not recorded."""
        server.reset(refuse=PLACES["anthropic"]["create"], times=99, **settings)
        found = ask(build("anthropic", server, folder, max_retries=0), questions(10))
        assert {response.error.kind for response in found.values() if response.error} == {"server_error"}

    def test_a_batch_of_somebody_else_is_not_taken_for_ours(self, tmp_path: Path, server: BatchServer) -> None:
        self.killed(tmp_path, server, is_done=True)
        server.add_foreign(10)
        server.add_foreign(3)
        server.allow()
        assert texts(ask(build("anthropic", server, tmp_path), questions(10))) == ALL
        assert len(server.stats()["batches"]) == 3

    def test_only_batches_of_somebody_else(self, tmp_path: Path, server: BatchServer) -> None:
        server.add_foreign(10)
        self.killed(tmp_path, server)
        server.add_foreign(10)
        server.add_foreign(10)
        server.allow()
        assert texts(ask(build("anthropic", server, tmp_path), questions(10))) == ALL
        stats = server.stats()
        assert [batch["requests"] for batch in stats["batches"]] == [10, 10, 10]
        assert len(stats["asked"]) == 10 and set(stats["asked"].values()) == {1}
        assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]

    def test_a_guess_survives_a_kill(self, tmp_path: Path, server: BatchServer) -> None:
        self.killed(tmp_path, server, is_done=True)
        server.add_foreign(10)
        server.allow()
        first = ask(build("anthropic", server, tmp_path), questions(10), most=2)
        left = [request for request in questions(10) if request.id not in first]
        assert texts({**first, **ask(build("anthropic", server, tmp_path), left)}) == ALL
        assert len(server.stats()["batches"]) == 2

    def test_a_list_that_fails_stops_the_run(self, tmp_path: Path, server: BatchServer) -> None:
        self.killed(tmp_path, server, is_done=True)
        server.reset(refuse=PLACES["anthropic"]["list"], status=404, times=99)
        with pytest.raises(ModelError, match="was killed while it created a batch"):
            ask(build("anthropic", server, tmp_path), questions(2))


def test_a_full_queue_is_waited_for(tmp_path: Path, server: BatchServer) -> None:
    """Gemini refuses to create a batch beyond its queue (429), which is no failure while another batch is live."""
    server.reset(most_live=1, delay=0.2)
    model = build("gemini", server, tmp_path, batch_max_requests=2, max_retries=0)
    assert texts(ask(model, questions(6))) == {name: text for name, text in ALL.items() if int(text) < 6}
    assert set(server.stats()["asked"].values()) == {1}
