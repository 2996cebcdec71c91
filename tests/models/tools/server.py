"""An MCP server with well-behaved and other tools, of the package mcp; run as a script."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import time
import wave
from pathlib import Path

try:
    from mcp.server import MCPServer as Server
except ImportError:  # the name before release 2
    from mcp.server.fastmcp import FastMCP as Server
from mcp.types import AudioContent, ImageContent, TextContent
from PIL import Image

server = Server("shed")
with open(f"{__file__}.started", "a") as started:
    started.write(f"{os.getpid()}\n")


@server.tool()
async def add(first: int, second: int) -> str:
    """Add two numbers."""
    return str(first + second)


@server.tool()
async def draw(side: int = 8) -> list[TextContent | ImageContent]:
    """Draw a square."""
    file = io.BytesIO()
    Image.new("RGB", (side, side), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return [TextContent(type="text", text="a square"), ImageContent(type="image", data=data, mimeType="image/png")]


@server.tool()
async def hum() -> AudioContent:
    """Make a sound."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(1600))
    return AudioContent(type="audio", data=base64.b64encode(file.getvalue()).decode(), mimeType="audio/wav")


@server.tool()
async def fail() -> str:
    """Fail."""
    raise ValueError("no luck")


@server.tool()
async def sleep() -> str:
    """Answer far too late."""
    await asyncio.sleep(60)
    return "late"


@server.tool()
async def block() -> str:
    """Answer nothing, whatever is asked meanwhile."""
    time.sleep(60)
    return "late"


@server.tool()
async def much() -> str:
    """Say 10 MB."""
    return "x" * 10_000_000


@server.tool()
async def crash() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
async def crash_once() -> str:
    """End the first server."""
    if len(Path(f"{__file__}.started").read_text().split()) < 2:
        os._exit(3)
    return "still here"


if __name__ == "__main__":
    server.run()
