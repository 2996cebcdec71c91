"""Combined sheets: the pictures of a sample side by side on a few large pictures, each with its number."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

CELL = 800
"""Width and height of a picture on a sheet, in pixels; its aspect ratio is not kept."""
FONT_SCALE = 4
_PAD, _PAD_TOP = 12, 22


class SheetLayout(Struct, frozen=True):
    """The layout of one sheet."""

    file: str
    """File name: sample and number of the sheet, from 0."""
    first: int
    """Index of its first picture in the sample, from 0."""
    count: int

    @property
    def columns(self) -> int:
        return math.ceil(math.sqrt(self.count))

    @property
    def rows(self) -> int:
        return math.ceil(self.count / self.columns)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.columns * CELL, self.rows * CELL

    @property
    def captions(self) -> list[str]:
        """Captions in the order of the cells, row by row; pictures count over the whole sample, from 1."""
        return [f"Image {self.first + number}" for number in range(1, self.count + 1)]


def plan_sheets(sample_id: int | str, n_images: int, max_sheets: int) -> list[SheetLayout]:
    """Plan the sheets of a sample: consecutive pictures, evenly distributed over at most ``max_sheets`` sheets.

    Raises ``DataError`` if there are no pictures.
    """
    if n_images < 1 or max_sheets < 1:
        raise DataError(f"MileBench, sample {sample_id}: {n_images} pictures cannot be put on {max_sheets} sheets")
    each = (n_images - 1) // max_sheets + 1
    starts = range(0, n_images, each)
    return [
        SheetLayout(f"{sample_id}-{number}.jpg", start, min(each, n_images - start))
        for number, start in enumerate(starts)
    ]


def draw_sheet(sheet: SheetLayout, images: Sequence[Path], font_size: int = 8) -> Image.Image:
    """Draw one sheet from the pictures of its sample, which are opened one after the other.

    Raises ``MediaError`` if a picture is missing or cannot be read.
    """
    from PIL import Image, ImageDraw

    from lmms_eval.media import load_rgb

    canvas = Image.new("RGB", sheet.size)
    for place, caption in enumerate(sheet.captions):
        row, column = divmod(place, sheet.columns)
        cell = load_rgb(images[sheet.first + place], rotate=False).resize((CELL, CELL), Image.Resampling.LANCZOS)
        # white on a black box, centred at the bottom
        drawing = ImageDraw.Draw(cell)
        font = _font(font_size * FONT_SCALE)
        left, top, right, bottom = drawing.textbbox((0, 0), caption, font=font)
        width, height = right - left, bottom - top
        x, y = (CELL - width) / 2, CELL - height - _PAD
        drawing.rectangle((x - _PAD, y - _PAD_TOP, x + width + _PAD, CELL), fill="black")
        drawing.text((x - left, y - top), caption, fill="white", font=font)
        canvas.paste(cell, (column * CELL, row * CELL))
    return canvas


@functools.lru_cache(maxsize=8)
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)
