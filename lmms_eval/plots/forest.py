"""Forest plots: differences with their intervals, one in each line, in panels on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from lmms_eval.plots.figure import COLOURS, INK, QUIET, RIGHT, WRONG, dress, plain, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 120
"""Most rows of a panel. The last line counts the others."""
_ROW_INCHES, _PANEL_INCHES, _LABEL = 0.27, 1.0, 44
_MARGIN = "#e8f0f9"

Look = Literal["up", "down", "same", "open"]
_MARKERS: dict[Look, tuple[str, str, str]] = {
    "up": ("^", RIGHT, RIGHT),
    "down": ("v", WRONG, WRONG),
    "same": ("s", COLOURS[0], COLOURS[0]),
    "open": ("o", QUIET, "white"),
}
"""Marker, colour of line and edge, and filling. The shapes differ, so that the plot can be read without colours."""


class ForestRow(Struct, frozen=True):
    """One difference."""

    label: str
    value: float
    low: float | None
    high: float | None
    look: Look
    words: str
    """Verdict, as text next to the row."""
    n: int
    remark: str = ""
    """Text after the label, which is never cut."""


class ForestPanel(Struct, frozen=True):
    """Rows under one heading, in one unit."""

    title: str
    axis: str
    """Title of the horizontal axis, with its unit."""
    rows: tuple[ForestRow, ...]
    margin: float | None = None
    """Half the width of the band of differences that do not matter."""


def forest_panels(title: str, panels: Sequence[ForestPanel]) -> Figure:
    """Draw one panel below the other. Panels with the same axis share its limits. Raises ``PlotUnavailable``."""
    shown = [panel for panel in panels if panel.rows]
    heights = [min(len(panel.rows), MOST_ROWS + 1) * _ROW_INCHES + _PANEL_INCHES for panel in shown]
    figure, rows = stacked(title, heights, 10.5, 0.7)
    for panel, axes in zip(shown, rows, strict=True):
        _draw(axes, panel, _limits([one for one in shown if one.axis == panel.axis]))
    return figure


def _limits(panels: Sequence[ForestPanel]) -> tuple[float, float]:
    """Return limits around everything that is drawn, and 0."""
    ends = [0.0]
    for panel in panels:
        ends += [panel.margin or 0.0, -(panel.margin or 0.0)]
        for row in panel.rows[:MOST_ROWS]:
            ends += [end for end in (row.value, row.low, row.high) if end is not None]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _draw(axes: Axes, panel: ForestPanel, limits: tuple[float, float]) -> None:
    rows = panel.rows[:MOST_ROWS]
    if panel.margin is not None:
        axes.axvspan(-panel.margin, panel.margin, color=_MARGIN, linewidth=0, zorder=0)
    axes.axvline(0.0, color=INK, linewidth=1.0, zorder=1)
    for place, row in enumerate(rows):
        marker, edge, face = _MARKERS[row.look]
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [place, place], color=edge, linewidth=1.4, solid_capstyle="butt", zorder=2)
        axes.plot(
            row.value, place, marker=marker, markersize=6, markeredgecolor=edge, markerfacecolor=face, zorder=3,
            linestyle="none", clip_on=False,
        )  # fmt: skip
    _label(axes, panel, len(rows))
    axes.set_xlim(*limits)
    dress(axes, "x", "top", "right", "left")
    axes.tick_params(axis="y", length=0)


def _label(axes: Axes, panel: ForestPanel, count: int) -> None:
    """Label rows, columns and axis. The last line counts the rows that are not drawn."""
    folded = len(panel.rows) - count
    rows = panel.rows[:count]
    labels = [f"{plain(row.label, _LABEL)}{row.remark}" for row in rows]
    if folded:
        labels.append(f"… {folded} more rows are not drawn")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.7)
    axes.set_title(plain(panel.title, 90), loc="left", fontsize=9, color=INK)
    axes.set_xlabel(plain(panel.axis, 90))
    right = axes.twinx()  # the layout makes room for ticks, but not for texts
    right.set_yticks(range(count), [f"{plain(row.words, 60)}, n = {row.n:,}" for row in rows], fontsize=8)
    right.set_ylim(axes.get_ylim())
    dress(right, None, "top", "right", "left", "bottom")
    right.tick_params(axis="y", length=0)
    for text, row in zip(right.get_yticklabels(), rows, strict=True):
        text.set_color(_MARKERS[row.look][1])
