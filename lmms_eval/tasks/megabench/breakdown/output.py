"""The files of a breakdown: the leaderboard's two, our intervals, a table and a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.errors import DataError
from lmms_eval.stats.interval import NoInterval
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.submissions import indented_json, write_whole
from lmms_eval.tasks.megabench.breakdown.merge import TASK_RESULTS, TaskMean, read_folder, read_scores
from lmms_eval.tasks.megabench.breakdown.statistics import SMALL_N, ModelBreakdown, TaskGroup, breakdown
from lmms_eval.tasks.megabench.facts import demo_labels, labels
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

    Raises ``DataError`` if no score file is there, one cannot be used, or the results cannot be written.
    """
    if not folder.is_dir():
        raise DataError(f"breakdown: there is no folder {folder}; give the one that holds the evaluator's output files")
    results = read_folder(folder)
    is_demo = demo_labels().keys() >= {result.name for result in results}
    found = breakdown(results, demo_labels() if is_demo else labels())
    write(folder / ANALYSIS, results, found)
    return found


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

    Raises ``DataError`` if a file cannot be written.
    """
    contents = {
        TASK_RESULTS: [result.as_dict() for result in results],
        SUMMARY: found.as_dict(),
        INTERVALS: found.intervals(),
    }
    for name, content in contents.items():
        write_whole(folder / name, indented_json(content, ensure_ascii=False), survives_power_loss=False)


def table(found: ModelBreakdown) -> str:
    """Return all numbers with their intervals, for a terminal; a column ``Fixed`` if a repaired score differs."""
    rows = [("summary", name, side) for name, side in found.sides.items() if side is not None]
    rows.append(("summary", "overall", found.overall))
    for dimension, keywords in found.keywords.items():
        rows += [(TITLES[dimension], name, keyword) for name, keyword in keywords.items()]

    def around(part: str, group: TaskGroup) -> str:
        if isinstance(group.interval, NoInterval):
            return group.interval.reason
        few = " (few tasks)" if group.is_small and part != "summary" else ""
        return f"[{group.interval.low:.4f}, {group.interval.high:.4f}]{few}"

    columns = [
        Column("Part", tuple(part for part, _, _ in rows), is_text=True),
        Column("Keyword", tuple(name for _, name, _ in rows), is_text=True),
        Column("Tasks", tuple(str(group.tasks) for _, _, group in rows)),
        Column("Score", tuple(f"{group.score:.4f}" for _, _, group in rows)),
    ]
    if any(not math.isclose(group.fixed, group.score, abs_tol=1e-9) for _, _, group in rows):
        columns.append(Column("Fixed", tuple(f"{group.fixed:.4f}" for _, _, group in rows)))
    columns.append(Column("CI95 over tasks", tuple(around(part, group) for part, _, group in rows), is_text=True))
    return markdown_table(columns)


def plot(found: ModelBreakdown, folder: Path, title: str) -> list[Path]:
    """Draw every keyword's score with its interval; returns the files.

    Raises:
        PlotUnavailable: matplotlib is not installed.
        DataError: a file cannot be written.
    """
    from lmms_eval.plots.bars import Bar, bar_panels
    from lmms_eval.plots.figure import save

    def bar(name: str, keyword: TaskGroup) -> Bar:
        found = keyword.interval
        low, high = (None, None) if isinstance(found, NoInterval) else (found.low, found.high)
        return Bar(f"{name} (n = {keyword.tasks})", keyword.score, low, high, keyword.is_small)

    panels = {
        TITLES[dimension]: [bar(name, keyword) for name, keyword in keywords.items()]
        for dimension, keywords in found.keywords.items()
    }
    overall = f"{title}, overall {found.overall.score:.3f}"
    axis = "mean score over n tasks, with 95 % interval"
    figure = bar_panels(overall, panels, axis, pale=f"fewer than {SMALL_N} tasks")
    try:
        return save(figure, folder / PLOT)
    except OSError as error:
        raise DataError(f"the plot cannot be written to {folder}: {error.strerror or error}") from error
