"""Lines with bands of uncertainty, in panels on one horizontal scale."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.plots.figure import COLOURS, INK, QUIET, dress, plain, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL_INCHES = 3.0
_MARKERS = "osD^vPX*"
_TITLE, _LABEL = 90, 40


class Point(Struct, frozen=True):
    """A value at ``x`` with its interval."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Curve(Struct, frozen=True):
    """Points joined by a line, in the given order. Points with intervals get a band."""

    label: str
    points: tuple[Point, ...]
    is_dashed: bool = False


class Axis(Struct, frozen=True):
    """Range and ticks of an axis. By default, they fit the points."""

    label: str
    limits: tuple[float, float] | None = None
    is_log: bool = False
    ticks: tuple[float, ...] = ()


def curve_panels(
    title: str,
    panels: Mapping[str, Sequence[Curve]],
    x: Axis,
    y: Axis,
    regions: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> Figure:
    """Draw one panel of curves below the other, by heading, all on one horizontal scale. Raises ``PlotUnavailable``.

    A panel without points is left out. ``regions`` are ranges of the horizontal axis by name, which are marked by their
    borders.
    """
    shown = {heading: curves for heading, curves in panels.items() if any(curve.points for curve in curves)}
    figure, rows = stacked(title, [_PANEL_INCHES] * len(shown), 9.0, 0.8 if shown else 0.8 + _PANEL_INCHES, sharex=True)
    for (heading, curves), axes in zip(shown.items(), rows, strict=True):
        for number, curve in enumerate(curves):
            if curve.points:
                _draw(axes, curve, number)
        axes.set_title(plain(heading, _TITLE), loc="left", fontsize=9, color=INK)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, labelcolor=INK)
        _scale(axes, x, y)
        _mark(axes, regions)
    if rows:
        rows[-1].set_xlabel(x.label)
    return figure


def _draw(axes: Axes, curve: Curve, number: int) -> None:
    """Draw a curve and its band. A single point gets a bar, because its band has no width."""
    colour = COLOURS[number % len(COLOURS)]
    axes.plot(
        [point.x for point in curve.points],
        [point.y for point in curve.points],
        color=colour,
        linestyle="--" if curve.is_dashed else "-",
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=4,
        linewidth=1.4,
        label=plain(curve.label, _LABEL),
        clip_on=False,
    )
    for is_known, run in itertools.groupby(curve.points, lambda point: None not in (point.low, point.high)):
        points = list(run) if is_known else []
        places = [point.x for point in points]
        low, high = [point.low or 0.0 for point in points], [point.high or 0.0 for point in points]
        if len(points) == 1:
            axes.plot(places * 2, [low[0], high[0]], color=colour, linewidth=1.0, marker="_", markersize=6)
        elif points:
            axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)


def _scale(axes: Axes, x: Axis, y: Axis) -> None:
    if x.is_log:
        axes.set_xscale("log")
    if y.is_log:
        axes.set_yscale("log")
    if x.ticks:
        axes.set_xticks(x.ticks, [f"{tick:g}" for tick in x.ticks])
        axes.minorticks_off()
    if y.ticks:
        axes.set_yticks(y.ticks, [f"{tick:g}" for tick in y.ticks])
    if x.limits is not None:
        axes.set_xlim(*x.limits)
    if y.limits is not None:
        axes.set_ylim(*y.limits)
    axes.set_ylabel(y.label)
    dress(axes, "both", "top", "right")


def _mark(axes: Axes, regions: Mapping[str, tuple[float, float]]) -> None:
    """Draw borders between regions, and each name in the middle of the visible part of its range."""
    left, right = axes.get_xlim()
    is_log = axes.get_xscale() == "log"
    for label, (begin, end) in regions.items():
        low, high = max(begin, left), min(end, right)
        if low >= high:
            continue
        if begin > left:
            axes.axvline(begin, color=QUIET, linewidth=0.8, linestyle=":")
        middle = (low * high) ** 0.5 if is_log else (low + high) / 2
        axes.text(
            middle, 0.98, label, transform=axes.get_xaxis_transform(),
            ha="center", va="top", fontsize=8, color=QUIET,
        )  # fmt: skip
