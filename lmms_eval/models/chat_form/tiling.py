"""InternVL's dynamic tiling: a picture as a grid of square tiles, and the tensor of them (MMIE specification §5)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

TILE = 448
"""Side of a tile, in pixels."""
MAX_TILES = 12
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Values of the channels red, green and blue (ImageNet)."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Division of a picture into tiles."""

    columns: int
    rows: int

    @property
    def tiles(self) -> int:
        return self.columns * self.rows

    @property
    def tiles_with_thumbnail(self) -> int:
        """The whole picture comes as one more tile, unless the grid is a single tile."""
        return self.tiles + (self.tiles > 1)


def choose_grid(width: int, height: int, max_tiles: int = MAX_TILES, tile: int = TILE) -> Grid:
    """The grid whose proportions are nearest to the picture's.

    Of grids that are equally near, a larger one is taken only if the picture covers more than half of its area.
    """
    aspect, area = width / height, width * height
    best, nearest = Grid(1, 1), float("inf")
    for grid in _candidates(max_tiles):
        distance = abs(aspect - grid.columns / grid.rows)
        if distance < nearest or (distance == nearest and area > 0.5 * tile * tile * grid.tiles):
            best, nearest = grid, distance
    return best


def cut(image: Image.Image, max_tiles: int = MAX_TILES, tile: int = TILE) -> list[Image.Image]:
    """The tiles row by row, then the thumbnail. The picture is stretched to the grid, whatever its proportions."""
    grid = choose_grid(*image.size, max_tiles, tile)
    stretched = image.resize((grid.columns * tile, grid.rows * tile))
    tiles = [
        stretched.crop((column * tile, row * tile, (column + 1) * tile, (row + 1) * tile))
        for row in range(grid.rows)
        for column in range(grid.columns)
    ]
    return tiles if grid.tiles == 1 else [*tiles, image.resize((tile, tile))]


def tensor_of(tiles: Sequence[Image.Image]) -> Any:
    """Tiles as one float32 tensor of shape (tiles, 3, side, side), normalised by ``MEAN`` and ``STD``."""
    import numpy as np
    import torch

    stacked = np.stack([np.asarray(picture, dtype=np.uint8) for picture in tiles])
    values = torch.from_numpy(stacked).permute(0, 3, 1, 2).to(torch.float32) / 255
    mean, std = (torch.tensor(of).view(1, 3, 1, 1) for of in (MEAN, STD))
    return (values - mean) / std


@functools.lru_cache
def _candidates(max_tiles: int) -> tuple[Grid, ...]:
    """All grids of at most so many tiles, smaller ones first; of equal size the ones with fewer columns."""
    grids = [
        Grid(columns, rows)
        for columns in range(1, max_tiles + 1)
        for rows in range(1, max_tiles + 1)
        if columns * rows <= max_tiles
    ]
    return tuple(sorted(grids, key=lambda grid: grid.tiles))
