"""Values over two axes as coloured cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.plots.figure import stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_CELL_INCHES, _PANEL_INCHES = 0.35, 1.0
_WIDE = 1.6
"""Ratio of a cell's width to its height."""
_DARK_BELOW = 0.55
"""Share of the scale below which a cell is dark and its number white."""


class CellGrid(Struct, frozen=True):
    """Rows of cells under one heading. ``None`` is a cell without a value."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]


class GridScale(Struct, frozen=True):
    """Names of both axes and of the value, with the values of the darkest and the brightest cell."""

    rows: str
    columns: str
    value: str
    limits: tuple[float, float] = (0.0, 100.0)


def grid_panels(title: str, grids: Sequence[CellGrid], scale: GridScale) -> Figure:
    """Draw one grid below the other, all on one scale of colours. Raises ``PlotUnavailable``."""
    shown = [grid for grid in grids if grid.rows and grid.columns]
    heights = [len(grid.rows) * _CELL_INCHES + _PANEL_INCHES for grid in shown]
    most = max((len(grid.columns) for grid in shown), default=0)
    figure, panels = stacked(title, heights, max(6.0, 2.5 + most * _CELL_INCHES * _WIDE))
    images = [_draw(axes, grid, scale) for grid, axes in zip(shown, panels, strict=True)]
    if images:
        figure.colorbar(images[0], ax=panels, label=scale.value, shrink=0.8)
    return figure


def _draw(axes: Axes, grid: CellGrid, scale: GridScale) -> AxesImage:
    low, high = scale.limits
    values = [[float("nan") if cell is None else cell for cell in row] for row in grid.cells]
    image = axes.imshow(values, vmin=low, vmax=high, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(grid.columns)), grid.columns, fontsize=7, rotation=45, ha="right")
    axes.set_yticks(range(len(grid.rows)), grid.rows, fontsize=7)
    axes.set_xlabel(scale.columns, fontsize=8)
    axes.set_ylabel(scale.rows, fontsize=8)
    axes.set_title(grid.title, loc="left", fontsize=9)
    for row, cells in enumerate(grid.cells):
        for column, cell in enumerate(cells):
            if cell is not None:
                colour = "white" if cell - low < _DARK_BELOW * (high - low) else "black"
                axes.text(column, row, f"{cell:.0f}", ha="center", va="center", fontsize=7, color=colour)
    return image
