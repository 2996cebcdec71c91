"""The two ways to the tools: nothing but the protocol on standard output, nobody else's pages over HTTP."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import httpx
import pytest

if importlib.util.find_spec("mcp") is None:
    pytest.skip("the package mcp is not installed", allow_module_level=True)

from tests.cases import for_each
from tests.installed import needs_ipv6
from tests.server.tools.sessions import command, environment, http_server

PROTOCOL = "2025-06-18"
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


def test_standard_output_holds_the_protocol_alone(tmp_path: Path) -> None:
    plugin = tmp_path / "noisy" / "models"
    plugin.mkdir(parents=True)
    (tmp_path / "noisy" / "__init__.py").write_text("")
    (plugin / "__init__.py").write_text(
        "import os\nprint('NOISE')\nos.system('echo NOISE')\nos.write(1, b'NOISE')\n"
        "AVAILABLE_MODELS = {'noisy': 'Noisy'}\n"
    )
    call = {"name": "list_models", "arguments": {}}
    lines = [
        "no JSON", json.dumps(INITIALIZE), json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ]  # fmt: skip
    process = subprocess.Popen(
        command("--folder", str(tmp_path / "server"), "--plugins", "noisy", "--verbosity", "DEBUG"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(PYTHONPATH="") | {"PYTHONPATH": f"{Path(__file__).parents[3]}:{tmp_path}"},
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in lines))
    process.stdin.flush()
    said: list[str] = []
    while not said or json.loads(said[-1]).get("id") != 2:
        said.append(process.stdout.readline())
    rest, log = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "")
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in said)
    assert "noisy" in said[-1] and log.count("NOISE") == 3


def test_pages_of_other_sites_and_large_requests_are_refused(tmp_path: Path) -> None:
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    with http_server("--folder", str(tmp_path / "server")) as url, httpx.Client(trust_env=False) as client:
        place = httpx.URL(url).netloc.decode()

        def status(content: bytes = json.dumps(INITIALIZE).encode(), **more: str) -> int:
            return client.post(url, content=content, headers={**headers, **more}).status_code

        assert status() == 200
        assert status(host="evil.example") == 403
        assert status(host="127.0.0.1.evil.example:80") == 403
        assert status(origin="http://evil.example") == 403
        assert status(origin=f"http://{place}") == 403
        assert status(content=b"x" * ((1 << 20) + 1)) == 413
        assert client.get(url.removesuffix("/mcp") + "/jobs").status_code == 404


def test_an_ipv6_address_is_told_in_brackets_and_answers(tmp_path: Path) -> None:
    needs_ipv6()
    headers = {"accept": "application/json, text/event-stream"}
    with http_server("--host", "::1", "--folder", str(tmp_path / "server")) as url:
        assert url.startswith("http://[::1]:")
        assert httpx.post(url, json=INITIALIZE, headers=headers, trust_env=False).status_code == 200


@for_each(
    ("words", "message"),
    [
        (("--transport", "http", "--host", "0.0.0.0", "--port", "0"), "give a token"),
        (("--transport", "sse"), "--transport http"),
        (("--server", "localhost:8000"), "http://localhost:8000"),
    ],
)
def test_usage(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = subprocess.run(
        command(*words, "--folder", str(tmp_path)), capture_output=True, text=True, env=environment(), timeout=60
    )
    assert (done.returncode, done.stdout, message in done.stderr) == (2, "", True), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@for_each("content", ["raise ImportError('absent')", "class FastMCP: pass"], ids=["absent", "release 1"])
def test_the_package_is_asked_for(content: str, tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text(content)
    path = f"{Path(__file__).parents[3]}:{tmp_path}"
    done = subprocess.run(
        command(), capture_output=True, text=True, env=environment() | {"PYTHONPATH": path}, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'lmms_eval[mcp]'" in done.stderr and len(done.stderr.strip().splitlines()) == 1
