from __future__ import annotations

import io

import numpy as np
from PIL import Image

from lmms_eval.tasks.megabench.judge_questions import SIDE, draw
from tests.cases import for_each


def grey(text: str) -> np.ndarray:
    image = Image.open(io.BytesIO(draw(text)))
    assert (image.format, image.size, image.mode) == ("JPEG", (SIDE, SIDE), "RGB")
    return np.asarray(image.convert("L"))


def test_every_character_has_its_place_in_the_grid() -> None:
    pixels = grey("#   \n    \n    \n   #")
    half = SIDE // 2
    ink = [(pixels[rows, columns] < 128).sum() for rows in (slice(0, half), slice(half, SIDE))
           for columns in (slice(0, half), slice(half, SIDE))]  # fmt: skip
    assert ink[0] > 50 < ink[3]
    assert ink[1] == ink[2] == 0


def test_other_pictures_are_other_bytes_and_the_same_are_the_same() -> None:
    assert draw("/\\_/\\") == draw("/\\_/\\")
    assert draw("/\\_/\\") != draw("\\/_\\/")


@for_each("text", ["", "\n", " ", "日本", "a\r\nb", "\x00\x1b[31m", "x" * 100_000, "\n" * 100_000])
def test_any_text_is_drawn(text: str) -> None:
    assert grey(text).shape == (SIDE, SIDE)
