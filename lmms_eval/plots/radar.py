"""Radar charts, with one polygon for each series, and ladders, with one bar for each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.plots.figure import COLOURS, FEW, INK, LINE, QUIET, dress
from lmms_eval.utils.numbers import two_decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NICE = (1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0, 300.0, 400.0, 500.0)
_RINGS = 4
_CENTRED = 0.2
"""A spoke counts as upright if its sine, or as level if its cosine, is smaller than this."""


class Rung(Struct, frozen=True):
    """One step of a ladder."""

    label: str
    value: float
    note: str = ""
    """Text after the value."""
    is_marked: bool = False


def upper_limit(values: Sequence[float]) -> float:
    """Return a round number that is not below any value, or 100 if no value is above 0."""
    most = max((value for value in values if math.isfinite(value)), default=0.0)
    if most <= 0:
        return 100.0
    return next((limit for limit in _NICE if most <= limit), math.ceil(most / 1000) * 1000.0)


def draw_radar(axes: Any, spokes: Sequence[str], polygons: Mapping[str, Sequence[float]]) -> None:
    """Draw polygons into polar axes. There are at least three spokes, the first one upwards, then clockwise.

    A polygon has one value for each spoke. Values below 0 are drawn in the middle.
    """
    angles = [2 * math.pi * number / len(spokes) for number in range(len(spokes))]
    limit = upper_limit([value for values in polygons.values() for value in values])
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, limit)
    for number, (label, values) in enumerate(polygons.items()):
        colour = COLOURS[number % len(COLOURS)]
        radii = [min(max(value, 0.0), limit) for value in values]
        corners, around = [*angles, angles[0]], [*radii, radii[0]]
        axes.plot(corners, around, color=colour, linewidth=1.8, marker="o", markersize=4, label=label)
        axes.fill(corners, around, color=colour, alpha=0.12)
    rings = [limit * ring / _RINGS for ring in range(1, _RINGS + 1)]
    axes.set_rgrids(rings, [f"{ring:g}" for ring in rings], angle=180 / len(spokes), fontsize=7, color=QUIET)
    axes.set_xticks(angles, [])
    for angle, spoke in zip(angles, spokes, strict=True):
        aside = math.sin(angle)  # decides the side of the circle for the text
        side = "center" if abs(aside) < _CENTRED else "left" if aside > 0 else "right"
        above = "bottom" if math.cos(angle) > _CENTRED else "top" if math.cos(angle) < -_CENTRED else "center"
        axes.text(angle, limit * 1.05, spoke, ha=side, va=above, fontsize=9, color=INK)
    axes.grid(color=LINE, linewidth=0.8)
    axes.spines["polar"].set(color=QUIET, linewidth=0.8)


def draw_ladder(axes: Axes, rungs: Sequence[Rung], axis: str) -> None:
    """Draw rungs as bars, the first one lowest, and marked ones dark."""
    limit = upper_limit([rung.value for rung in rungs])
    for place, rung in enumerate(rungs):
        axes.barh(place, limit, color="none", edgecolor=LINE, height=0.62, linewidth=0.8)
        axes.barh(place, min(max(rung.value, 0.0), limit), color=COLOURS[0] if rung.is_marked else FEW, height=0.62)
        weight = "bold" if rung.is_marked else "normal"
        axes.text(limit * 1.02, place, two_decimals(rung.value), va="center", fontsize=9, fontweight=weight)
        if rung.note:
            axes.text(limit * 0.02, place - 0.46, rung.note, va="center", fontsize=7, color=QUIET)
    axes.set_yticks(range(len(rungs)), [rung.label for rung in rungs])
    for text, rung in zip(axes.get_yticklabels(), rungs, strict=True):
        text.set_fontweight("bold" if rung.is_marked else "normal")
    axes.set_xlim(0, limit * 1.22)
    axes.set_ylim(-0.75, len(rungs) - 0.4)
    axes.set_xticks([limit * ring / _RINGS for ring in range(_RINGS + 1)])
    axes.set_xlabel(axis)
    dress(axes, None, "top", "right", "left")
    axes.spines["bottom"].set_bounds(0, limit)
    axes.tick_params(axis="y", length=0)
