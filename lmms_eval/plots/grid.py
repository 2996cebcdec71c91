"""Values over two axes as coloured cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.plots.figure import COLOURS, INK, dress, plain, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL_INCHES, _PANEL_INCHES = 0.4, 1.0
_WIDE = 1.5
"""Ratio of a cell's width to its height."""
_HIGHEST = 100.0
_SCALE = ("#f7f8f9", COLOURS[0], "#16395f")
"""Colours of the scale, from 0 to 100."""
_DARK_FROM = 0.45
"""Share of the scale. Above it, a cell is dark and its number white."""
_LONGEST_TICK, _LABEL, _TITLE = 4, 30, 70


class CellGrid(Struct, frozen=True):
    """Rows of cells under one heading. ``None`` is a cell without a value."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    counts: tuple[tuple[int, ...], ...] = ()
    """Items of each cell, if they are known."""


def grid_panels(title: str, grids: Sequence[CellGrid], rows: str, columns: str, value: str) -> Figure:
    """Draw one grid below the other, all on one scale of colours from 0 to 100. Raises ``PlotUnavailable``.

    ``rows`` and ``columns`` are the names of the axes, and ``value`` is the name of a cell's value.
    """
    from matplotlib.colors import LinearSegmentedColormap

    shown = [grid for grid in grids if grid.rows and grid.columns]
    heights = [len(grid.rows) * _CELL_INCHES + _PANEL_INCHES for grid in shown]
    most = max((len(grid.columns) for grid in shown), default=0)
    is_empty = any(cell is None for grid in shown for row in grid.cells for cell in row)
    has_counts = any(grid.counts for grid in shown)
    remark = "; ".join(["n: samples of a cell"] * has_counts + ["white without a number: no sample"] * is_empty)
    figure, panels = stacked(title, heights, max(6.5, 2.5 + most * _CELL_INCHES * _WIDE), remark=remark)
    colours = LinearSegmentedColormap.from_list("report", _SCALE)
    images = []
    for grid, axes in zip(shown, panels, strict=True):
        values = [[float("nan") if cell is None else cell for cell in row] for row in grid.cells]
        images.append(axes.imshow(values, vmin=0.0, vmax=_HIGHEST, cmap=colours, aspect="auto"))
        is_long = max(map(len, grid.columns)) > _LONGEST_TICK
        turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if is_long else {}
        axes.set_xticks(range(len(grid.columns)), [plain(name, _LABEL) for name in grid.columns], **turned)
        axes.set_yticks(range(len(grid.rows)), [plain(name, _LABEL) for name in grid.rows])
        axes.set_title(plain(grid.title, _TITLE), loc="left", fontsize=9, color=INK)
        axes.set_xlabel(columns)
        axes.set_ylabel(rows)
        dress(axes, None)
        _write_numbers(axes, grid)
    if images:
        bar = figure.colorbar(images[0], ax=panels, shrink=0.8)
        bar.set_label(value)
        bar.outline.set_visible(False)
        dress(bar.ax, None)
    return figure


def _write_numbers(axes: Axes, grid: CellGrid) -> None:
    for row, cells in enumerate(grid.cells):
        for column, cell in enumerate(cells):
            if cell is None:
                continue
            count = f"\nn = {grid.counts[row][column]}" if grid.counts else ""
            colour = "white" if cell >= _DARK_FROM * _HIGHEST else INK
            axes.text(column, row, f"{cell:.0f}{count}", ha="center", va="center", fontsize=7, color=colour)
