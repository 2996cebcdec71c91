"""Values over two axes as coloured cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.plots.figure import stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELL_INCHES, _PANEL_INCHES = 0.35, 1.0
_WIDE = 1.6
"""Ratio of a cell's width to its height."""
_BRIGHTEST = 100.0
_DARK_BELOW = 0.55
"""Share of the scale below which a cell is dark and its number white."""


class CellGrid(Struct, frozen=True):
    """Rows of cells under one heading. ``None`` is a cell without a value."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]


def grid_panels(title: str, grids: Sequence[CellGrid], rows: str, columns: str, value: str) -> Figure:
    """Draw one grid below the other, all on one scale of colours from 0 to 100. Raises ``PlotUnavailable``.

    ``rows`` and ``columns`` are the names of the axes, and ``value`` is the name of a cell's value.
    """
    shown = [grid for grid in grids if grid.rows and grid.columns]
    heights = [len(grid.rows) * _CELL_INCHES + _PANEL_INCHES for grid in shown]
    most = max((len(grid.columns) for grid in shown), default=0)
    figure, panels = stacked(title, heights, max(6.0, 2.5 + most * _CELL_INCHES * _WIDE))
    images = []
    for grid, axes in zip(shown, panels, strict=True):
        values = [[float("nan") if cell is None else cell for cell in row] for row in grid.cells]
        image = axes.imshow(values, vmin=0.0, vmax=_BRIGHTEST, cmap="viridis", aspect="auto")
        axes.set_xticks(range(len(grid.columns)), grid.columns, fontsize=7, rotation=45, ha="right")
        axes.set_yticks(range(len(grid.rows)), grid.rows, fontsize=7)
        axes.set_title(grid.title, loc="left", fontsize=9)
        for row, cells in enumerate(grid.cells):
            for column, cell in enumerate(cells):
                if cell is not None:
                    colour = "white" if cell < _DARK_BELOW * _BRIGHTEST else "black"
                    axes.text(column, row, f"{cell:.0f}", ha="center", va="center", fontsize=7, color=colour)
        images.append(image)
        axes.set_xlabel(columns, fontsize=8)
        axes.set_ylabel(rows, fontsize=8)
    if images:
        figure.colorbar(images[0], ax=panels, label=value, shrink=0.8)
    return figure
