"""A proxy on loopback, as a process of its own, that closes a connection on which nothing came back for some time.

Gateways do that: an answer that takes longer than their limit is lost, unless it arrives in pieces.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


async def carry(port: int, silence: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry one connection to ``port``."""
    inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)

    async def forth() -> None:
        while data := await reader.read(1 << 16):
            inner_writer.write(data)

    sending = asyncio.create_task(forth())
    with contextlib.suppress(TimeoutError, OSError):
        while data := await asyncio.wait_for(inner_reader.read(1 << 16), silence):
            writer.write(data)
    sending.cancel()
    for each in (writer, inner_writer):
        each.close()


async def serve(port: int, silence: float) -> None:
    """Serve until standard input ends."""
    server = await asyncio.start_server(lambda r, w: carry(port, silence, r, w), "127.0.0.1", 0)
    os.write(1, f"{server.sockets[0].getsockname()[1]}\n".encode())
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def watch_input() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch_input, daemon=True).start()
    await ended.wait()


class CuttingProxy:
    """The proxy as a process: ``with CuttingProxy(server.port, 0.3) as proxy: ... proxy.port``."""

    def __init__(self, target: int, silence: float) -> None:
        self._command = [sys.executable, "-m", "tests.servers.cutting", str(target), str(silence)]
        self.port = 0

    def __enter__(self) -> CuttingProxy:
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], 30)[0]:
            raise RuntimeError("the proxy did not start within 30 s")
        self.port = int(output.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
