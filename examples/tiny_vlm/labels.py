"""Labels of each token of a picture, for heads that only the training uses.

A token covers 16 x 16 pixels of the picture as the model sees it. The labels of shapes are their kind, colour and box,
their place in the row and the number of equal ones; those of signs are the letters and the word. A class of
``UNKNOWN`` is not learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from make_megabench_demo import COLOURS, Shape
from PIL import Image, ImageDraw

KINDS = ("circle", "square", "triangle")
HUES = tuple(COLOURS)
SIDES = ("left", "right", "above", "below")
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SIGN_WORDS = (
    "open", "until", "noon", "wet", "paint", "mind", "the", "step", "closed", "exit", "stop", "push", "pull", "slow",
    "danger", "no", "entry", "keep", "left", "right", "dogs", "milk", "fresh", "bread", "quiet", "please", "school",
    "ahead", "one", "way", "taxi", "only", "lift", "stairs", "cash", "gate", "water", "hot", "cold", "north", "south",
    "seven", "days", "a", "week", "not", "in", "use",
)  # fmt: skip
"""All words that the model can read. Those of the demo's single cards occur in longer signs only."""
UNKNOWN = -100
LETTERS_A_TOKEN = 4
STEPS = 20
"""Number of steps for the edges of boxes: twentieths."""
CLASSES = {
    "kind": len(KINDS) + 1, "hue": len(HUES) + 1, "left": STEPS + 1, "top": STEPS + 1, "right": STEPS + 1,
    "bottom": STEPS + 1, "rank": 5, "like_kind": 5, "like_hue": 5, "kind_before": 5, "hue_before": 5,
    "side": len(SIDES), **{f"letter{number}": len(LETTERS) + 1 for number in range(LETTERS_A_TOKEN)},
    "word": len(SIGN_WORDS) + 1, "word_rank": 5,
}  # fmt: skip
"""Number of classes by label; class 0 of kind, hue, letter and word is nothing."""
_COLUMN = {name: number for number, name in enumerate(CLASSES)}
_COVERED = 0.08
"""Share of a token that a shape must cover to be seen there."""


def none(tokens: int) -> np.ndarray:
    """Return the labels of a picture without any known label: ``[tokens, labels]``."""
    return np.full((tokens, len(CLASSES)), UNKNOWN, dtype=np.int64)


def of_shapes(shapes: Sequence[Shape], size: tuple[int, int], grid: tuple[int, int], side: str = "") -> np.ndarray:
    """Label a canvas of ``size`` pixels shown as ``grid`` (rows, columns) tokens; ``side`` applies to all tokens."""
    owner = _owners(shapes, size, grid)
    found = none(owner.size)
    found[:, _COLUMN["kind"]] = found[:, _COLUMN["hue"]] = 0
    order = sorted(shapes, key=lambda shape: shape.box[0])
    for number, shape in enumerate(shapes):
        told = {
            "kind": KINDS.index(shape.kind) + 1, "hue": HUES.index(shape.colour) + 1,
            **{edge: round(at * STEPS) for edge, at in zip(("left", "top", "right", "bottom"), shape.box, strict=True)},
            **_company(shape, order),
        }  # fmt: skip
        seen = side or (side_of(shape, shapes[1 - number]) if len(shapes) == 2 else "")
        if seen:
            told["side"] = SIDES.index(seen)
        for name, value in told.items():
            found[owner == number, _COLUMN[name]] = min(max(value, 0), CLASSES[name] - 1)
    return found


def side_of(one: Shape, other: Shape) -> str:
    """Return the side of one shape as seen from another; empty if that is not clear."""
    across = (one.box[0] + one.box[2] - other.box[0] - other.box[2]) / 2
    down = (one.box[1] + one.box[3] - other.box[1] - other.box[3]) / 2
    if abs(abs(across) - abs(down)) < 0.15:
        return ""
    return ("left" if across < 0 else "right") if abs(across) > abs(down) else ("above" if down < 0 else "below")


def of_text(text: str, left: int, font: Any, width: int, grid: tuple[int, int]) -> np.ndarray:
    """Label a sign of ``width`` pixels with a text that begins at ``left``."""
    rows, columns = grid
    found = none(columns)
    for label in range(LETTERS_A_TOKEN):
        found[:, _COLUMN[f"letter{label}"]] = 0
    found[:, _COLUMN["word"]] = 0
    share = width / columns
    ends = [left + font.getlength(text[:number]) for number in range(len(text) + 1)]
    for column in range(columns):
        for label in range(LETTERS_A_TOKEN):
            at = (column + (label + 0.5) / LETTERS_A_TOKEN) * share
            place = int(np.searchsorted(ends, at, side="right")) - 1
            if 0 <= place < len(text) and text[place] != " ":
                found[column, _COLUMN[f"letter{label}"]] = LETTERS.index(text[place]) + 1
    start, most = 0, np.zeros(columns)
    for rank, word in enumerate(text.split(" ")):
        begin, end = ends[start], ends[start + len(word)]
        at = np.arange(columns) * share
        overlap = np.clip(np.minimum(at + share, end) - np.maximum(at, begin), 0, None)
        here = overlap > np.maximum(most, 1)
        found[here, _COLUMN["word"]] = SIGN_WORDS.index(word.lower()) + 1
        found[here, _COLUMN["word_rank"]] = rank
        most, start = np.maximum(most, overlap), start + len(word) + 1
    return np.tile(found, (rows, 1))


def _company(shape: Shape, order: Sequence[Shape]) -> dict[str, int]:
    place = next(number for number, one in enumerate(order) if one is shape)
    kinds, hues = [one.kind for one in order], [one.colour for one in order]
    return {
        "rank": place, "like_kind": kinds.count(shape.kind) - 1, "like_hue": hues.count(shape.colour) - 1,
        "kind_before": kinds[:place].count(shape.kind), "hue_before": hues[:place].count(shape.colour),
    }  # fmt: skip


def _owners(shapes: Sequence[Shape], size: tuple[int, int], grid: tuple[int, int]) -> np.ndarray:
    """Return for each token the shape that covers most of it, or -1."""
    plane = Image.new("L", size, 0)
    pen = ImageDraw.Draw(plane)
    for number, shape in enumerate(shapes, start=1):
        box = [round(at * size[axis % 2]) for axis, at in enumerate(shape.box)]
        (pen.ellipse if shape.kind == "circle" else pen.rectangle)(box, fill=number)
    rows, columns = grid
    cells = np.asarray(plane).reshape(rows, size[1] // rows, columns, size[0] // columns)
    shares = np.stack([(cells == number).mean(axis=(1, 3)).ravel() for number in range(1, len(shapes) + 1)])
    return np.where(shares.max(axis=0) >= _COVERED, shares.argmax(axis=0), -1)
