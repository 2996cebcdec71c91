"""The report of a run on MEGA-Bench as a whole: core, open, overall and the breakdown by keywords."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.plots.figure import PlotUnavailable
from lmms_eval.tasks._task_utils.missing import NumberBounds, bounds_dict, bounds_lines, filled_mean, without_bounds
from lmms_eval.tasks.megabench.breakdown import output
from lmms_eval.tasks.megabench.breakdown.merge import TaskMean, merge
from lmms_eval.tasks.megabench.breakdown.statistics import breakdown
from lmms_eval.tasks.megabench.facts import Labels, demo_labels, labels
from lmms_eval.utils.names import some_of
from lmms_eval.utils.numbers import SHARES

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
        known = demo_labels() if name == DEMO else labels()
        found = breakdown(results, known)
        gaps = [*(number.withheld for number in numbers if number.withheld), *found.warnings()]
        heading = title = f"MEGA-Bench, {name.replace('_', ' ')} set"
        if gaps:
            title += f": partial, no leaderboard number ({'; '.join(gaps)})"
        missing: Counter[str] = Counter()
        for number in numbers:
            missing.update({} if number.withheld else number.missing)
        bounds = _bounds(missing, results, known) if missing else {}
        texts.append("\n".join(filter(None, [f"{title}\n\n{output.table(found)}", bounds_lines(bounds)])))
        parts[name] = {**found.as_dict(), "intervals": found.intervals(), "is_partial": bool(gaps), "gaps": gaps}
        if bounds:
            parts[name]["missing"] = bounds_dict(bounds)
        if stem is not None:
            folder = stem.with_name(f"{stem.name}_megabench_{name}")
            output.write(folder, results, found)
            files.append(str(folder))
            try:
                model = f": {numbers[0].model}" if numbers[0].model else ""
                files += [str(path) for path in output.plot(found, folder, f"{heading}{model}")]
            except PlotUnavailable as absent:
                logger.info("{}", absent)
    if not texts:
        return None
    return BenchmarkReport("\n".join(texts), {"megabench_breakdown": parts}, tuple(files))


def _bounds(missing: Counter[str], results: Sequence[TaskMean], known: Mapping[str, Labels]) -> dict[str, NumberBounds]:
    """Return the bounds of core, open and overall, by the formulas of the breakdown.

    Args:
        missing: queries without a score, by task of the benchmark; the empty name if it is not known.
        results: the tasks with a score.
        known: the tasks of the benchmark.
    """
    judged = {result.name: result.eval_type == "llm" for result in results}
    if absent := sorted(missing.keys() - judged.keys()):
        reason = f"no query of {some_of(absent, 3)} has a score" if all(absent) else "their tasks are not known"
        return without_bounds(["overall"], missing.total(), reason)
    low, high = (
        breakdown([replace(one, score=filled_mean(one.score, one.num_query, missing[one.name], end), fixed=None)
            for one in results], known)
        for end in (SHARES.low, SHARES.high)
    )  # fmt: skip
    found = {}
    for name, least in low.sides.items():
        count = sum(n for task, n in missing.items() if judged[task] == (name == "open"))
        greatest = high.sides[name]
        if count and least is not None and greatest is not None:
            found[name] = NumberBounds(count, least.score, greatest.score)
    found["overall"] = NumberBounds(missing.total(), low.overall.score, high.overall.score)
    return found


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
