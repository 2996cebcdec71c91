"""``--processes`` with a model that calls tools: each process has a tool server of its own, ended with it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.kill_resume import final_state
from benchmarks.workload import text_task
from tests.servers.stub import StubServer
from tests.servers.tool_calls import question

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the package mcp is not installed")

DOCUMENTS = 12
ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "models" / "tools" / "server.py"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Questions in whose answers two tools are called, one after the other."""
    text_task(tmp_path / "tasks", 1)
    rows = []
    for number in range(DOCUMENTS):
        calls = [[("add", {"first": number, "second": 1})], [("fail", {}), ("add", {"first": 1, "second": 1})]]
        rows.append({"question": f"Question {number}: {question(calls, f'a{number}')}", "answer": f"a{number}"})
    (tmp_path / "tasks" / "bench_text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "tasks"


def run(tasks: Path, url: str, out: Path, *words: str) -> Path:
    """Run the task; returns the script of its tool server, beside which its processes are noted."""
    script = Path(shutil.copy(SERVER, tasks.parent / f"{out.name}.py"))
    arguments = f"model=stub,base_url={url},max_retries=0,num_concurrent=4,mcp_server_path={script}"
    command = [sys.executable, "-m", "lmms_eval", "--model", "openai", "--model_args", arguments, "--log_samples"]
    command += ["--tasks", "bench_text", "--include_path", str(tasks), "--output_path", str(out), *words]
    environment = {**os.environ, "OPENAI_API_KEY": "stub", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return script


def servers(script: Path) -> list[int]:
    return [int(number) for number in Path(f"{script}.started").read_text().split()]


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.is_file() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def samples(out: Path) -> list[dict[str, object]]:
    (file,) = out.rglob("*_samples_bench_text.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_processes_have_tool_servers_of_their_own(tasks: Path, tmp_path: Path) -> None:
    with StubServer(delay=0.1) as stub:
        script = run(tasks, stub.url, tmp_path / "two", "--processes", "2")
        assert stub.stats()["total"] == 3 * DOCUMENTS
        run(tasks, stub.url, tmp_path / "one")
    assert len(servers(script)) == 2
    deadline = time.monotonic() + 30
    while any(map(is_alive, servers(script))):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    counts = [len(path.read_text().splitlines()) for path in (tmp_path / "two").rglob("responses-*.jsonl")]
    assert len(counts) == 2 and min(counts) > 0
    found, alone = samples(tmp_path / "two"), samples(tmp_path / "one")
    assert [one["filtered_resps"] for one in found] == [one["filtered_resps"] for one in alone]
    for sample in found:
        assert "Error executing tool fail" in json.dumps(sample)
    assert final_state(tmp_path / "two") == final_state(tmp_path / "one")
