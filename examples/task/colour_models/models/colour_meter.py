"""A small model that names the colour in the middle of a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.media import load_rgb

COLOURS = {"red": (220, 30, 30), "green": (20, 150, 60), "blue": (40, 60, 200), "yellow": (240, 220, 40)}


class ColourMeter(Model):
    """``--model colour_meter``.

    Args:
        size: side of the examined square in the middle, in pixels.
    """

    is_simple = True  # the name of the class in the table of a plugin package

    def __init__(self, size: int = 8) -> None:
        self.size = size

    def prepare(self, request: Request) -> Request:
        pictures, _, _ = request.build_messages().extract_media()
        middles = [self._middle(picture) for picture in pictures]
        return request.with_payload(middles, 3 * len(middles))

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(16):
            for request in requests:
                yield Response(request.id, text=", ".join(map(nearest, request.payload)), finish_reason="stop")

    def identity(self) -> Mapping[str, Any]:
        return {"size": self.size}

    def _middle(self, picture: Any) -> tuple[int, ...]:
        """Return the mean colour of the square in the middle."""
        image = load_rgb(picture)
        left, top = (image.width - self.size) // 2, (image.height - self.size) // 2
        square = image.crop((left, top, left + self.size, top + self.size))
        return tuple(square.resize((1, 1)).getpixel((0, 0)))


def nearest(colour: tuple[int, ...]) -> str:
    """Return the name of the nearest colour."""
    return min(COLOURS, key=lambda name: sum((a - b) ** 2 for a, b in zip(COLOURS[name], colour, strict=True)))
