"""Runs of a model with tools: samples, continuing, the response cache."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config import build_config
from lmms_eval.evaluation.run import run
from lmms_eval.results import load
from lmms_eval.results.sample_text import conversation_text
from tests.models import tools
from tests.servers.stub import StubServer
from tests.servers.tool_calls import question

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the package mcp is not installed")
ADDED = [[("add", {"first": 1, "second": 2}), ("draw", {"side": 40})], [("add", {"first": 3, "second": 4})]]
TASK = """
task: tooled
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: question
doc_to_target: answer
generation_kwargs: {max_new_tokens: 16}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as started:
        yield started


def write_task(folder: Path, questions: list[str]) -> Path:
    """Write the task, and the MCP server beside it."""
    folder.mkdir()
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"question": text, "answer": "yes"}) + "\n" for text in questions))
    (folder / "tooled.yaml").write_text(TASK.replace("DATA", str(data)))
    return Path(shutil.copy(Path(tools.__file__).with_name("server.py"), folder))


def evaluate(tmp: Path, server: StubServer, out: str, **options: Any) -> int:
    script = tmp / "tasks" / "server.py"
    arguments = f"model=stub,base_url={server.url},mcp_server_path={script},max_retries=0"
    values = {"model": "openai", "model_args": arguments, "tasks": "tooled", "include_path": str(tmp / "tasks")}
    return run(build_config({**values, "output_path": str(tmp / out), "log_samples": True, **options})).exit_code


def rows(folder: Path) -> list[dict[str, Any]]:
    path = sorted(folder.rglob("*_samples_*.jsonl"))[-1]
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_samples_tell_the_calls_and_a_continued_run_repeats_none(tmp_path: Path, server: StubServer) -> None:
    ends_once = question([[("crash", {})]], "yes")
    script = write_task(tmp_path / "tasks", [f"{n} {question(ADDED, 'yes')}" for n in range(4)] + [ends_once])
    assert evaluate(tmp_path, server, "out") == 3
    first = rows(tmp_path / "out")
    assert [row["status"] for row in first] == ["scored"] * 4 + ["failed"]
    assert (
        first[4]["error"].startswith("tool: MCP server")
        and first[4]["messages"][1]["content"][1]["call"]["name"] == "crash"
    )
    asked = server.stats()["total"]
    assert asked == 4 * 3 + 1
    script.with_name("server.py.started").unlink()
    assert evaluate(tmp_path, server, "out") == 3
    assert server.stats()["total"] == asked + 1  # the failed one alone
    assert rows(tmp_path / "out")[:4] == first[:4]
    messages = first[0]["messages"]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "tool",
    ]
    assert messages[1]["content"][1] == {
        "call": {"id": "c0_0", "name": "add", "arguments": '{"first": 1, "second": 2}'}
    }
    assert messages[2] == {"role": "tool", "content": [{"text": "3"}], "call": "c0_0"}
    picture = messages[4]["content"][1]
    assert picture["type"] == "image" and next((tmp_path / "out").rglob(picture["path"])).read_bytes()[1:4] == b"PNG"
    sample = load(tmp_path / "out").task("tooled").sample(0)
    text = conversation_text(sample.messages)
    assert '[assistant]\nLet me look.[add {"first": 1, "second": 2}][draw {"side": 40}]\n\n[tool c0_0]\n3\n\n' in text


def test_the_response_cache_keeps_whole_conversations(tmp_path: Path, server: StubServer) -> None:
    write_task(tmp_path / "tasks", [f"{number} {question(ADDED, 'yes')}" for number in range(3)])
    cache = str(tmp_path / "cache.db")
    assert evaluate(tmp_path, server, "1", use_cache=cache) == evaluate(tmp_path, server, "2", use_cache=cache) == 0
    assert server.stats()["total"] == 3 * 3
    first, second = rows(tmp_path / "1"), rows(tmp_path / "2")
    assert [row["messages"] for row in first] == [row["messages"] for row in second]
    assert len(list((tmp_path / "2").rglob("images/*"))) == 1
