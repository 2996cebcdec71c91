"""The stub server itself: counters and faults that other tests rely on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.servers.stub import ROOT, StubServer


def post(server: StubServer, text: str, **fields: Any) -> tuple[int, Any]:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **fields}).encode()
    request = urllib.request.Request(f"{server.url}/chat/completions", body, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("Retry-After")


def test_answers_and_counts() -> None:
    with StubServer(delay=0.1) as server:
        started = time.perf_counter()
        status, reply = post(server, "What? ANSWER= B ")
        assert time.perf_counter() - started >= 0.1
        assert status == 200 and reply["choices"][0]["message"]["content"] == "B"
        first, second = post(server, "other")[1], post(server, "other")[1]
        assert first == second and len(first["choices"][0]["message"]["content"]) == 8
        stats = server.stats()
    assert stats["total"] == stats["completed"] == 3 and stats["in_flight"] == 0 and stats["max_in_flight"] == 1
    assert stats["by_text"] == {"What? ANSWER= B ": 1, "other": 2}
    assert sorted(stats["by_body"].values()) == [1, 2]


def test_a_share_of_the_questions_fails_and_always_the_same() -> None:
    with StubServer(fault="500", share=0.3) as server:
        first = [post(server, f"q{number}")[0] for number in range(60)]
        assert first == [post(server, f"q{number}")[0] for number in range(60)]
    assert set(first) == {200, 500} and 6 <= first.count(500) <= 32


def test_a_passing_fault_and_its_header() -> None:
    with StubServer(fault="429", times=1, retry_after="7") as server:
        assert post(server, "q") == (429, "7")
        assert post(server, "q")[0] == 200


def test_the_process_ends_with_its_owner() -> None:
    code = (
        "import os, signal\nfrom tests.servers.stub import StubServer\n"
        "print(StubServer().__enter__().pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while Path(f"/proc/{killed.stdout.strip()}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_server_that_is_left_answers_nobody() -> None:
    with StubServer() as server, StubServer() as other:
        assert server.pid != other.pid and server.port != other.port
        assert post(server, "q")[0] == 200
    with pytest.raises(OSError):
        post(server, "q")
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)
