"""The report's files: JSON, two tables as CSV, pictures as PNG and SVG."""

from __future__ import annotations

import json
from pathlib import Path

from lmms_eval.errors import DataError
from lmms_eval.plots.curve import Axis, Curve, CurvePanel, Point, Region, curve_panels
from lmms_eval.plots.figure import save
from lmms_eval.plots.grid import Grid, GridScale, grid_panels
from lmms_eval.tasks.milebench.report_text import images_csv, scores_csv, title
from lmms_eval.tasks.milebench.standalone import write_text
from lmms_eval.tasks.milebench.summary.image_counts import ALL, LEVEL_RANGES, REALISTIC, Pool
from lmms_eval.tasks.milebench.summary.overview import Overview

REPORT, SCORES, IMAGES = "report.json", "scores.csv", "images.csv"
CURVE, NEEDLES = "score_by_images", "needle_grid"
"""Pictures, without the ending."""
TICKS = (2, 3, 4, 5, 8, 12, 20, 32, 48, 72, 109)
WIDEST = 120.0
"""Pictures at the right end of the axis: the benchmark has up to 109."""
SCOPE_NAMES = {
    REALISTIC: "realistic (T-1 to S-5)",
    "N-1": "N-1 text needle",
    "N-2": "N-2 image needle",
    "I-1": "I-1 image retrieval",
}


def write(overview: Overview, folder: Path) -> None:
    """``report.json``, ``scores.csv`` and ``images.csv``, each replaced as a whole.

    Raises:
        DataError: a file cannot be written.
    """
    write_text(folder / REPORT, json.dumps(overview.as_dict(), indent=2, ensure_ascii=False))
    write_text(folder / SCORES, scores_csv(overview))
    write_text(folder / IMAGES, images_csv(overview))


def draw(overview: Overview, folder: Path) -> list[Path]:
    """The curve over the number of pictures, and the grids of needles if there are any.

    Raises:
        PlotUnavailable: matplotlib is not installed.
        DataError: a file cannot be written.
    """
    pooled = [pool for pool in overview.curve if pool.scope == ALL]
    rules = (
        Curve("official", tuple(_point(pool, is_fixed=False) for pool in pooled)),
        Curve("fixed", tuple(_point(pool, is_fixed=True) for pool in pooled), is_dashed=True),
    )
    parts = tuple(
        Curve(name, tuple(_point(pool, is_fixed=False) for pool in overview.curve if pool.scope == scope))
        for scope, name in SCOPE_NAMES.items()
    )
    regions = [Region(level, low - 0.5, high + 0.5) for level, (low, high) in LEVEL_RANGES.items()]
    figure = curve_panels(
        title(overview),
        [
            CurvePanel("All data sets, pooled by sample", rules),
            CurvePanel("By part, official rules, pooled by sample", parts),
        ],
        Axis(
            "pictures in the sample",
            limits=(1.8, max([WIDEST, *(1.1 * pool.images for pool in overview.curve)])),
            is_log=True,
            ticks=TICKS,
        ),
        Axis("accuracy or ROUGE-L, %; 95 % band", limits=(0, 100)),
        regions,
    )
    try:
        files = save(figure, folder / CURVE)
        if overview.grids:
            grids = [Grid(grid.dataset, grid.depths, grid.lengths, grid.cells) for grid in overview.grids]
            scale = GridScale("depth of the needle", "length of the context", "official score, %")
            files += save(grid_panels(title(overview), grids, scale), folder / NEEDLES)
    except OSError as error:
        raise DataError(f"the plots cannot be written to {folder}: {error.strerror or error}") from error
    return files


def _point(pool: Pool, is_fixed: bool) -> Point:
    figure = pool.by_sample.fixed if is_fixed else pool.by_sample.official
    return Point(max(pool.images, 1.0), figure.value, *figure.ends)
