"""A model that answers every question with a text, a picture and another text, and a run of it as a command.

    python -m tests.painting TASKS OUT [name=value ...]

The picture is a PNG whose colour tells the document, so that every document has its own; documents ten apart share
one. ``delay`` is the time for one answer, ``trace`` a file that gets a line for each, ``padding`` makes each picture so
many bytes larger; the rest are options of the run.
"""

from __future__ import annotations

import struct
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import GeneratedImage, Request, Response

DIFFERENT = 10


def png(red: int, side: int = 8) -> bytes:
    """A picture of one colour."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = (b"\0" + bytes((red, 0, 0)) * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def painted(request: Request, padding: int = 0) -> Response:
    """The right answer, then a picture, then white space."""
    right = request.context.partition("ANSWER=")[2]
    parts: list[str | GeneratedImage] = [right, generated_image(png(request.doc_id % DIFFERENT) + bytes(padding)), " "]
    return Response.interleaved(request.id, parts, finish_reason="stop")


class Painter(Model):
    """See the module."""

    def __init__(self, delay: float = 0.0, trace: str = "", padding: int = 0) -> None:
        self.delay, self.trace, self.padding = delay, trace, padding
        self.asked: list[int] = []

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            request = requests[0]
            self.asked.append(request.doc_id)
            if self.trace:
                with open(self.trace, "a", encoding="utf-8") as file:
                    file.write(f"{request.doc_id}\n")
            time.sleep(self.delay)
            yield painted(request, self.padding)

    def identity(self) -> dict[str, Any]:
        return {"painter": 1}


def main() -> int:
    from lmms_eval.config import build_config
    from lmms_eval.errors import LmmsEvalError
    from lmms_eval.evaluator import run

    tasks, out, *given = sys.argv[1:]
    options = dict(option.split("=", 1) for option in given)
    painter = Painter(float(options.pop("delay", 0)), options.pop("trace", ""), int(options.pop("padding", 0)))
    values = {
        "model": "painter", "tasks": "bench_text", "include_path": tasks, "output_path": out, "log_samples": True,
        "verbosity": "WARNING", **options,
    }  # fmt: skip
    try:
        return run(build_config(values), painter).exit_code
    except LmmsEvalError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
