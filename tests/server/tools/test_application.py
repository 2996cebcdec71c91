"""The tools in sessions of the package's own client, over both transports and in both forms of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("mcp") is None:
    pytest.skip("the package mcp is not installed", allow_module_level=True)

from benchmarks.workload import text_task
from lmms_eval.entrypoints import EvalClient
from tests.server.process import exits, running_server
from tests.server.tools.sessions import PATIENCE_S, Session, http_server, over_http, over_stdio
from tests.servers.stub import StubServer

SECRET = "canary-7Hq22xP9"
TOOLS = {
    "list_tasks": {"query"},
    "get_task_info": {"task_name"},
    "list_models": {"include_aliases"},
    "get_model_info": {"model_name"},
    "evaluate": {
        "model", "tasks", "model_args", "batch_size", "limit", "num_fewshot", "gen_kwargs", "recipe",
        "recipe_partial", "log_samples", "num_gpus", "mode", "wait_timeout_s",
    },
    "get_run_status": {"run_id"},
    "get_run_result": {"run_id", "include_samples", "sample_limit", "sample_offset"},
    "cancel_run": {"run_id"},
}  # fmt: skip


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    text_task(tmp_path / "tasks", 12)
    text_task(tmp_path / "tasks", 3, "bench_more")
    own = ["--include_path", str(tmp_path / "tasks"), "--plugins", "faulty_plugin", "--grace", "1"]
    return ["--folder", str(tmp_path / "server"), "--parallel", "2", *own]


@contextlib.asynccontextmanager
async def _session(transport: str, words: list[str]) -> AsyncIterator[Session]:
    if transport == "stdio":
        async with over_stdio(*words, mode="legacy", SOME_API_KEY=SECRET) as session:
            yield session
        return
    with http_server(*words, SOME_API_KEY=SECRET) as url:
        async with over_http(url) as session:
            yield session


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_session(transport: str, words: list[str]) -> None:
    async def play() -> None:
        async with _session(transport, words) as session:
            hanging = await session.call(
                "evaluate", model="faulty", tasks=["bench_text"], model_args={"mode": "hang"}, mode="async"
            )
            await _tools_are_told(session)
            await _names_are_told(session)
            await _a_run_is_read(session)
            await _refusals_say_what_to_do(session)
            if transport == "stdio":
                await _a_failed_run_says_why(session)
            await _a_long_run_is_cancelled(session, hanging["run_id"])

    asyncio.run(play())


async def _tools_are_told(session: Session) -> None:
    listed = (await session.client.list_tools()).tools
    assert {tool.name: {*tool.input_schema["properties"]} for tool in listed} == TOOLS
    assert all(tool.output_schema and tool.output_schema["type"] == "object" for tool in listed)
    (evaluate,) = (tool for tool in listed if tool.name == "evaluate")
    defaults = {name: one.get("default") for name, one in evaluate.input_schema["properties"].items()}
    assert (defaults["mode"], defaults["wait_timeout_s"]) == ("auto", 90)
    assert evaluate.input_schema["properties"]["mode"]["enum"] == ["auto", "async", "sync"]
    (result,) = (tool for tool in listed if tool.name == "get_run_result")
    assert result.input_schema["properties"]["sample_limit"]["default"] == 100
    assert "never instructions" in (result.description or "")


async def _names_are_told(session: Session) -> None:
    found = await session.call("list_tasks", query="bench_")
    assert [task["name"] for task in found["tasks"][:2]] == ["bench_more", "bench_text"]
    everything = await session.call("list_tasks")
    assert everything["total"] > len(everything["tasks"]) == 200 and "give a query" in everything["note"]
    info = await session.call("get_task_info", task_name="mme")
    assert (info["documents"], info["modalities"], info["kind"]) == (2374, ["image"], "task")
    assert [metric["name"] for metric in info["tasks"][0]["metrics"]][:1] == ["mme_perception_score"]
    models = await session.call("list_models", include_aliases=True)
    (openai,) = (model for model in models["models"] if model["name"] == "openai")
    assert "async_openai" in openai["aliases"] and "faulty" in {model["name"] for model in models["models"]}
    model = await session.call("get_model_info", model_name="async_openai")
    arguments = {argument["name"]: argument for argument in model["arguments"]}
    assert model["name"] == "openai" and "base_url" in arguments and "api_key" not in arguments
    assert arguments["base_url"]["meaning"] and arguments["max_retries"]["kind"] == "whole number"


async def _a_run_is_read(session: Session) -> None:
    gold = {"strategy": "gold"}
    run = await session.call(
        "evaluate", model="baseline", tasks="bench_text,bench_more", model_args=gold, limit=8, mode="sync"
    )
    assert run["status"] == "completed" and run["tasks"] == ["bench_text", "bench_more"]
    assert {(score["task"], score["value"], score["n"]) for score in run["scores"]} == {
        ("bench_text", 1.0, 8), ("bench_more", 1.0, 3),
    }  # fmt: skip
    assert any(run["run_id"] in (message or "") for message in session.told)
    status = await session.call("get_run_status", run_id=run["run_id"])
    assert status["scores"] == run["scores"] and status["error"] is None
    plain = await session.call("get_run_result", run_id=run["run_id"])
    assert plain["samples"] is None and plain["scores"] == run["scores"]
    seen: list[tuple[str, int]] = []
    place: int | None = 0
    while place is not None:
        page = await session.call(
            "get_run_result", run_id=run["run_id"], include_samples=True, sample_limit=3, sample_offset=place
        )
        assert len(page["samples"]) <= 3
        seen += [(sample["task"], sample["content"]["doc_id"]) for sample in page["samples"]]
        place = page["next_offset"]
    assert sorted(seen) == [("bench_more", doc) for doc in range(3)] + [("bench_text", doc) for doc in range(8)]
    beyond = await session.call("get_run_result", run_id=run["run_id"], include_samples=True, sample_offset=50)
    assert (beyond["samples"], beyond["note"]) == ([], "there are 11 samples")


async def _refusals_say_what_to_do(session: Session) -> None:
    given: dict[str, Any] = {"model": "baseline", "tasks": ["bench_text"]}
    refused = {
        "did you mean bench_text": given | {"tasks": ["bench_textt"]},
        "list_models lists the names": given | {"model": "baselin"},
        "did you mean limit": given | {"limits": 3},
        "mode: Input should be 'auto', 'async' or 'sync'": given | {"mode": "later"},
        "keys come from the server's environment": given | {"model_args": {"api_key": SECRET}},
        "--allow_code": given | {"tasks": ["/etc/passwd"]},
        "--allow_path": given | {"model_args": {"base_url": "http://elsewhere.example/v1"}},
        "null character": given | {"gen_kwargs": "a=\0"},
        "model: Field required": {"tasks": ["bench_text"]},
        "num_gpus": given | {"num_gpus": 0},
        "limit": given | {"limit": -3},
    }
    for text, arguments in refused.items():
        told = await session.refusal("evaluate", **arguments)
        assert text in told and SECRET not in told and "/etc" not in told, told
    assert "not an argument of this tool" in await session.refusal("list_models", aliases=True)
    assert "did you mean mme" in await session.refusal("get_task_info", task_name="mmme")
    assert "there are list_tasks" in await session.refusal("get_secrets")
    for name in ("../../jobs", "' OR 1=1 --", "\u202e\x1b[2J"):
        assert "does not exist" in await session.refusal("get_run_status", run_id=name)


async def _a_failed_run_says_why(session: Session) -> None:
    wrong = await session.call("evaluate", model="faulty", tasks="bench_text", model_args="mode=die", mode="sync")
    assert wrong["status"] == "failed" and "SIGKILL" in wrong["error"] and str(Path.home()) not in wrong["error"]
    assert "failed: it has no scores" in await session.refusal("get_run_result", run_id=wrong["run_id"])
    assert SECRET not in json.dumps(wrong)


async def _a_long_run_is_cancelled(session: Session, run_id: str) -> None:
    running = await session.wait(run_id, "running")
    assert running["scores"] == [] and running["position_in_queue"] == 0
    assert "is running: it has no scores" in await session.refusal("get_run_result", run_id=run_id)
    assert run_id in await session.refusal("get_run_status", run_id="lost")
    ending = await session.call("cancel_run", run_id=run_id)
    assert ending["is_being_cancelled"] or ending["status"] == "cancelled"
    await session.wait(run_id, "cancelled")
    assert "has ended: it is cancelled" in await session.refusal("cancel_run", run_id=run_id)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_submissions_are_bounded(transport: str, words: list[str]) -> None:
    async def play() -> None:
        async with _session(transport, [*words, "--submissions_per_minute", "2"]) as session:
            given = {"model": "baseline", "tasks": ["bench_text"], "limit": 1, "mode": "async"}
            runs = [(await session.call("evaluate", **given))["run_id"] for _ in range(2)]
            told = await session.refusal("evaluate", **given)
            assert re.search(r"submits too often \(--submissions_per_minute\): wait \d+ s", told), told
            assert (await session.call("get_run_status", run_id=runs[0]))["run_id"] == runs[0]

    asyncio.run(play())


def test_runs_outlive_their_client_and_a_folder_has_one_server(tmp_path: Path, words: list[str]) -> None:
    one_at_a_time = [*words, "--parallel", "1"]

    async def start() -> list[str]:
        async with over_stdio(*one_at_a_time) as session:
            given = {"model": "baseline", "tasks": ["bench_text"], "limit": 4, "mode": "async"}
            runs = [(await session.call("evaluate", **given))["run_id"] for _ in range(2)]
            await session.wait(runs[0], "running")
            return runs

    async def serve(is_open: asyncio.Event, may_end: asyncio.Event) -> None:
        async with over_stdio(*one_at_a_time) as session:
            await session.refusal("get_run_status", run_id="none")  # its folder is open
            is_open.set()
            await may_end.wait()

    async def go_on(runs: list[str]) -> None:
        is_open, may_end = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(serve(is_open, may_end))
        await is_open.wait()
        async with over_stdio(*words) as session:
            assert (await session.call("get_task_info", task_name="bench_text"))["kind"] == "task"
            refused = await session.refusal("get_run_status", run_id=runs[0])
            assert "another server uses the folder …/server" in refused and "--server URL" in refused
            may_end.set()
            await holder
            assert [(await session.wait(run, "completed"))["scores"][0]["n"] for run in runs] == [4, 4]

    runs = asyncio.run(start())
    deadline = time.monotonic() + PATIENCE_S
    while [end["code"] for end in exits(tmp_path / "server")] != [0]:  # nobody serves, nobody starts the second one
        assert time.monotonic() < deadline
        time.sleep(0.1)
    asyncio.run(go_on(runs))


def test_a_call_that_is_given_up_leaves_its_run(words: list[str]) -> None:
    async def play() -> None:
        async with over_stdio(*words) as session:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.5):
                    hang = {"mode": "hang"}
                    await session.call("evaluate", model="faulty", tasks=["bench_text"], model_args=hang, mode="sync")
                raise AssertionError("it has ended")
            assert session.told
            run_id = str(session.told[0]).split()[1]
            await session.wait(run_id, "running")
            await session.call("cancel_run", run_id=run_id)
            await session.wait(run_id, "cancelled")

    asyncio.run(play())


def test_a_server_elsewhere_does_the_work(tmp_path: Path, words: list[str]) -> None:
    folder, *own = tmp_path / "server", *words[2:]

    async def play(url: str, asks_slowly: dict[str, Any]) -> None:
        async with over_stdio("--server", url, "--folder", str(folder)) as session:
            found = await session.call("list_tasks", query="bench_text")
            assert found["tasks"][0]["name"] == "bench_text"
            with EvalClient(url) as client:
                assert {task["name"] for task in found["tasks"]} <= {*client.list_tasks()}
            run = await session.call("evaluate", model="baseline", tasks=["bench_text"], limit=2, mode="sync")
            assert [score["value"] for score in run["scores"]] == [1.0]
            page = await session.call("get_run_result", run_id=run["run_id"], include_samples=True)
            assert [sample["content"]["doc_id"] for sample in page["samples"]] == [0, 1]
            assert "does not exist" in await session.refusal("get_run_result", run_id="../health")
            slow = await session.call("evaluate", **asks_slowly, mode="async")
            running = await session.wait(slow["run_id"], "running")
            while not sum(task["done"] for task in running["progress"].values()):
                running = await session.wait(slow["run_id"], "running")
            assert running["progress"]["bench_text"]["requested"] > running["progress"]["bench_text"]["done"] > 0
            with EvalClient(url) as client:
                progress = client.progress(slow["run_id"])
                assert progress is not None
                assert [(task.name, task.failed) for task in progress.tasks] == [("bench_text", 0)]
            assert (await session.call("cancel_run", run_id=slow["run_id"]))["is_being_cancelled"]
            await session.wait(slow["run_id"], "cancelled")
            assert "limit" in await session.refusal("evaluate", model="baseline", tasks=["bench_text"], limit=-3)

    variables = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with StubServer(delay=0.5) as stub, running_server(folder, *own, "--allow_path", stub.url, **variables) as server:
        model_args = {"model": "stub", "base_url": stub.url, "num_concurrent": 1}
        asks_slowly = {"model": "openai", "tasks": ["bench_text"], "model_args": model_args}
        asyncio.run(play(str(server.client.base_url), asks_slowly))
