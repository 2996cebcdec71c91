"""Figures: making and saving them, and the check that matplotlib is installed."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from loguru import logger

from lmms_eval.errors import UsageError
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.terminal import display_width, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSTALL = "install matplotlib (pip install 'lmms_eval[plots]')"
COLOURS = ("#3f78b5", "#c2622d", "#3d8a5f", "#8558a8", "#8a6d1f", "#b3312c")
"""Colours of series in this order: those of reports (``--bar``, ``--second`` to ``--fifth``, ``--wrong``)."""
INK, QUIET, LINE, FEW, RIGHT, WRONG = "#1a1d21", "#5b636e", "#e2e5e9", "#a9c3de", "#1f7a47", "#b3312c"
"""Colours of reports for text, remarks, lines, numbers that rest on little, better and worse."""
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata without dates and versions, so that the same numbers give the same files."""
_FONT = "DejaVu Sans"
"""The font that comes with matplotlib; others have what it lacks."""
_OTHER_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "Microsoft YaHei", "SimHei", "PingFang SC", "Hiragino Sans GB",
    "Hiragino Sans", "Yu Gothic", "Malgun Gothic", "Apple SD Gothic Neo", "Arial Unicode MS", "Noto Sans Arabic",
    "Noto Sans Devanagari", "Noto Sans Hebrew", "Noto Sans Thai",
)  # fmt: skip
_LETTERS, _TITLE_ROOM = 7.8, 0.1
"""Letters of a title for each inch, and inches above and below it and each panel."""


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
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise PlotUnavailable(f"the plot cannot be drawn: {INSTALL}") from error
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=_TITLE_ROOM))


def entitle(figure: Figure, title: str, remark: str = "", below: str = "") -> None:
    """Write a title above a figure, and a remark below it. Texts are shown as they are, without mathematics.

    ``below`` is a second line of the title.
    """
    shown = shortened(title, int(figure.get_figwidth() * _LETTERS))
    text = f"{shown}\n{below}" if below else shown
    figure.suptitle(text, fontsize=12, fontweight="bold", color=INK, parse_math=False)
    if remark:
        figure.supxlabel(remark, fontsize=8, color=QUIET, parse_math=False)


def stacked(
    title: str, heights: Sequence[float], width: float, margin: float = 0.8, *, remark: str = "", **options: Any
) -> tuple[Figure, list[Axes]]:
    """Make a figure with one panel below the other, and return it with the axes of the panels.

    Sizes are in inches; ``margin`` is the height of everything except the panels. ``remark`` is a line below them.
    ``options`` are further arguments of ``Figure.subplots``. Raises ``PlotUnavailable`` if matplotlib is not installed.
    """
    figure = new_figure(width, margin + (0.25 if remark else 0.0) + sum(one + _TITLE_ROOM for one in heights))
    entitle(figure, title, remark)
    if not heights:
        return figure, []
    rows = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights}, **options)
    return figure, list(rows[:, 0])


def dress(axes: Axes, grid: Literal["x", "y", "both"] | None, *hidden: str) -> None:
    """Give a plot the look of reports: thin lines, quiet numbers.

    Args:
        axes: the plot.
        grid: the axes whose ticks have a line.
        hidden: sides of the frame that are not drawn.
    """
    for side, spine in axes.spines.items():
        spine.set_visible(side not in hidden)
        spine.set_color(QUIET)
        spine.set_linewidth(0.8)
    axes.tick_params(colors=QUIET, labelcolor=INK, labelsize=8, width=0.8)
    axes.xaxis.label.set(color=QUIET, fontsize=8)
    axes.yaxis.label.set(color=QUIET, fontsize=8)
    if grid is not None:
        axes.grid(axis=grid, color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)


_ROUND = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def shown_limits(limits: tuple[float, float], drawn: Sequence[float]) -> tuple[float, float]:
    """Return the part of a range from 0 that has something drawn in it, up to a round number.

    Values outside of the range extend it.
    """
    low, high = limits
    most = max(drawn, default=high)
    if low == 0:
        high = next((high * share for share in _ROUND if most <= high * share), high)
    return min(low, *drawn) if drawn else low, max(high, most)


def plain(text: str, most: int) -> str:
    """Return a text as ``shortened`` does, with mathtext's ``$`` escaped so that matplotlib shows it unchanged."""
    return shortened(text, most).replace("$", r"\$")


def shortened(text: str, most: int) -> str:
    """Return a text of a model or a data set in one line, with a long one cut in its middle.

    Control characters and marks of writing direction are shown as ``\\u001b``. Wide characters count twice.
    """
    shown = " ".join(printable(text).split())
    if display_width(shown) <= most:
        return shown
    left, right = shown[: most - most // 3 - 1], shown[len(shown) - most // 3 :]
    while display_width(left) + display_width(right) + 1 > most:
        left, right = (left[:-1], right) if display_width(left) > 2 * display_width(right) else (left, right[1:])
    return f"{left}…{right}"


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem.png`` (150 dots per inch), ``stem.svg`` and ``stem.pdf``, each one atomically.

    Raises ``OSError`` if a file cannot be written.
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in _METADATA]
    for path in paths:
        content = picture(figure, path.suffix)
        with replacing(path) as file:
            file.write(content)
    return paths


def picture(figure: Figure, ending: str) -> bytes:
    """Draw a picture in the format of a file's suffix, with its fonts. PNG has 150 dots per inch.

    Raises ``UsageError`` for other suffixes than ``.png``, ``.svg`` and ``.pdf``.
    """
    import matplotlib as mpl

    kind = ending.lower().removeprefix(".")
    if kind not in _METADATA:
        endings = ", ".join(f".{name}" for name in _METADATA)
        raise UsageError(f"a plot is written as {endings}, not as {ending!r}; give a name with one of these endings")
    _give_fonts(figure)
    drawn = io.BytesIO()
    fonts = logging.getLogger("matplotlib.font_manager")
    level = fonts.level
    fonts.setLevel(logging.ERROR)  # other scripts' fonts have no bold
    try:
        # Texts of SVG files are outlines, and PDF files hold the fonts, so that both look the same everywhere.
        embedded = mpl.rc_context({"svg.hashsalt": "lmms_eval", "svg.fonttype": "path", "pdf.fonttype": 42})
        with embedded, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure.savefig(drawn, format=kind, dpi=150, metadata=_METADATA[kind])
    finally:
        fonts.setLevel(level)
    return drawn.getvalue()


def _give_fonts(figure: Figure) -> None:
    """Give texts in other scripts the fonts of this machine that have them. Without one, boxes are drawn."""
    from matplotlib.text import Text

    foreign = [
        text for text in figure.findobj(Text) if isinstance(text, Text) and max(text.get_text(), default="") > "\u2fff"
    ]
    if not foreign:
        return
    from matplotlib.font_manager import fontManager

    known = {font.name for font in fontManager.ttflist}
    found = [name for name in _OTHER_FONTS if name in known]
    if not found:  # each text is drawn as boxes
        logger.info("a plot shows boxes: no font here has the characters of other scripts (Debian: fonts-noto-cjk)")
    for text in foreign:
        text.set_fontfamily([_FONT, *found])
