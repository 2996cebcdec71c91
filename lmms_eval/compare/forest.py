"""The forest plot of a comparison: every difference with its interval, verdict and number of documents."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lmms_eval.compare.verdicts import Comparison, Difference, PairComparison, Verdict
from lmms_eval.plots.figure import picture
from lmms_eval.plots.forest import ForestPanel, ForestRow, Look, forest_panels

_LOOKS: dict[Verdict, Look] = {"better": "up", "worse": "down", "equivalent": "same", "cannot tell": "open"}
PERCENT = "percent"


def forest_plot(comparison: Comparison, ending: str) -> bytes:
    """Draw the plot as PNG or SVG, by the ending of its file.

    Each pair of runs has a panel for its shares (in percent points) and one for each other metric, whose units differ.

    Raises:
        UsageError: another ending.
        PlotUnavailable: matplotlib is not installed.
    """
    panels = [panel for pair in comparison.pairs for panel in _panels(pair, comparison.margin)]
    return picture(
        forest_panels(f"Differences with their {100 * (1 - comparison.alpha):g} % intervals", panels), ending
    )


def _panels(pair: PairComparison, margin: float | None) -> Iterator[ForestPanel]:
    by_scale: dict[str, list[Difference]] = {}
    for row in pair.rows:
        by_scale.setdefault(PERCENT if row.unit == PERCENT else row.metric, []).append(row)
    for scale, rows in by_scale.items():
        factor = 100.0 if scale == PERCENT else 1.0
        unit = "percent points" if scale == PERCENT else f"units of {scale}"
        yield ForestPanel(
            f"{pair.first} − {pair.second}",
            f"difference in {unit}; a verdict says what the first run is",
            tuple(_row(row, factor) for row in rows if math.isfinite(row.value)),
            None if margin is None else factor * margin,
        )


def _row(row: Difference, factor: float) -> ForestRow:
    low, high = (None, None) if row.interval is None else (factor * row.interval.low, factor * row.interval.high)
    name = row.name if row.name == row.metric else f"{row.name}  {row.metric}"
    if row.filter not in ("", "none"):
        name += f",{row.filter}"
    remark = "" if row.higher_is_better else " (lower is better)"
    words = row.verdict if row.interval is not None else f"{row.verdict} ({row.no_interval})"
    return ForestRow(name, factor * row.value, low, high, _LOOKS[row.verdict], words, row.pairing.paired, remark)
