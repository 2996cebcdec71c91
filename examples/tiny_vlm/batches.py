"""Encode cases as tensors. A row holds a case's pictures once, and its turns side by side without seeing each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import parts
import torch
from cases import Case, Picture
from PIL import Image

FACTOR = parts.PATCH * parts.MERGE


def target_size(width: int, height: int) -> tuple[int, int]:
    """Return the width and height of a picture after the Qwen2-VL image processor resized it."""
    wide, high = (round(side / FACTOR) * FACTOR for side in (width, height))
    if wide * high > parts.MAX_PIXELS:
        shrink = math.sqrt(width * height / parts.MAX_PIXELS)
        return tuple(max(FACTOR, math.floor(side / shrink / FACTOR) * FACTOR) for side in (width, height))  # type: ignore[return-value]
    if wide * high < parts.MIN_PIXELS:
        grow = math.sqrt(parts.MIN_PIXELS / (width * height))
        return tuple(math.ceil(side * grow / FACTOR) * FACTOR for side in (width, height))  # type: ignore[return-value]
    return wide, high


def patches_of(image: Image.Image) -> tuple[np.ndarray, tuple[int, int]]:
    """Return uint8 patches, ``[rows * columns, 3 * 8 * 8]`` in the processor's order, and the grid (rows, columns)."""
    size = target_size(*image.size)
    pixels = np.asarray(image.resize(size, Image.Resampling.BICUBIC))
    rows, columns = size[1] // parts.PATCH, size[0] // parts.PATCH
    blocks = pixels.reshape(rows // 2, 2, parts.PATCH, columns // 2, 2, parts.PATCH, 3)
    return blocks.transpose(0, 3, 1, 4, 6, 2, 5).reshape(rows * columns, -1), (rows, columns)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """An encoded case. ``turn`` is 0 for the pictures and counts the turns from 1; ``learn`` marks reply tokens."""

    ids: np.ndarray
    places: np.ndarray
    """Positions, ``[3, tokens]``: time, height, width."""
    turn: np.ndarray
    learn: np.ndarray
    weight: np.ndarray
    """Weights: one over the square root of the reply's length at its tokens, else zero."""
    patches: np.ndarray
    grids: list[tuple[int, int]]
    labels: np.ndarray
    """Labels of the pictures' tokens, ``[tokens, labels]``."""


class CaseEncoder:
    """Encodes cases as the processor and the chat template would, one turn at a time."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        token = tokenizer.convert_tokens_to_ids
        self._user, self._assistant, self._end = token(parts.USER), token(parts.ASSISTANT), token(parts.END)
        self._start, self._pad, self._stop = (
            token(parts.VISION_START), token(parts.IMAGE_PAD), token(parts.VISION_END),
        )  # fmt: skip

    def _text(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def encode(self, case: Case) -> Row:
        ids, places, position = [self._user], [np.zeros((3, 1), dtype=np.int64)], 1
        found = [patches_of(picture.image) for picture in case.pictures]
        for _, (rows, columns) in found:
            high, wide = rows // parts.MERGE, columns // parts.MERGE
            ids += [self._start, *[self._pad] * (high * wide), self._stop]
            grid = np.indices((1, high, wide)).reshape(3, -1) + position + 1
            after = position + 1 + max(high, wide)
            places += [np.full((3, 1), position), grid, np.full((3, 1), after)]
            position = after + 1
        turn, learn, weight = [0] * len(ids), [False] * len(ids), [0.0] * len(ids)
        for number, one in enumerate(case.turns, start=1):
            asked = [*self._text(one.prompt), self._end, self._assistant]
            reply = [*self._text(one.reply), self._end]
            ids += asked + reply
            places.append(np.tile(np.arange(len(asked) + len(reply)) + position, (3, 1)))
            turn += [number] * (len(asked) + len(reply))
            learn += [False] * len(asked) + [True] * len(reply)
            weight += [0.0] * len(asked) + [len(reply) ** -0.5] * len(reply)
        return Row(
            np.array(ids), np.concatenate(places, axis=1), np.array(turn), np.array(learn),
            np.array(weight), np.concatenate([patches for patches, _ in found]), [grid for _, grid in found],
            np.concatenate([picture.labels for picture in case.pictures]),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows padded on the right. ``inputs`` go to the model; ``chosen`` are positions whose next token is learned."""

    inputs: dict[str, Any]
    chosen: torch.Tensor
    targets: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor
    """Weights of the targets: a long reply weighs more than a short one, but less than in proportion."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Pictures without questions, as input of the vision encoder."""

    pixels: torch.Tensor
    grids: torch.Tensor
    labels: torch.Tensor


def look_at(pictures: Sequence[Picture]) -> Look:
    found = [patches_of(picture.image) for picture in pictures]
    return Look(
        pixels_of([patches for patches, _ in found]), torch.tensor([(1, *grid) for _, grid in found]),
        torch.from_numpy(np.concatenate([picture.labels for picture in pictures])),
    )  # fmt: skip


def pixels_of(patches: Sequence[np.ndarray]) -> torch.Tensor:
    """Scale bytes to the range from -1 to 1."""
    return torch.from_numpy(np.concatenate(patches).astype(np.float32) / 127.5 - 1)


def collate(rows: Sequence[Row], pad: int) -> Batch:
    width = max(len(row.ids) for row in rows)
    ids = np.full((len(rows), width), pad)
    places = np.zeros((3, len(rows), width), dtype=np.int64)
    turn, learn = np.full((len(rows), width), -1), np.zeros((len(rows), width), dtype=bool)
    weight = np.zeros((len(rows), width), dtype=np.float32)
    for number, row in enumerate(rows):
        length = len(row.ids)
        ids[number, :length], places[:, number, :length] = row.ids, row.places
        turn[number, :length], learn[number, :length], weight[number, :length] = row.turn, row.learn, row.weight
    seen = (turn[:, None, :] == turn[:, :, None]) | (turn[:, None, :] == 0)
    seen &= np.tri(width, dtype=bool)[None]
    seen |= np.eye(width, dtype=bool)[None]
    grids = [(1, *grid) for row in rows for grid in row.grids]
    chosen = learn[:, 1:].reshape(-1)
    weights = weight[:, 1:].reshape(-1)[chosen]
    tokens = torch.from_numpy(ids)
    return Batch(
        {
            "input_ids": tokens, "position_ids": torch.from_numpy(places),
            "attention_mask": torch.from_numpy(seen[:, None]), "pixel_values": pixels_of([row.patches for row in rows]),
            "image_grid_thw": torch.tensor(grids),
        },
        torch.from_numpy(chosen), tokens[:, 1:].reshape(-1)[torch.from_numpy(chosen)],
        torch.from_numpy(np.concatenate([row.labels for row in rows])), torch.from_numpy(weights / weights.sum()),
    )  # fmt: skip
