"""Saving figures, and the one place that knows whether matplotlib is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import UsageError
from lmms_eval.storage.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INSTALL = "install matplotlib (pip install 'lmms_eval[plots]')"
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#8172b3", "#c44e52", "#937860", "#64b5cd", "#ccb974")
"""Colours of series and panels, in this order."""
_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
"""Metadata without dates and versions: the same numbers give the same files."""


class PlotUnavailable(UsageError):
    """matplotlib is not installed."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, sizes in inches. Raises ``PlotUnavailable``."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotUnavailable(f"the plot cannot be drawn: {INSTALL}") from error
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem.png`` (150 dots an inch) and ``stem.svg``, each as a whole.

    Raises:
        OSError: a file cannot be written.
    """
    return [save_as(figure, stem.with_name(f"{stem.name}.{kind}")) for kind in _METADATA]


def save_as(figure: Figure, path: Path) -> Path:
    """Write a picture as a whole, in the format that the file's ending names.

    Raises:
        UsageError: neither ``.png`` nor ``.svg``.
        OSError: the file cannot be written.
    """
    import matplotlib as mpl

    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise UsageError(f"{path}: a plot is written as .png or .svg; give a name with one of these endings")
    with mpl.rc_context({"svg.hashsalt": "lmms_eval"}), replacing(path) as file:
        figure.savefig(file, format=kind, dpi=150, metadata=_METADATA[kind])
    return path
