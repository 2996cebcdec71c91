"""The report of a run on MEGA-Bench as a whole: core, open, overall and the breakdown by keywords."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.plots.figure import PlotUnavailable
from lmms_eval.tasks.megabench.breakdown import output
from lmms_eval.tasks.megabench.breakdown.merge import TaskMean, merge
from lmms_eval.tasks.megabench.breakdown.statistics import breakdown
from lmms_eval.tasks.megabench.facts import demo_labels, labels

SETS: Mapping[str, tuple[str, ...]] = {
    "full": ("megabench_core", "megabench_open"),
    "single_image": ("megabench_core_si", "megabench_open_si"),
}
"""Tasks that make one leaderboard row."""
DEMO, DEMO_TASKS = "demo", ("megabench_demo",)
"""The demonstration's set, which is not a leaderboard row."""


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Report a breakdown of each set in the run: full, single-image, demonstration.

    With ``stem`` the leaderboard's files, our intervals and a plot go to ``STEM_megabench_SET/``. Raises ``DataError``
    if a file cannot be written.
    """
    texts: list[str] = []
    parts: dict[str, Any] = {}
    files: list[str] = []
    for name, members in {**SETS, DEMO: DEMO_TASKS}.items():
        numbers = [tasks[member] for member in members if member in tasks]
        results = merge([_results(number) for number in numbers])
        if not results:
            continue
        found = breakdown(results, demo_labels() if name == DEMO else labels())
        gaps = [*(number.withheld for number in numbers if number.withheld), *found.warnings()]
        title = f"MEGA-Bench, {name.replace('_', ' ')} set"
        if gaps:
            title += f": partial, no leaderboard number ({'; '.join(gaps)})"
        texts.append(f"{title}\n\n{output.table(found)}")
        parts[name] = {**found.as_dict(), "intervals": found.intervals(), "is_partial": bool(gaps), "gaps": gaps}
        if stem is not None:
            folder = stem.with_name(f"{stem.name}_megabench_{name}")
            output.write(folder, results, found)
            files.append(str(folder))
            try:
                files += [str(path) for path in output.plot(found, folder, "MEGA-Bench")]
            except PlotUnavailable as absent:
                logger.info("{}", absent)
    if not texts:
        return None
    return BenchmarkReport("\n".join(texts), {"megabench_breakdown": parts}, tuple(files))


def _results(numbers: TaskNumbers) -> list[TaskMean]:
    found = numbers.details.get("megabench", {}).get("tasks", {})
    return [
        TaskMean(
            name,
            task["mean_task_score"],
            task["eval_type"],
            task["num_demo"],
            task["num_query"],
            task["fixed_mean_task_score"],
        )
        for name, task in found.items()
        if task["mean_task_score"] is not None
    ]
