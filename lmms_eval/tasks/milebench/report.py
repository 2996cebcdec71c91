"""The report on MileBench as a whole: groups, overall figures, scores by number of pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.plots.curve import Axis, Curve, Point, curve_panels
from lmms_eval.plots.figure import PlotUnavailable, save, shown_limits
from lmms_eval.plots.grid import CellGrid, grid_panels
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.submissions import write_whole
from lmms_eval.tasks.milebench.collection import staleness
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.report_text import images_csv, report_text, scores_csv, title
from lmms_eval.tasks.milebench.scoring.model import LEVEL_RANGES
from lmms_eval.tasks.milebench.standalone import FIXED, SUMMARY
from lmms_eval.tasks.milebench.submission import PREDICTIONS
from lmms_eval.tasks.milebench.summary.dataset import KEY, DatasetSummary
from lmms_eval.tasks.milebench.summary.figures import ScoredDataset
from lmms_eval.tasks.milebench.summary.image_counts import ALL, REALISTIC, CountPool
from lmms_eval.tasks.milebench.summary.overview import Overview, build

REPORT, SCORES, IMAGES = "report.json", "scores.csv", "images.csv"
CURVE, NEEDLES = "score_by_images", "needle_grid"
"""File names of the pictures, without extension."""
TICKS = (2, 3, 4, 5, 8, 12, 20, 32, 48, 72, 109)
LEAST_WIDTH = 8.0
"""Least right end of the axis of pictures."""
SCOPE_NAMES = {
    REALISTIC: "realistic (T-1 to S-5)",
    "N-1": "N-1 text needle",
    "N-2": "N-2 image needle",
    "I-1": "I-1 image retrieval",
}


def write(overview: Overview, folder: Path) -> None:
    """Write ``report.json``, ``scores.csv`` and ``images.csv``, each as a whole. Raises ``DataError`` if that fails."""
    contents = {
        REPORT: json.dumps(overview.as_dict(), indent=2, ensure_ascii=False),
        SCORES: scores_csv(overview),
        IMAGES: images_csv(overview),
    }
    for name, text in contents.items():
        write_whole(folder / name, text, survives_power_loss=False)


def draw(overview: Overview, folder: Path, model: str = "") -> list[Path]:
    """Draw the curve over the number of pictures, and the grids of needles if there are any.

    ``model`` is the model's name for the titles.

    Raises:
        PlotUnavailable: matplotlib is not installed.
        DataError: a file cannot be written.
    """
    heading = f"{title(overview)}: {model}" if model else title(overview)
    pooled = [pool for pool in overview.curve if pool.scope == ALL]
    rules = (_curve("official", pooled), _curve("fixed", pooled, is_fixed=True))
    parts = [
        _curve(name, [pool for pool in overview.curve if pool.scope == scope]) for scope, name in SCOPE_NAMES.items()
    ]
    ends = [end for curve in (*rules, *parts) for point in curve.points for end in (point.y, point.high) if end]
    regions = {level: (low - 0.5, high + 0.5) for level, (low, high) in LEVEL_RANGES.items()}
    figure = curve_panels(
        heading,
        {"All data sets, pooled by sample": rules, "By part, official rules, pooled by sample": parts},
        Axis(
            "pictures in the sample",
            limits=(1.8, max([LEAST_WIDTH, *(1.1 * pool.images for pool in overview.curve)])),
            is_log=True,
            ticks=TICKS,
        ),
        Axis("accuracy or ROUGE-L, %; 95 % band", limits=shown_limits((0, 100), ends)),
        regions,
    )
    try:
        files = save(figure, folder / CURVE)
        if overview.grids:
            grids = [
                CellGrid(grid.dataset, grid.depths, grid.lengths, grid.cells, grid.counts) for grid in overview.grids
            ]
            labels = ("depth of the needle", "length of the context", "official score, %")
            files += save(grid_panels(heading, grids, *labels), folder / NEEDLES)
    except OSError as error:
        raise DataError(f"the plots cannot be written to {folder}: {error.strerror or error}") from error
    return files


def _curve(name: str, pools: Sequence[CountPool], is_fixed: bool = False) -> Curve:
    points = tuple(_point(pool, is_fixed) for pool in pools)
    return Curve(f"{name} (n = {sum(pool.samples for pool in pools)})", points, is_dashed=is_fixed)


def _point(pool: CountPool, is_fixed: bool) -> Point:
    figure = pool.by_sample.fixed if is_fixed else pool.by_sample.official
    return Point(max(pool.images, 1.0), figure.value, *figure.ends)


DEMO = "demo"
_PREFIX = "milebench_"


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Make a report for each variant (usual data and prompts, adversarial, demonstration, ...) in the run.

    With ``stem`` the files of ``report_files`` go to ``STEM_milebench/``, those of a variant to
    ``STEM_milebench_VARIANT/``. Raises ``DataError`` if a file cannot be written, or a task's details are no summary.
    """
    texts: list[str] = []
    parts: dict[str, Any] = {}
    files: list[str] = []
    for variant, found in _by_variant(tasks).items():
        overview = build(found, variant)
        if not overview.summaries:
            continue
        texts.append(report_text(overview))
        parts[variant or "milebench"] = overview.as_dict()
        if stem is not None:
            folder = stem.with_name("_".join([stem.name, "milebench", *([variant] if variant else [])]))
            write(overview, folder)
            files.append(str(folder))
            try:
                files += [str(path) for path in draw(overview, folder, next(iter(tasks.values())).model)]
            except PlotUnavailable as absent:
                logger.info("{}", absent)
    return BenchmarkReport("\n\n".join(texts), {"milebench_report": parts}, tuple(files)) if texts else None


def _by_variant(tasks: Mapping[str, TaskNumbers]) -> dict[str, list[ScoredDataset]]:
    """Group tasks by variant. A task without scores has no variant and counts for every one with its kind of data."""
    found: dict[str, list[ScoredDataset]] = {}
    silent: list[tuple[bool, ScoredDataset]] = []
    for name, numbers in tasks.items():
        details = numbers.details.get(KEY)
        if details is None:
            own = name.removeprefix(_PREFIX)
            is_demo, own = own.startswith(f"{DEMO}_"), own.removeprefix(f"{DEMO}_")
            known = [facts for facts in datasets().values() if facts.task == own]
            lost = _missing(numbers)
            silent += [(is_demo, ScoredDataset(facts, None, numbers.withheld, lost)) for facts in known]
            continue
        summary = DatasetSummary.from_details(details)
        found.setdefault(summary.variant, []).append(
            ScoredDataset(datasets()[summary.dataset], summary, numbers.withheld, _missing(numbers))
        )
    for variant, members in found.items():
        members += [scored for is_demo, scored in silent if is_demo == variant.startswith(DEMO)]
    return found


def _missing(numbers: TaskNumbers) -> int:
    return 0 if numbers.withheld else sum(numbers.missing.values())


def report_of(folder: Path, output: Path | None = None) -> BenchmarkReport:
    """Report groups, overall figures and scores by number of pictures of a model from its folder.

    Args:
        output: folder for the report's files, which go to ``OUTPUT/MODEL_milebench``; ``None`` → none are written.

    Raises:
        DataError: no data set of the benchmark was evaluated, one has predictions that were not, or a file cannot be
            used or written.
    """
    tasks: dict[str, TaskNumbers] = {}
    for name, facts in datasets().items():
        summary = _summary(folder / name)
        if summary is not None:
            tasks[f"milebench_{facts.task}"] = TaskNumbers({KEY: summary})
    found = report(tasks, None if output is None else output / folder.absolute().name) if tasks else None
    if found is None:
        raise DataError(f"no data set was evaluated in {folder}; lmms-eval milebench evaluate comes first")
    return found


def _summary(folder: Path) -> Mapping[str, Any] | None:
    """Read the summary of a data set; ``None`` if it has neither scores nor predictions."""
    path = folder / FIXED
    if not path.is_file():
        if (folder / PREDICTIONS).is_file():
            raise DataError(f"{folder / PREDICTIONS} was not evaluated; lmms-eval milebench evaluate comes first")
        return None
    content = read_json(path)
    summary = content.get(SUMMARY) if isinstance(content, Mapping) else None
    if not isinstance(summary, Mapping) or summary.get("dataset") != folder.name:
        raise DataError(f"{path} holds no summary of {folder.name}: evaluate again")
    stale = staleness(folder)
    if stale:
        raise DataError(f"{path} {stale}")
    return summary
