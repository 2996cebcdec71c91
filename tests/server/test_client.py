"""Both clients against a server whose answers are given: what is sent, tried again, and raised."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lmms_eval.errors import EvaluationServerError, JobFailedError, JobTimeoutError
from lmms_eval.server.client import AsyncEvalClient, EvalClient
from tests.server.scripted import Answer, scripted

Ask = Callable[..., Any]
QUEUED = {"job_id": "j1", "status": "queued", "position_in_queue": 0, "message": "Job queued"}
RUNNING = {"job_id": "j1", "status": "running", "position_in_queue": 0}
COMPLETED = {"job_id": "j1", "status": "completed", "result": {"m": {"results": "r.json", "samples": []}}}


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Call a method of a client of either kind."""

    def sync(url: str, name: str, *arguments: Any, client: dict[str, Any] | None = None, **named: Any) -> Any:
        with EvalClient(url, **(client or {})) as made:
            return getattr(made, name)(*arguments, **named)

    def asynchronous(url: str, name: str, *arguments: Any, client: dict[str, Any] | None = None, **named: Any) -> Any:
        async def call() -> Any:
            async with AsyncEvalClient(url, **(client or {})) as made:
                return await getattr(made, name)(*arguments, **named)

        return asyncio.run(call())

    return sync if request.param == "sync" else asynchronous


def test_a_submission_holds_what_was_given(ask: Ask) -> None:
    with scripted([Answer(QUEUED)]) as server:
        found = ask(server.url, "evaluate", "hf", ["a", "b"], model_args={"pretrained": "x,y"}, limit=None, seed=3)
    assert found == QUEUED
    (request,) = server.seen
    assert (request["method"], request["path"]) == ("POST", "/evaluate")
    body = request["body"]
    assert (body["model"], body["tasks"], body["model_args"], body["seed"]) == (
        "hf",
        ["a", "b"],
        {"pretrained": "x,y"},
        3,
    )
    assert "limit" not in body
    assert "authorization" not in request["headers"]


def test_a_lost_answer_submits_nothing_twice(ask: Ask) -> None:
    with scripted([Answer(status=0), Answer(status=503), Answer(QUEUED)]) as server:
        assert ask(server.url, "evaluate", "hf", ["a"])["job_id"] == "j1"
    assert len(server.seen) == 3
    assert len({request["headers"]["idempotency-key"] for request in server.seen}) == 1
    with scripted([Answer(QUEUED)]) as server:
        ask(server.url, "evaluate", "hf", ["a"])
        ask(server.url, "evaluate", "hf", ["a"])
    assert len({request["headers"]["idempotency-key"] for request in server.seen}) == 2


def test_a_server_that_comes_back_is_waited_for(ask: Ask) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    asked: list[Any] = []
    thread = threading.Thread(target=lambda: asked.append(ask(f"http://127.0.0.1:{port}", "list_tasks")))
    thread.start()
    time.sleep(0.5)
    with scripted([Answer({"tasks": ["a"]})], port):
        thread.join(30)
    assert asked == [["a"]]


def test_patience_ends(ask: Ask) -> None:
    with scripted([Answer({"detail": "busy"}, 503, {"retry-after": "30"})]) as server:
        with pytest.raises(EvaluationServerError, match=r"GET /queue: busy \(status 503\)") as caught:
            ask(server.url, "get_queue_status", client={"patience": 1.0})
        assert caught.value.status == 503
        assert len(server.seen) == 1  # the server asks for more time than there is
        url = server.url
    with pytest.raises(EvaluationServerError, match="no answer") as caught:
        ask(url, "get_queue_status", client={"patience": 0.5})
    assert caught.value.status is None
    assert ask(url, "is_healthy") is False


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer({"detail": "Job x not found"}, 404), r"Job x not found \(status 404\)"),
        (Answer({"detail": [{"loc": ["body", "tasks"], "msg": "Field required"}]}, 422), "tasks: Field required"),
        (Answer({"detail": [{"loc": ["body", "until"], "msg": "--until: no rule"}]}, 422), ": --until: no rule"),
        (Answer(b"<html>proxy</html>", 500), "<html>proxy</html>"),
        (Answer(b"<html>hello</html>", 200), "is this the address of an evaluation server"),
        (Answer([1], 200), "is this the address of an evaluation server"),
        (Answer({"detail": "\x1b[2Jgone\u202e"}, 400), r"\\u001b\[2Jgone\\u202e \(status 400\)"),
    ],
)
def test_refusals_say_why(ask: Ask, answer: Answer, said: str) -> None:
    with scripted([answer]) as server, pytest.raises(EvaluationServerError, match=said):
        ask(server.url, "get_job", "../x?y")
    assert server.seen[0]["path"] == "/jobs/..%2Fx%3Fy"
    assert len(server.seen) == 1


def test_waiting_ends_with_the_job(ask: Ask) -> None:
    queued = {**RUNNING, "status": "queued", "position_in_queue": 2}
    with scripted([Answer(queued), Answer(RUNNING), Answer(status=0), Answer(COMPLETED)]) as server:
        assert ask(server.url, "wait_for_job", "j1", poll_interval=0) == COMPLETED  # an integer is a time, too
    assert len(server.seen) == 4
    for status, error in (("failed", "no such task"), ("cancelled", None)):
        with scripted(
            [Answer(RUNNING), Answer({**RUNNING, "status": status, "error": error and error + "\x1b[2J"})]
        ) as server:
            with pytest.raises(RuntimeError, match=f"j1 .*{error or status}") as caught:
                ask(server.url, "wait_for_job", "j1", poll_interval=0.01)
            assert isinstance(caught.value, JobFailedError)
            assert "\x1b" not in str(caught.value)
    with scripted([Answer(RUNNING)]) as server, pytest.raises(TimeoutError, match=r"running after 0\.2 s") as late:
        ask(server.url, "wait_for_job", "j1", poll_interval=60.0, timeout=0.2)
    assert isinstance(late.value, JobTimeoutError)


def test_the_token_goes_with_each_call(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted([Answer({"models": []})]) as server:
        ask(server.url, "list_models", client={"token": "t1"})
        monkeypatch.setenv("LMMS_EVAL_SERVER_TOKEN", "t2")
        ask(server.url, "list_models")
        ask(server.url, "list_models", client={"token": ""})
    sent = [request["headers"].get("authorization") for request in server.seen]
    assert sent == ["Bearer t1", "Bearer t2", None]


def test_both_clients_can_do_the_same() -> None:
    def public(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert public(EvalClient) == public(AsyncEvalClient)
