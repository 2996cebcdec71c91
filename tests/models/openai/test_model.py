"""The back end against a real server: every kind of failure, concurrency, closing."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Response
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.remote import asking
from tests.cases import for_each
from tests.models.openai.support import MemoryStream, ask, make_request
from tests.servers.stub import StubServer


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "LMMS_IMAGE_ENCODE_FORMAT"):
        monkeypatch.delenv(name, raising=False)


def build(server: StubServer, **arguments: Any) -> OpenAI:
    return OpenAI(**{"model": "stub", "base_url": server.url, "retry_backoff_s": 0.01, **arguments})


def ask_one(server: StubServer, **arguments: Any) -> Response:
    return ask(build(server, **arguments), [make_request("one")])["one"]


def test_answers_with_usage_and_every_question_once() -> None:
    with StubServer() as server:
        model = build(server)
        found = ask(model, [make_request(number) for number in range(200)])
        stats = server.stats()
    assert {name: response.text for name, response in found.items()} == {str(n): str(n) for n in range(200)}
    assert stats["total"] == 200 and set(stats["by_body"].values()) == {1}
    one = found["0"]
    assert one.finish_reason == "stop" and one.attempts == 1 and one.usage is not None
    assert one.usage.input_tokens and one.usage.output_tokens and one.usage.reasoning_tokens == 0
    assert one.latency is not None and 0 < one.latency < 30
    record = model.describe()
    assert record["requests"] == record["attempts"] == 200 and record["bytes_sent"] == stats["bytes"]
    assert record["retries"] == {} and record["failures"] == {}


def test_keeps_the_ceiling_and_reuses_connections() -> None:
    with StubServer(delay=0.02) as server:
        started = time.perf_counter()
        model = build(server, num_concurrent=8)
        ask(model, [make_request(number) for number in range(80)])
        span, stats = time.perf_counter() - started, server.stats()
    assert stats["max_in_flight"] == 8
    assert stats["connections"] <= 8 + 1, "one of them is the request for the counters"
    assert span < 80 / 8 * 0.02 * 4 + 1
    assert model.concurrency == 8 and model.describe()["concurrency"]["peak_open"] == 8


def test_a_slot_is_refilled_when_one_ends_not_when_all_end() -> None:
    """One slow question and thirty fast ones on two slots: the fast ones pass beside the slow one."""
    with StubServer(fault="slow", share=0.5, slow=1.0) as server:
        requests = [make_request(number) for number in range(200)]
        model = build(server, num_concurrent=2)
        slow = [r for r in map(model.prepare, requests) if is_met(r.payload, 0.5)]
        fast = [r for r in map(model.prepare, requests) if not is_met(r.payload, 0.5)]
        order = list(ask(model, [slow[0], *fast[:30]]))
    assert order[-1] == slow[0].id


def is_met(body: bytes, share: float) -> bool:
    """The stub's rule."""
    import hashlib

    return int(hashlib.sha1(body).hexdigest()[:8], 16) / 2**32 < share


@for_each(
    ("settings", "kind", "attempts", "words"),
    [
        ({"fault": "500"}, "server_error", 3, "HTTP 500"),
        ({"fault": "503", "retry_after": "0.01"}, "server_error", 3, "HTTP 503"),
        ({"fault": "429"}, "rate_limit", 3, "HTTP 429"),
        ({"fault": "429", "retry_after": "0.02"}, "rate_limit", 3, "HTTP 429"),
        ({"fault": "429", "retry_after": "3600"}, "rate_limit", 1, "asks to wait 3600 s"),
        ({"fault": "quota"}, "rate_limit", 1, "quota is used up"),
        ({"fault": "401"}, "auth", 1, "OPENAI_API_KEY"),
        ({"fault": "403"}, "auth", 1, "HTTP 403"),
        ({"fault": "400"}, "bad_request", 1, "HTTP 400"),
        ({"fault": "context_length"}, "bad_request", 1, "context length"),
        ({"fault": "413"}, "bad_request", 1, "max_image_bytes"),
        ({"fault": "422"}, "bad_request", 1, "HTTP 422"),
        ({"fault": "policy"}, "refused", 1, "content policy"),
        ({"fault": "malformed"}, "malformed", 3, "no JSON"),
        ({"fault": "not_utf8"}, "malformed", 3, "no JSON"),
        ({"fault": "no_choices"}, "malformed", 3, "no choices"),
        ({"fault": "wrong_types"}, "malformed", 3, "content of type int"),
        ({"fault": "error_in_200"}, "server_error", 3, "overloaded"),
        ({"fault": "finish_error"}, "server_error", 3, "ended its answer with an error"),
        ({"fault": "half_closed"}, "connection", 3, "broke"),
        ({"fault": "reset"}, "connection", 3, "broke"),
        ({"model": "other"}, "bad_request", 1, "model's name"),
    ],
)
def test_each_kind_of_failure(settings: dict[str, Any], kind: str, attempts: int, words: str) -> None:
    with StubServer(**settings) as server:
        started = time.perf_counter()
        response = ask_one(server, max_retries=2)
        assert time.perf_counter() - started < 5
        assert server.stats()["total"] == attempts
        assert response.error is not None and response.text is None
        assert response.error.kind == kind
        assert response.error.attempts == response.attempts == attempts
        assert words in response.error.message and server.url in response.error.message


@for_each(
    ("fault", "text", "finish"),
    [
        ("empty", "", "stop"),
        ("truncated", "cut o", "length"),
        ("content_filter", "", "content_filter"),
        ("refusal", "I cannot help with that.", "content_filter"),
        ("reasoning", "", "stop"),
        ("thought_too_long", "", "length"),
        ("parts", "parts", "stop"),
    ],
)
def test_unusual_replies_are_answers(fault: str, text: str, finish: str) -> None:
    with StubServer(fault=fault) as server:
        response = ask_one(server)
    assert response.error is None and response.attempts == 1
    assert (response.text, response.finish_reason) == (text, finish)


def test_timeout_is_retried_and_bounded() -> None:
    with StubServer(fault="slow", slow=30) as server:
        started = time.perf_counter()
        response = ask_one(server, timeout=0.2, max_retries=1)
        assert time.perf_counter() - started < 5
    assert response.error is not None and response.error.kind == "timeout" and response.attempts == 2
    assert "0.2 s" in response.error.message


@for_each("fault", ["500", "429", "malformed", "half_closed", "reset"])
def test_a_passing_fault_costs_nothing_but_attempts(fault: str) -> None:
    with StubServer(fault=fault, share=0.3, times=2) as server:
        model = build(server, num_concurrent=8)
        found = ask(model, [make_request(number) for number in range(40)])
        stats = server.stats()
    assert {name: response.text for name, response in found.items()} == {str(n): str(n) for n in range(40)}
    asked = [count for count in stats["by_body"].values() if count > 1]
    assert asked and set(asked) == {3}
    kind = {"500": "server_error", "429": "rate_limit", "malformed": "malformed"}.get(fault, "connection")
    assert model.describe()["retries"] == {kind: 2 * len(asked)}


def test_retry_after_is_waited_for_by_all() -> None:
    """The first rejection holds back every other request too, so nothing arrives during the pause."""
    with StubServer(fault="429", share=0.4, times=1, retry_after="0.4") as server:
        model = build(server, num_concurrent=2)
        ask(model, [make_request(number) for number in range(12)])
        times = server.stats()["times"]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) >= 0.38
    rejected = model.describe()["retries"]["rate_limit"]
    assert rejected >= 2 and times[-1] - times[0] < 0.4 * rejected * 1.5 + 1


def test_a_wait_that_is_too_long_holds_nobody_back() -> None:
    """A request that is given up because of it waits for nothing; the others must not wait in its place."""
    with StubServer(fault="429", share=0.3, retry_after="3600") as server:
        model = OpenAI(model="m", base_url=server.url, num_concurrent=2)
        started = time.perf_counter()
        found = ask(model, [make_request(f"r{number}", f"question {number}") for number in range(20)])
        assert time.perf_counter() - started < 10
    assert 0 < sum(response.error is None for response in found.values()) < 20


def test_retry_after_as_a_date() -> None:
    with StubServer(fault="429", times=1, retry_after="date:2") as server:
        started = time.perf_counter()
        response = ask_one(server)
        span = time.perf_counter() - started
    assert response.text == "one" and response.attempts == 2
    assert 0.9 < span < 6, "a date has whole seconds"


def test_rate_limits_lower_the_concurrency_to_what_the_server_takes() -> None:
    with StubServer(delay=0.02, limit=6) as server:
        model = build(server, num_concurrent=32, max_retries=8, retry_backoff_s=0.05)
        found = ask(model, [make_request(number) for number in range(300)])
        stats = server.stats()
    assert all(response.error is None for response in found.values())
    used = model.describe()["concurrency"]
    assert used["lowest"] <= 8 and used["highest"] == 32 and stats["max_in_flight"] <= 32
    assert used["last"] < 16
    assert stats["by_status"]["429"] < 150


def test_adaptive_concurrency_rises_above_the_start_but_not_above_its_ceiling() -> None:
    with StubServer(delay=0.01) as server:
        model = build(server, num_concurrent=4, adaptive_concurrency=True, adaptive_max_concurrency=12)
        ask(model, [make_request(number) for number in range(300)])
        stats = server.stats()
    assert model.concurrency == 12
    assert 4 < stats["max_in_flight"] <= 12


def test_a_dead_server_is_named_and_given_up_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    model = OpenAI(model="m", base_url=f"http://127.0.0.1:{port}/v1", retry_backoff_s=0.01)
    response = ask(model, [make_request("one")])["one"]
    assert response.error is not None and response.error.kind == "connection"
    assert response.attempts == 1 + asking.RETRIES_UNSEEN
    reason = f"cannot reach http://127.0.0.1:{port}/v1/chat/completions: Connect call failed ('127.0.0.1', {port})"
    assert response.error.message == f"{reason}; is the server running, and is base_url right?"


def test_a_server_that_dies_gets_all_retries() -> None:
    async def run() -> Response:
        model = build(server, max_retries=4)
        stream = MemoryStream([model.prepare(make_request("first"))], closed=False)
        async with aclosing(model.respond(stream)) as responses:  # type: ignore[type-var]
            first = await anext(responses)
            assert first.text == "first"
            server.__exit__()
            stream.push(model.prepare(make_request("second")))
            return await anext(responses)

    with StubServer() as server:
        response = asyncio.run(run())
        server.__enter__()
    assert response.error is not None and response.error.kind == "connection" and response.attempts == 5


def test_closing_cancels_what_is_open() -> None:
    async def run() -> None:
        model = build(server, num_concurrent=4)
        stream = MemoryStream([model.prepare(make_request(number)) for number in range(20)], closed=False)
        responses: Any = model.respond(stream)
        first = asyncio.create_task(anext(responses))
        while server.stats()["in_flight"] < 4:
            await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await responses.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with StubServer(fault="slow", slow=30) as server:
        asyncio.run(run())
        assert server.stats()["total"] == 4


def test_closing_between_responses_leaves_no_task() -> None:
    async def run() -> None:
        model = build(server, num_concurrent=4)
        stream = MemoryStream([model.prepare(make_request(number)) for number in range(200)])
        async for _ in (responses := model.respond(stream)):
            break
        await responses.aclose()  # type: ignore[attr-defined]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with StubServer(delay=0.02) as server:
        asyncio.run(run())


def test_later_requests_are_taken_while_others_are_open() -> None:
    """A multi-round task pushes the next round when an answer arrives: the stream stays open without blocking."""

    async def run() -> list[str]:
        model = build(server, num_concurrent=4)
        stream = MemoryStream([model.prepare(make_request("round0"))], closed=False)
        seen = []
        async for response in model.respond(stream):
            seen.append(response.request_id)
            if len(seen) == 5:
                stream.close()
            else:
                stream.push(model.prepare(make_request(f"round{len(seen)}")))
        return seen

    with StubServer() as server:
        assert asyncio.run(run()) == [f"round{number}" for number in range(5)]


def test_an_error_of_the_stream_is_raised() -> None:
    class Broken(MemoryStream):
        async def take_async(self, max_n: int) -> list[Any]:
            if self.asked_for:
                raise RuntimeError("the task's code is wrong")
            return self.take(max_n)

    async def run() -> None:
        model = build(server)
        async for _ in model.respond(Broken([model.prepare(make_request(1))])):
            pass

    with StubServer() as server, pytest.raises(RuntimeError, match="task's code"):
        asyncio.run(run())


def test_the_key_goes_out_and_never_into_messages() -> None:
    key = "sk-verysecret-0123456789"
    with StubServer(key=key) as server:
        assert ask_one(server, api_key=key).text == "one"
        wrong = ask_one(server, api_key="another-secret-key")
        assert wrong.error is not None and wrong.error.kind == "auth" and "secret" not in wrong.error.message
    with StubServer(fault="echo_key") as server:
        model = build(server, api_key=key)
        echoed = ask(model, [make_request("one")])["one"]
        assert (
            echoed.error is not None and "secret" not in echoed.error.message and "[REDACTED]" in echoed.error.message
        )
        assert key not in repr(model.describe()) + repr(model.identity())


def test_password_in_the_address_is_used_but_not_shown() -> None:
    with StubServer(key="Basic dXNlcjpwYXNz") as server:
        model = OpenAI(model="m", base_url=f"http://user:pass@127.0.0.1:{server.port}/v1?token=abc")
        assert ask(model, [make_request("one")])["one"].text == "one"
    shown = repr(model.describe()) + repr(model.identity())
    assert "pass@" not in shown and "abc" not in shown and f"127.0.0.1:{server.port}" in shown


def test_proxies_are_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with StubServer() as server:
        assert ask_one(server).text == "one"


def test_large_bodies_arrive_whole() -> None:
    text = "x" * 3_000_000 + " ANSWER=big"
    with StubServer() as server:
        model = build(server)
        assert ask(model, [make_request("big", text)])["big"].text == "big"
        assert server.stats()["bytes"] == model.describe()["bytes_sent"] > 3_000_000


def test_stop_strings_beyond_four_end_the_answer_here() -> None:
    stops = ["a1", "a2", "a3", "a4", "END", "STOP"]
    request = make_request("one", "ANSWER=some STOP and more END", generation={"until": stops})
    with StubServer() as server:
        response = ask(build(server), [request])["one"]
        assert server.bodies()[0]["stop"] == stops[:4]
    assert response.text == "some " and response.finish_reason == "stop"


def test_unknown_argument_names_the_nearest() -> None:
    with pytest.raises(ModelError, match="num_concurrent"):
        OpenAI(model="m", base_url="http://127.0.0.1:1/v1", num_concurent=3)


def test_identity_has_what_changes_answers_and_not_how_they_are_asked() -> None:
    first = OpenAI(model="m", base_url="http://127.0.0.1:1/v1", num_concurrent=3, system_prompt="Be brief.")
    second = OpenAI(model="m", base_url="http://127.0.0.1:1/v1", timeout=9, system_prompt="Be brief.")
    third = OpenAI(model="m", base_url="http://127.0.0.1:1/v1", system_prompt="Be long.")
    assert first.identity() == second.identity() != third.identity()


def test_the_class_is_imported_without_aiohttp() -> None:
    code = (
        "import sys; from lmms_eval.models.openai.model import OpenAI; "
        "assert 'aiohttp' not in sys.modules; OpenAI(model='m', base_url='http://127.0.0.1:1/v1'); "
        "assert 'aiohttp' in sys.modules; assert 'openai' not in sys.modules"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
