"""The files of a breakdown: the leaderboard's two, our intervals, a table and a plot."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.stats.interval import Interval, NoInterval
from lmms_eval.storage.atomic import read_json, replacing
from lmms_eval.tasks.megabench.breakdown.merge import TASK_RESULTS, TaskMean, read_folder, read_scores
from lmms_eval.tasks.megabench.breakdown.statistics import SMALL_N, Keyword, ModelBreakdown, breakdown
from lmms_eval.tasks.megabench.facts import Labels, demo_labels, labels
from lmms_eval.utils.terminal import Column, markdown_table

ANALYSIS = "analysis"
SUMMARY = "summary_and_keyword_stats.json"
INTERVALS = "keyword_intervals.json"
PLOT = "keyword_scores"
TITLES = {
    "skills": "Skills",
    "input_format": "Input format",
    "output_format": "Output format",
    "input_num": "Visual inputs",
    "app": "Application",
}
SINGLE_IMAGE = "1-image"


def derive(folder: Path) -> ModelBreakdown:
    """Write the breakdown of the score files in a folder to its subfolder ``analysis``.

    Raises:
        DataError: no score file is there, one cannot be used, or the results cannot be written.
    """
    if not folder.is_dir():
        raise DataError(f"breakdown: there is no folder {folder}; give the one that holds the evaluator's output files")
    results = read_folder(folder)
    found = breakdown(results, _labels_of(results))
    write(folder / ANALYSIS, results, found)
    return found


def _labels_of(results: Sequence[TaskMean]) -> Mapping[str, Labels]:
    """Return the labels of the benchmark's tasks, or of the demonstration's if all results are of the demonstration."""
    return demo_labels() if demo_labels().keys() >= {result.name for result in results} else labels()


def derive_single_image(source: Path, target: Path) -> ModelBreakdown:
    """Write the single-image results of a finished full run: its tasks with one picture, rule-scored ones first.

    Args:
        source: the folder of the full breakdown, or its ``analysis`` subfolder.
        target: folder for the two official files and ours.

    Raises:
        DataError: there are no task results, or one kind is missing; then nothing is written.
    """
    paths = [folder / TASK_RESULTS for folder in (source / ANALYSIS, source)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise DataError(
            f"single image: no {TASK_RESULTS} in {source} or its {ANALYSIS}/; derive the full breakdown first"
        )
    single = [
        result
        for result in read_scores(read_json(path), str(path))
        if result.name in labels() and labels()[result.name].visual_inputs == SINGLE_IMAGE
    ]
    chosen = sorted(single, key=lambda result: result.eval_type == "llm")
    if len({result.eval_type == "llm" for result in chosen}) < 2:
        raise DataError(
            f"single image: {path} has no single-image tasks of both kinds (rule and llm); nothing was written"
        )
    found = breakdown(chosen, labels())
    write(target, chosen, found)
    return found


def write(folder: Path, results: Sequence[TaskMean], found: ModelBreakdown) -> None:
    """Write the leaderboard's two files and our intervals, each replaced as a whole.

    Raises:
        DataError: a file cannot be written.
    """
    contents = {
        TASK_RESULTS: [result.as_dict() for result in results],
        SUMMARY: found.as_dict(),
        INTERVALS: found.intervals(),
    }
    for name, content in contents.items():
        path = folder / name
        try:
            with replacing(path, survives_power_loss=False) as file:  # the same command writes it again
                file.write(json.dumps(content, indent=4, ensure_ascii=False).encode("utf-8"))
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


class _Row(Struct, frozen=True):
    part: str
    name: str
    tasks: int
    score: float
    fixed: float
    interval: Interval | NoInterval
    is_small: bool = False


def table(found: ModelBreakdown) -> str:
    """Return all numbers with their intervals, for a terminal; a column ``Fixed`` if a repaired score differs."""
    rows = list(_rows(found))
    columns = [
        Column("Part", tuple(row.part for row in rows), is_text=True),
        Column("Keyword", tuple(row.name for row in rows), is_text=True),
        Column("Tasks", tuple(str(row.tasks) for row in rows)),
        Column("Score", tuple(f"{row.score:.4f}" for row in rows)),
    ]
    if any(not math.isclose(row.fixed, row.score, abs_tol=1e-9) for row in rows):
        columns.append(Column("Fixed", tuple(f"{row.fixed:.4f}" for row in rows)))
    columns.append(Column("CI95", tuple(_shown(row.interval, row.is_small) for row in rows), is_text=True))
    return markdown_table(columns)


def _rows(found: ModelBreakdown) -> Iterator[_Row]:
    for name, side in (("core", found.core), ("open", found.open)):
        if side is not None:
            yield _Row("summary", name, side.tasks, side.macro_mean, side.fixed, side.interval)
    total = sum(side.tasks for side in (found.core, found.open) if side is not None)
    yield _Row("summary", "overall", total, found.overall, found.overall_fixed, found.overall_interval)
    for dimension, keywords in found.keywords.items():
        for name, item in keywords.items():
            is_small = item.count < SMALL_N
            yield _Row(TITLES[dimension], name, item.count, item.average, item.fixed, item.interval, is_small)


def _shown(interval: Interval | NoInterval, is_small: bool) -> str:
    if isinstance(interval, NoInterval):
        return interval.reason
    text = f"[{interval.low:.4f}, {interval.high:.4f}]"
    return f"{text} (few tasks)" if is_small else text


def plot(found: ModelBreakdown, folder: Path, title: str) -> list[Path]:
    """Draw every keyword's score with its interval; returns the PNG and the SVG file.

    Raises:
        PlotUnavailable: matplotlib is not installed.
        DataError: a file cannot be written.
    """
    from lmms_eval.plots.bars import Bar, BarPanel, bar_panels
    from lmms_eval.plots.figure import save

    def bar(name: str, keyword: Keyword) -> Bar:
        found = keyword.interval
        low, high = (None, None) if isinstance(found, NoInterval) else (found.low, found.high)
        return Bar(f"{name} ({keyword.count})", keyword.average, low, high, keyword.count < SMALL_N)

    panels = [
        BarPanel(TITLES[dimension], tuple(bar(name, keyword) for name, keyword in keywords.items()))
        for dimension, keywords in found.keywords.items()
    ]
    figure = bar_panels(f"{title}: overall {found.overall:.4f}", panels, "mean score of the tasks, 95 % interval")
    try:
        return save(figure, folder / PLOT)
    except OSError as error:
        raise DataError(f"the plot cannot be written to {folder}: {error.strerror or error}") from error
