"""An MCP server with tools for pictures: crop, zoom, rotate, measure and, if the program tesseract is installed, OCR.

It is run as a script (``tools=images``) and opens no files: each call carries its picture. The results are bounded in
pixels and bytes, whatever the model asks for. A wrong argument is an error with the reason, which the model gets.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import functools
import io
import math
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

MOST_PIXELS, MOST_BYTES = 1_500_000, 2 << 20
"""Bounds of a picture that a tool returns."""
MOST_INPUT_PIXELS = 100_000_000
LEAST_SIDE = 28
"""Least width and height of a picture that a tool returns: some models refuse smaller ones."""
MOST_FACTOR = 16.0
OCR_S = 20.0
TESSERACT = "tesseract"
_LANGUAGE = re.compile(r"[A-Za-z]{3}(?:_[A-Za-z]{1,8}){0,2}(?:\+[A-Za-z]{3}(?:_[A-Za-z]{1,8}){0,2}){0,3}")
Unit = Literal["pixels", "thousandths"]
Tool = Callable[..., list[Any]]
_BOX = "box is [left, top, right, bottom], in pixels or, with unit thousandths, in thousandths of width and height."


def crop(image: str, box: list[float], unit: Unit = "pixels") -> list[Any]:
    """Cut a box out of a picture."""
    picture = _opened(image)
    part, notes = _part(picture, box, unit)
    return _result(part, "cut out", notes)


def zoom(image: str, box: list[float], factor: float = 2.0, unit: Unit = "pixels") -> list[Any]:
    """Cut a box out of a picture and enlarge it by a factor of up to 16."""
    from PIL import Image

    if not (math.isfinite(factor) and 1 <= factor <= MOST_FACTOR):
        raise ValueError(f"factor must be a number from 1 to {MOST_FACTOR:g}")
    picture = _opened(image)
    part, notes = _part(picture, box, unit)
    most = math.sqrt(MOST_PIXELS / (part.width * part.height))
    if factor > most:
        factor = max(1.0, most)
        notes.append(f"the factor is {factor:.3g}, the largest that the limit of {MOST_PIXELS} pixels allows")
    size = (max(1, int(part.width * factor)), max(1, int(part.height * factor)))
    return _result(part.resize(size, Image.Resampling.LANCZOS), f"enlarged by {factor:.3g}", notes)


def rotate(image: str, degrees: float) -> list[Any]:
    """Turn a picture counterclockwise. The result shows all of it, with white corners."""
    from PIL import Image

    if not math.isfinite(degrees):
        raise ValueError("degrees must be a finite number")
    picture, angle = _bounded(_opened(image), []), math.fmod(degrees, 360.0)
    turned = picture.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    return _result(turned, f"turned by {angle:g} degrees", [])


def measure(image: str, points: list[list[float]] | None = None, unit: Unit = "pixels") -> list[Any]:
    """Return the size of a picture, and distance and angle between two points [x, y] of it."""
    picture = _opened(image)
    lines = [f"the picture has {picture.width} x {picture.height} pixels"]
    if points:
        if len(points) != 2:
            raise ValueError("points must be two points [x, y]")
        (left, top), (right, bottom) = (_scaled(picture, point, 2, unit) for point in points)
        across, down = right - left, bottom - top
        angle = math.degrees(math.atan2(-down, across))
        lines.append(
            f"from ({left:g}, {top:g}) to ({right:g}, {bottom:g}): {math.hypot(across, down):.1f} pixels, "
            f"{across:g} to the right and {down:g} down, at {angle:.1f} degrees counterclockwise from the right"
        )
    return _content("; ".join(lines))


def ocr(image: str, box: list[float] | None = None, language: str = "eng", unit: Unit = "pixels") -> list[Any]:
    """Read the text in a picture, or in a box of it, with tesseract. language is one of its codes, such as eng."""
    if not _LANGUAGE.fullmatch(language):
        raise ValueError("language must be a code of tesseract, such as eng, or several joined by +")
    picture = _opened(image)
    part = _part(picture, box, unit)[0] if box else picture
    file = io.BytesIO()
    part.save(file, "PNG")
    try:
        done = subprocess.run(
            [TESSERACT, "stdin", "stdout", "-l", language],
            input=file.getvalue(),
            capture_output=True,
            timeout=OCR_S,
            check=False,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"tesseract took more than {OCR_S:g} s: give a smaller box") from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(f"tesseract failed: {reason[-1][:200] if reason else done.returncode}")
    return _content(done.stdout.decode("utf-8", "replace").strip() or "no text was found")


def _opened(image: str) -> Any:
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = MOST_INPUT_PIXELS // 2  # Pillow raises above twice this number
    try:
        picture = Image.open(io.BytesIO(base64.b64decode(image, validate=True)), formats=("PNG", "JPEG", "WEBP", "GIF"))
        return picture.convert("RGB")
    except (binascii.Error, UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"the picture cannot be read: {type(error).__name__}") from None


def _scaled(picture: Any, numbers: Sequence[float], count: int, unit: Unit) -> list[float]:
    """Return coordinates in pixels. Raises ``ValueError`` unless there are ``count`` finite ones."""
    if len(numbers) != count or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"give {count} finite numbers, not {str(list(numbers)[:8])[:200]}")
    if unit == "pixels":
        return [float(number) for number in numbers]
    sides = (picture.width / 1000, picture.height / 1000)
    return [number * sides[place % 2] for place, number in enumerate(numbers)]


def _part(picture: Any, box: Sequence[float], unit: Unit) -> tuple[Any, list[str]]:
    """Cut out a box, limited to the picture, and return notes about what differs from the request."""
    left, top, right, bottom = _scaled(picture, box, 4, unit)
    if not (left < right and top < bottom):
        raise ValueError("the box is empty: left must be less than right, and top less than bottom")
    if right <= 0 or bottom <= 0 or left >= picture.width or top >= picture.height:
        raise ValueError(f"the box is outside the picture, which has {picture.width} x {picture.height} pixels")
    across, is_wider = _range(left, right, picture.width)
    down, is_higher = _range(top, bottom, picture.height)
    notes = []
    if left < 0 or top < 0 or right > picture.width or bottom > picture.height:
        notes.append("the box is cut at the edges of the picture")
    if is_wider or is_higher:
        notes.append(f"the box is widened to {LEAST_SIDE} pixels")
    notes.append(f"from ({across[0]}, {down[0]}) to ({across[1]}, {down[1]})")
    return picture.crop((across[0], down[0], across[1], down[1])), notes


def _range(begin: float, end: float, side: int) -> tuple[tuple[int, int], bool]:
    """Return whole pixels within a side, at least ``LEAST_SIDE`` if the picture has as many, and if it was widened."""
    low, high = max(0, math.floor(max(begin, 0.0))), min(side, math.ceil(min(end, float(side))))
    lacking = min(LEAST_SIDE, side) - (high - low)
    if lacking <= 0:
        return (low, high), False
    low = max(0, min(low - lacking // 2, side - min(LEAST_SIDE, side)))
    return (low, low + min(LEAST_SIDE, side)), True


def _bounded(picture: Any, notes: list[str]) -> Any:
    """Return a picture within the limit of pixels, and with the least sides."""
    from PIL import Image

    if picture.width * picture.height > MOST_PIXELS:
        scale = math.sqrt(MOST_PIXELS / (picture.width * picture.height))
        size = (max(1, int(picture.width * scale)), max(1, int(picture.height * scale)))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
        notes.append(f"shrunk to {picture.width} x {picture.height} pixels")
    if picture.width < LEAST_SIDE or picture.height < LEAST_SIDE:
        padded = Image.new("RGB", (max(picture.width, LEAST_SIDE), max(picture.height, LEAST_SIDE)), "white")
        padded.paste(picture, (0, 0))
        return padded
    return picture


def _result(picture: Any, what: str, notes: list[str]) -> list[Any]:
    shown = _bounded(picture, notes)
    file = io.BytesIO()
    shown.save(file, "PNG")
    mime = "image/png"
    if file.tell() > MOST_BYTES:
        file, mime = io.BytesIO(), "image/jpeg"
        shown.save(file, "JPEG", quality=85)
    text = "; ".join([what, *notes, f"{shown.width} x {shown.height} pixels"])
    return _content(text, base64.b64encode(file.getvalue()).decode("ascii"), mime)


def _content(text: str, data: str = "", mime: str = "") -> list[Any]:
    from mcp.types import ImageContent, TextContent

    said: list[Any] = [TextContent(type="text", text=text)]
    return [*said, ImageContent(type="image", data=data, mimeType=mime)] if data else said


def tools() -> list[tuple[Tool, str]]:
    """Return the tools that this machine has, with their descriptions."""
    found: list[tuple[Tool, str]] = [
        (crop, f"Cut a box out of a picture and look at it. {_BOX}"),
        (zoom, f"Cut a box out of a picture and enlarge it by a factor from 1 to {MOST_FACTOR:g}. {_BOX}"),
        (rotate, "Turn a picture counterclockwise by degrees and look at it."),
        (
            measure,
            "Get the size of a picture in pixels and, if points are two points [x, y], their distance and angle. With "
            "unit thousandths, points are in thousandths of width and height.",
        ),
    ]
    if shutil.which(TESSERACT):
        done = subprocess.run([TESSERACT, "--version"], capture_output=True, timeout=OCR_S, check=False)
        version = (done.stdout or done.stderr).decode("utf-8", "replace").split("\n", 1)[0][:60]
        found.append((ocr, f"Read the text in a picture, or in a box of it, by {version}. {_BOX}"))
    return found


def _served(tool: Tool) -> Callable[..., Awaitable[list[Any]]]:
    """Return a tool that runs in a thread, and whose errors reach the client with their text."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    async def served(*arguments: Any, **named: Any) -> list[Any]:
        try:
            return await asyncio.to_thread(tool, *arguments, **named)
        except ValueError as error:
            raise ToolError(str(error)) from None

    return served


def main() -> None:
    """Serve the tools over standard input and output."""
    from mcp.server import MCPServer

    server = MCPServer("images")
    for tool, description in tools():
        server.add_tool(_served(tool), description=description, structured_output=False)
    server.run()


if __name__ == "__main__":
    main()
