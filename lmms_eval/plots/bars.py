"""Horizontal bars with intervals, in panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.plots.figure import COLOURS, hide_spines, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_INCHES, _PANEL_INCHES = 0.24, 0.45


class Bar(Struct, frozen=True):
    """One value with its interval. A pale bar marks a value of few items."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    is_pale: bool = False


def bar_panels(
    title: str, panels: Mapping[str, Sequence[Bar]], axis: str, limits: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """Draw one panel of bars below the other, by heading, all on one scale. Raises ``PlotUnavailable``.

    The axis shows ``limits``, and more if a value or the end of an interval lies outside of them.
    """
    shown = {heading: bars for heading, bars in panels.items() if bars}
    heights = [len(bars) * _ROW_INCHES + _PANEL_INCHES for bars in shown.values()]
    figure, rows = stacked(title, heights, 9.0, sharex=True)
    drawn = [
        end for bars in shown.values() for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None
    ]
    for number, ((heading, bars), axes) in enumerate(zip(shown.items(), rows, strict=True)):
        axes.set_title(heading, loc="left", fontsize=9)
        _draw(axes, bars, COLOURS[number % len(COLOURS)])
        axes.set_xlim(min(limits[0], *drawn), max(limits[1], *drawn))
    if rows:
        rows[-1].set_xlabel(axis)
    return figure


def _draw(axes: Axes, bars: Sequence[Bar], colour: str) -> None:
    places = range(len(bars))
    drawn = axes.barh(places, [bar.value for bar in bars], color=colour, height=0.7)
    for place, bar, patch in zip(places, bars, drawn, strict=True):
        if bar.is_pale:
            patch.set_alpha(0.45)
        end = bar.value
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color="#333333", linewidth=1.0, marker="|", markersize=4)
            end = max(end, bar.high)
        axes.text(end, place, f"  {bar.value:.3f}", va="center", fontsize=7)
    axes.set_yticks(places, [bar.label for bar in bars], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    hide_spines(axes, "top", "right")
