"""Tools of a real server process that speaks the protocol in lines of JSON."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.mcp import MCPClient
from lmms_eval.mcp.client import MCPClient as same_client

needs_mcp = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the package mcp is not installed")

SERVER = """
    import json, os, sys

    open(sys.argv[0] + ".started", "a").write(f"{os.getpid()}\\n")
    SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
    PAGES = {
        None: {"tools": [{"name": "echo", "description": "Say it again.", "inputSchema": SCHEMA}], "nextCursor": "2"},
        "2": {"tools": [{"name": "draw", "inputSchema": {"type": "object"}}]},
    }

    def call(name, arguments):
        if name == "echo":
            return [{"type": "text", "text": arguments["text"] + "!"}]
        if name == "draw":
            return [
                {"type": "image", "data": "QUJD", "mimeType": "image/webp"},
                {"type": "audio", "data": "REVG", "mimeType": "audio/ogg"},
            ]
        if name == "exit":
            os._exit(3)
        if name == "sleep":
            return None

    def answer(method, params):
        if method == "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echoes", "version": "1"},
            }
        if method == "tools/list":
            return PAGES[(params or {}).get("cursor")]
        if method == "tools/call":
            content = call(params["name"], params.get("arguments"))
            return None if content is None else {"content": content}
        return {}

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and (result := answer(message["method"], message.get("params"))) is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(textwrap.dedent(SERVER))
    return path


@pytest.fixture
def client(server: Path) -> Iterator[MCPClient]:
    client = MCPClient(str(server), timedelta(seconds=20))
    yield client
    client.close()


def processes(server: Path) -> list[str]:
    return Path(f"{server}.started").read_text().split()


@needs_mcp
def test_tools_of_all_pages_in_the_form_of_chat_completions(client: MCPClient) -> None:
    listed = client.get_function_list_sync()
    assert [tool["type"] for tool in listed] == ["function", "function"]
    assert [tool["function"]["name"] for tool in listed] == ["echo", "draw"]
    assert listed[0]["function"]["description"] == "Say it again."
    assert listed[0]["function"]["parameters"]["properties"] == {"text": {"type": "string"}}
    assert listed[1]["function"]["description"] == ""
    assert json.dumps(listed)


@needs_mcp
def test_results_as_parts_of_messages(client: MCPClient) -> None:
    echoed = client.run_tool_sync("echo", {"text": "hello"}).content
    assert client.convert_result_to_openai_format(echoed[0]) == [{"type": "text", "text": "hello!"}]
    assert client.convert_result_to_openai_format(client.run_tool_sync("draw", {}).content) == [
        [{"type": "image_url", "image_url": {"url": "data:image/webp;base64,QUJD"}}],
        [{"type": "audio_url", "audio_url": {"url": "data:audio/ogg;base64,REVG"}}],
    ]
    with pytest.raises(ValueError, match="resource"):
        client.convert_result_to_openai_format(SimpleNamespace(type="resource"))


@needs_mcp
def test_calls_at_a_time_and_from_several_loops_share_one_process(client: MCPClient, server: Path) -> None:
    async def many() -> list[str]:
        calls = (client.run_tool("echo", {"text": str(number)}) for number in range(8))
        return [result.content[0].text for result in await asyncio.gather(*calls)]

    wanted = [f"{number}!" for number in range(8)]
    assert asyncio.run(many()) == asyncio.run(many()) == wanted
    assert client.run_tool_sync("echo", {"text": "x"}).content[0].text == "x!"
    assert len(processes(server)) == 1


@needs_mcp
def test_a_server_that_ended_is_started_anew(client: MCPClient, server: Path) -> None:
    with pytest.raises(ModelError, match=r"server\.py: tool 'exit'"):
        client.run_tool_sync("exit", {})
    assert client.run_tool_sync("echo", {"text": "back"}).content[0].text == "back!"
    assert len(processes(server)) == 2


@needs_mcp
def test_a_call_without_an_answer_ends_and_leaves_the_session(server: Path) -> None:
    client = MCPClient(server, timedelta(seconds=1.5))
    client.get_function_list_sync()
    with pytest.raises(ModelError, match=r"tool 'sleep': no answer within 1\.5 s"):
        client.run_tool_sync("sleep", {})
    assert client.run_tool_sync("echo", {"text": "on"}).content[0].text == "on!"
    assert len(processes(server)) == 1
    client.close()


@needs_mcp
def test_a_server_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    client = MCPClient(tmp_path / "absent.py", timedelta(seconds=20))
    with pytest.raises(ModelError, match=r"absent\.py does not start"):
        client.get_function_list_sync()


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else find_spec(name))
    with pytest.raises(ImportError, match=r"pip install lmms_eval\[mcp\]"):
        MCPClient("server.py")
    assert same_client is MCPClient
