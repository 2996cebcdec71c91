"""Figures: making and saving them, and the check that matplotlib is installed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import UsageError
from lmms_eval.storage.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSTALL = "install matplotlib (pip install 'lmms_eval[plots]')"
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#8172b3", "#c44e52", "#937860", "#64b5cd", "#ccb974")
"""Colours of series and panels, in this order."""
_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
"""Metadata without dates and versions, so that the same numbers give the same files."""


class PlotUnavailable(UsageError):
    """matplotlib is not installed."""


def check_available() -> None:
    """Raise ``PlotUnavailable`` if matplotlib is not installed, without importing it."""
    if find_spec("matplotlib") is None:
        raise PlotUnavailable(f"the plot cannot be drawn: {INSTALL}")


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure, with sizes in inches. Raises ``PlotUnavailable``."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotUnavailable(f"the plot cannot be drawn: {INSTALL}") from error
    return Figure(figsize=(width, height), layout="constrained")


def stacked(
    title: str, heights: Sequence[float], width: float, margin: float = 0.8, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Make a figure with one panel below the other, and return it with the axes of the panels.

    Sizes are in inches; ``margin`` is the height of everything except the panels. ``options`` are further arguments of
    ``Figure.subplots``. Raises ``PlotUnavailable`` if matplotlib is not installed.
    """
    figure = new_figure(width, margin + sum(heights))
    figure.suptitle(title, fontsize=12)
    if not heights:
        return figure, []
    rows = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights}, **options)
    return figure, list(rows[:, 0])


def hide_spines(axes: Axes, *sides: str) -> None:
    """Hide sides of the frame around a plot."""
    for side in sides:
        axes.spines[side].set_visible(False)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem.png`` (150 dots per inch) and ``stem.svg``, each one atomically.

    Raises ``OSError`` if a file cannot be written.
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in _METADATA]
    for path in paths:
        content = picture(figure, path.suffix)
        with replacing(path) as file:
            file.write(content)
    return paths


def picture(figure: Figure, ending: str) -> bytes:
    """Draw a picture in the format of a file's suffix. PNG has 150 dots per inch.

    Raises ``UsageError`` if the suffix is neither ``.png`` nor ``.svg``.
    """
    import matplotlib as mpl

    kind = ending.lower().removeprefix(".")
    if kind not in _METADATA:
        raise UsageError(f"a plot is written as .png or .svg, not as {ending!r}; give a name with one of these endings")
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "lmms_eval"}):
        figure.savefig(drawn, format=kind, dpi=150, metadata=_METADATA[kind])
    return drawn.getvalue()
