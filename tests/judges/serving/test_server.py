"""The life of a judge's server: start, health, ends of all kinds. The program is a stand-in for vLLM."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from lmms_eval.errors import ModelError
from lmms_eval.judges.serving.arguments import Serving, read_serving
from lmms_eval.judges.serving.server import LOG, JudgeServer
from tests.cases import for_each
from tests.installed import needs_ipv6
from tests.judges.serving.stand_in import install


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = install(tmp_path)
    monkeypatch.syspath_prepend(str(path))
    monkeypatch.setenv("PYTHONPATH", str(path))
    return path


def serving(model: str = "judge", **more: Any) -> Serving:
    return read_serving({"name": "vllm", "model": model, **more})


def pids(log: Path) -> list[int]:
    found = re.search(r"^pids (\d+) (\d+)$", log.read_text() if log.exists() else "", re.MULTILINE)
    return [int(number) for number in found.groups()] if found else []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ended(numbers: list[int], within_s: float = 20.0) -> bool:
    end = time.monotonic() + within_s
    while any(map(is_alive, numbers)) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(numbers) and not any(map(is_alive, numbers))


def test_it_is_waited_for_and_ended_with_all_its_processes(tmp_path: Path) -> None:
    given = serving(gpus="2;3", max_model_len=4096, enforce_eager=True, mem_fraction_static=None)
    with JudgeServer(given, tmp_path) as server:
        running = pids(tmp_path / LOG)
        assert len(running) == 2 and all(map(is_alive, running))
        assert server.url == f"http://127.0.0.1:{server.port}/v1"
        log = server.log.read_text()
        for pid in running:
            assert server.key not in Path(f"/proc/{pid}/cmdline").read_text()
    assert ended(running, 0.1)
    assert "'--tensor-parallel-size', '2'" in log and "'--max-model-len', '4096', '--enforce-eager'" in log
    assert "gpus 2,3" in log and "key [REDACTED]" in log and server.key not in log
    assert server.log.stat().st_mode & 0o077 == 0 and len(server.key) == 48


def test_a_judge_on_ipv6_is_asked_at_an_address_with_brackets(tmp_path: Path) -> None:
    needs_ipv6()
    with JudgeServer(serving(host="::1"), tmp_path) as server:
        assert server.url == f"http://[::1]:{server.port}/v1"
        assert httpx.get(server.url, trust_env=False).status_code == 200


def test_a_crash_at_the_start_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"(?s)vllm with crashes ended at its start \(code 1\).*CUDA out of memory"):
        JudgeServer(serving("crashes"), tmp_path).__enter__()
    assert ended(pids(tmp_path / LOG), 5)


def test_one_that_hangs_is_given_up_and_killed(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"takes no requests after 3 s \(timeout="):
        JudgeServer(serving("hangs", timeout=3), tmp_path).__enter__()
    assert ended(pids(tmp_path / LOG), 5)


@for_each("number", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_the_run_ends_the_server(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import sys, time, pathlib\n"
        "from lmms_eval.judges.serving.arguments import read_serving\n"
        "from lmms_eval.judges.serving.server import JudgeServer\n"
        "with JudgeServer(read_serving({'name': 'vllm', 'model': 'judge'}), pathlib.Path(sys.argv[1])):\n"
        "    print('ready', flush=True)\n    time.sleep(600)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    running = pids(tmp_path / LOG)
    os.kill(run.pid, number)
    run.wait()
    run.stdout.close()
    assert ended(running)


@for_each(
    ("given", "wanted"),
    [
        ({"name": "vlm", "model": "m"}, "did you mean vllm"),
        ({"model": "m"}, r"one of vllm, sglang, transformers"),
        ({"name": "vllm"}, "model=NAME is missing"),
        ({"name": "vllm", "model": "m", "port": "x"}, "port=x is not valid"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ModelError, match=wanted):
        read_serving(given)


def test_commands_of_the_programs() -> None:
    family = {"name": "sglang", "model": "m", "tp": 8, "port": 1, "host": "0.0.0.0", "mem_fraction_static": 0.8}
    assert read_serving(family).command(7) == [
        "--model-path", "m", "--host", "0.0.0.0", "--port", "7", "--tp-size", "8", "--mem-fraction-static", "0.8",
    ]  # fmt: skip
    assert read_serving({"name": "transformers", "model": "m", "dtype": "auto"}).command(7) == [
        "serve", "m", "--host", "127.0.0.1", "--port", "7", "--dtype", "auto",
    ]  # fmt: skip
    assert "secret" not in repr(serving(api_key="secret"))
