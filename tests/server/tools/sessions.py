"""Sessions of the package's own client with ``lmms-eval mcp`` in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "tests" / "server"
PATIENCE_S = 90.0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "lmms_eval", "mcp", *words]


def environment(**variables: str) -> dict[str, str]:
    paths = [str(ROOT), str(PLUGIN), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(path for path in paths if path)
    return {**os.environ, "HF_HUB_OFFLINE": "1", **variables, "PYTHONPATH": path}


class Session:
    """A session, whose answers come as their structured content."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.told: list[str | None] = []
        """Messages of progress."""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        found = await self._called(tool, arguments)
        assert not found.is_error, found.content[0].text
        content: dict[str, Any] = found.structured_content
        assert found.content[0].text
        return content

    async def refusal(self, tool: str, **arguments: Any) -> str:
        found = await self._called(tool, arguments)
        assert found.is_error, found.structured_content
        text: str = found.content[0].text
        return text

    async def _called(self, tool: str, arguments: dict[str, Any]) -> Any:
        async def note(_progress: float, _total: float | None, message: str | None) -> None:
            self.told.append(message)

        return await self.client.call_tool(tool, arguments, progress_callback=note)

    async def wait(self, run_id: str, *states: str) -> dict[str, Any]:
        """Ask for a run until it is in one of these states."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := await self.call("get_run_status", run_id=run_id))["status"] not in states:
            assert time.monotonic() < deadline, found
            assert found["status"] in ("queued", "running"), found
            await asyncio.sleep(0.1)
        return found


@contextlib.asynccontextmanager
async def over_stdio(*words: str, mode: str = "auto", **variables: str) -> AsyncIterator[Session]:
    """A server of its own, which the client ends as clients do."""
    _, *arguments = command(*words)
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment(**variables))
    async with Client(server, mode=mode) as client:
        yield Session(client)


@contextlib.contextmanager
def http_server(*words: str, **variables: str) -> Iterator[str]:
    """A server on a free port; gives the address of its tools."""
    process = subprocess.Popen(
        command("--transport", "http", "--port", "0", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    assert process.stderr is not None and process.stdout is not None
    try:
        line = ""
        while not (found := re.search(r"listening on (http://\S+)", line)):
            line = process.stderr.readline()
            assert line, "the server has ended"
        yield found[1]
    finally:
        process.terminate()
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest


@contextlib.asynccontextmanager
async def over_http(url: str, mode: str = "auto") -> AsyncIterator[Session]:
    async with Client(url, mode=mode) as client:
        yield Session(client)
