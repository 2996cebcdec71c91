"""Tools of a real MCP server in conversations with a chat server that calls them."""

from __future__ import annotations

import importlib.util
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from lmms_eval.api.request import Response
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.model import OpenAI
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer
from tests.servers.tool_calls import question

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the package mcp is not installed")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return Path(shutil.copy(Path(__file__).with_name("server.py"), tmp_path))


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


def build(stub: StubServer, script: Path, **arguments: Any) -> OpenAI:
    return OpenAI(model="stub", base_url=stub.url, mcp_server_path=str(script), retry_backoff_s=0.01, **arguments)


def answers(model: OpenAI, **questions: str) -> dict[str, Response]:
    try:
        return ask(model, [make_request(name, text) for name, text in questions.items()])
    finally:
        model.close()


def starts(script: Path) -> int:
    return len(Path(f"{script}.started").read_text().split())


def told(response: Response) -> list[tuple[str, Any]]:
    """Role and content of the messages between question and answer."""
    return [
        (message.role, [part.text or part.call or part.picture or part.kind for part in message.content])
        for message in response.tool_messages
    ]


def results(response: Response) -> list[str]:
    return [str(content[0]) for role, content in told(response) if role == "tool"]


def test_calls_are_run_and_their_results_sent(stub: StubServer, script: Path) -> None:
    calls = [
        [("add", {"first": 2, "second": 3}), ("add", {"first": 1, "second": 1})],
        [("add", '{"first": 5, "second": 5}')],
    ]
    response = answers(build(stub, script), q=question(calls, "ten"))["q"]
    assert response.text == "ten" and response.attempts == 1
    assert [(role, len(content)) for role, content in told(response)] == [
        ("assistant", 3), ("tool", 1), ("tool", 1), ("assistant", 2), ("tool", 1),
    ]  # fmt: skip
    assert results(response) == ["5", "2", "10"]
    assert [message.call for message in response.tool_messages if message.role == "tool"] == ["c0_0", "c0_1", "c1_0"]
    first, second, third = stub.bodies()
    assert {tool["function"]["name"] for tool in first["tools"]} >= {"add", "draw", "crash"}
    assert second["tools"] == third["tools"] == first["tools"] and "tool_choice" not in third
    assert [message["role"] for message in third["messages"]] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    echoed = second["messages"][1]
    assert echoed["content"] == "Let me look." and echoed["tool_calls"][1]["extra"] == {"signature": 1}
    assert second["messages"][3] == {"role": "tool", "tool_call_id": "c0_1", "content": "2"}
    usages = [len(first["messages"][0]["content"][0]["text"]) // 4 + 1] * 3
    assert response.usage is not None and response.usage.input_tokens == sum(usages)


def test_one_server_for_all_requests_and_rounds(stub: StubServer, script: Path) -> None:
    text = question([[("add", {"first": 1, "second": 2})]] * 3)
    found = answers(build(stub, script), **{f"q{number}": f"{number}: {text}" for number in range(20)})
    assert all(results(response) == ["3"] * 3 for response in found.values())
    assert starts(script) == 1


def test_pictures_and_sounds_follow_in_the_users_name(stub: StubServer, script: Path) -> None:
    response = answers(build(stub, script), q=question([[("draw", {"side": 9}), ("hum", {})]]))["q"]
    sent = stub.bodies()[1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert sent[2]["content"].startswith("a square") and sent[3]["content"] == "[see below]"
    kinds = [part["type"] for part in sent[4]["content"]]
    assert kinds == ["text", "image_url", "text", "input_audio"]
    picture = response.tool_messages[-1].content[1].picture
    assert picture is not None and picture.data is not None and picture.data.startswith(b"\x89PNG")
    assert response.tool_messages[-1].content[3].kind == "audio"


WRONG = [
    (("fail", {}), "error: Error executing tool fail"),
    (("add", {"first": "many"}), "error: "),
    (("add", "first=2, second=3"), "error: the arguments are not JSON"),
    (("add", "__import__('os').getcwd()"), "error: the arguments are not JSON"),
    (("add", "[2, 3]"), "error: the arguments are not a JSON object"),
    (("multiply", {}), "error: there is no tool 'multiply'; there are: add, "),
    (("much", {}), "[cut: the first 500 of 10000000 characters]"),
]
"""Calls, and what the model is told. All are made at the same time, of one server."""


def test_what_goes_wrong_is_told_to_the_model(stub: StubServer, script: Path) -> None:
    model = build(stub, script, mcp_timeout=60, mcp_max_characters=500)
    good = [("add", {"first": 1, "second": 1})]
    found = answers(model, **{f"q{n}": f"{n}: {question([[call], good])}" for n, (call, _) in enumerate(WRONG)})
    for number, (call, wanted) in enumerate(WRONG):
        response = found[f"q{number}"]
        first, second = results(response)
        assert wanted in first and len(first) < 600, call
        assert second == "2" and response.text == "done", call
    assert starts(script) == 1
    calls = [body["messages"][1]["tool_calls"][0]["function"] for body in stub.bodies() if len(body["messages"]) > 1]
    assert len(calls) == 2 * len(WRONG)
    assert all(call["arguments"] == "{}" or call["arguments"].startswith("{") for call in calls)


def test_a_tool_that_takes_too_long_costs_its_own_call(stub: StubServer, script: Path) -> None:
    model = build(stub, script, mcp_timeout=1)
    response = answers(model, q=question([[("sleep", {})], [("add", {"first": 1, "second": 1})]]))["q"]
    assert results(response) == ["error: no answer within 1 s", "2"]
    assert response.text == "done" and starts(script) == 1


def test_a_server_that_blocks_is_replaced(stub: StubServer, script: Path) -> None:
    model = build(stub, script, mcp_timeout=2)
    response = answers(model, q=question([[("block", {})], [("add", {"first": 1, "second": 1})]]))["q"]
    assert results(response) == ["error: no answer within 2 s", "2"] and starts(script) == 2


def test_a_server_that_ended_is_started_once_more(stub: StubServer, script: Path) -> None:
    response = answers(build(stub, script), q=question([[("crash_once", {})]]))["q"]
    assert results(response) == ["still here"] and response.text == "done" and starts(script) == 2


def test_a_server_that_ends_again_fails_its_sample_alone(stub: StubServer, script: Path) -> None:
    model = build(stub, script)
    good = {
        f"q{number}": f"{number} {question([[('add', {'first': 1, 'second': number})]] * 5)}" for number in range(8)
    }
    found = answers(model, bad=question([[("crash", {})]]), **good)
    error = found.pop("bad").error
    assert error is not None and error.kind == "tool" and "tool 'crash'" in error.message
    assert all(response.text == "done" for response in found.values())
    assert model.describe()["failures"] == {"tool": 1}


def test_rounds_are_bounded(stub: StubServer, script: Path) -> None:
    model = build(stub, script, mcp_max_rounds=2)
    response = answers(model, q=question([[("add", {"first": 1, "second": 1})]] * 9))["q"]
    assert response.text == "done" and len(results(response)) == 2
    assert [body.get("tool_choice") for body in stub.bodies()] == [None, None, "none"]
    response = answers(build(stub, script), q=question([[("add", {"first": 1, "second": 1})] * 20]))["q"]
    assert results(response) == ["2"] * 16 + ["error: at most 16 calls are run at a time"] * 4


def test_counts_are_described_and_tools_are_part_of_the_identity(stub: StubServer, script: Path) -> None:
    model = build(stub, script)
    answers(model, q=question([[("add", {"first": 1, "second": 1}), ("fail", {})]]))
    record = model.describe()["tools"]
    assert (record["calls"], record["errors"], record["starts"]) == (2, 1, 1)
    other = build(stub, script, mcp_max_rounds=3)
    assert other.identity() != model.identity() == build(stub, script).identity()
    assert "tools" not in OpenAI(model="stub", base_url=stub.url).identity()


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"mcp_server_path": "absent.py"}, "there is no file absent.py"),
        ({"api": "responses"}, "needs a conversation"),
        ({"batch": True}, "needs a conversation"),
        ({"mcp_max_rounds": 0}, "mcp_max_rounds"),
    ],
)
def test_arguments_that_do_not_fit(script: Path, arguments: dict[str, Any], wanted: str) -> None:
    given = {"mcp_server_path": str(script), **arguments}
    with pytest.raises(ModelError, match=wanted):
        OpenAI(model="stub", base_url="http://127.0.0.1:9/v1", **given)


def test_a_script_that_fails_ends_the_run_with_its_last_words(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('where are my files?')")
    with pytest.raises(ModelError, match=r"(?s)broken\.py does not start.*where are my files\?"):
        OpenAI(model="stub", base_url="http://127.0.0.1:9/v1", mcp_server_path=str(script))


@pytest.mark.parametrize("kind", ["text", "json", "bytes", "blank", "answer", "notice", "broken"])
def test_a_server_that_writes_to_standard_output_is_told_of_once(
    stub: StubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    script = Path(shutil.copy(Path(__file__).with_name("loud_server.py"), tmp_path))
    lines: list[str] = []
    handler = logger.add(lambda message: lines.append(str(message)), level="INFO")
    try:
        model = build(stub, script)
        response = answers(model, q=question([[(kind, {})]]))["q"]
    finally:
        logger.remove(handler)
    assert results(response) == ["done"], told(response)
    assert starts(script) == 1
    said = [line for line in lines if "are no messages of the protocol" in line]
    assert len(said) <= 1 and (said or kind in ("answer", "notice", "blank"))
    assert len(lines) <= 2 and not any("Traceback" in line for line in lines)
    assert [record.name for record in caplog.records if record.levelno >= logging.WARNING] == []
