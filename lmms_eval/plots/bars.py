"""Horizontal bars with intervals, in panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.plots.figure import COLOURS, FEW, INK, dress, plain, shown_limits, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_INCHES, _PANEL_INCHES, _PAD_ROWS = 0.25, 0.5, 0.3
_LABEL, _TITLE = 52, 90
_ROOM = 0.09
"""Share of the width that is kept for the numbers behind bars."""


class Bar(Struct, frozen=True):
    """One value with its interval. A pale bar marks a value of few items."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    is_pale: bool = False


def bar_panels(
    title: str,
    panels: Mapping[str, Sequence[Bar]],
    axis: str,
    limits: tuple[float, float] = (0.0, 1.0),
    pale: str = "few items",
) -> Figure:
    """Draw one panel of bars below the other, by heading, all on one scale. Raises ``PlotUnavailable``.

    The axis shows the part of ``limits`` that holds the bars, and more if a value or the end of an interval lies
    outside. If some bars are pale, a line below them says that these are of ``pale``.
    """
    shown = {heading: bars for heading, bars in panels.items() if bars}
    heights = [len(bars) * _ROW_INCHES + _PANEL_INCHES for bars in shown.values()]
    every = [bar for bars in shown.values() for bar in bars]
    remark = f"Pale: {pale}" if any(bar.is_pale for bar in every) else ""
    figure, rows = stacked(title, heights, 9.0, remark=remark, sharex=True)
    drawn = [end for bar in every for end in (bar.value, bar.low, bar.high) if end is not None]
    low, high = shown_limits(limits, drawn)
    decimals = 3 if high <= 1 else 1
    for (heading, bars), axes in zip(shown.items(), rows, strict=True):
        axes.set_title(plain(heading, _TITLE), loc="left", fontsize=9, color=INK)
        _draw(axes, bars, decimals)
        axes.set_xlim(low, high + _ROOM * (high - low))
    if rows:
        rows[-1].set_xlabel(axis)
    return figure


def _draw(axes: Axes, bars: Sequence[Bar], decimals: int) -> None:
    places = range(len(bars))
    colours = [FEW if bar.is_pale else COLOURS[0] for bar in bars]
    axes.barh(places, [bar.value for bar in bars], color=colours, height=0.66)
    for place, bar in zip(places, bars, strict=True):
        end = bar.value
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color=INK, linewidth=1.0, marker="|", markersize=4)
            end = max(end, bar.high)
        axes.text(end, place, f"  {bar.value:.{decimals}f}", va="center", fontsize=7, color=INK)
    axes.set_yticks(places, [plain(bar.label, _LABEL) for bar in bars])
    axes.set_ylim(len(bars) - 0.5 + _PAD_ROWS, -0.5 - _PAD_ROWS)
    dress(axes, "x", "top", "right")
    axes.tick_params(axis="y", length=0)
