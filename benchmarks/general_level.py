"""Measure General-Level over the whole workbook (699 rows): register and ranker as processes, and ranking in memory.

    python -m benchmarks.general_level      # one JSON object on standard output; exit code 1 if a bar is missed

A made-up score for every row goes through ``register.py`` into a result workbook (also CSV and JSON), which
``ranker.py`` reads and ranks, intervals included, under both profiles; the best of five runs each. Bars: 0.5 s for both
scripts together, 0.35 s for the ranker, 5 ms in memory (without intervals).
The reference's ranker takes 1.0 to 1.2 s. ``load_average``: of the last minute; if other programs use the cores, the
processor time (``cpu_s``) is more meaningful.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.workload import Finished, run_child
from lmms_eval.tasks.general_bench.facts import tasks
from lmms_eval.tasks.general_bench.levels.paper import rank_paper
from lmms_eval.tasks.general_bench.levels.reference import rank_reference
from lmms_eval.tasks.general_bench.levels.tables import read_result_table

SCRIPTS = "lmms_eval/tasks/general_bench"
MODEL = "synthetic"
BAR_BOTH_S, BAR_RANKER_S, BAR_MEMORY_S = 0.5, 0.35, 0.005
REFERENCE_RANKER_S = 1.1
RUNS, CALLS = 5, 50


def write_results(path: Path) -> None:
    """Write a score near the specialist's for every task, by a fixed seed."""
    source = random.Random(29)
    rows = [
        {"task_name": task.name, "metric": task.spelling, "score": task.sound_specialist * source.uniform(0.8, 1.0)}
        for task in tasks()
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")


def timed(script: str, *arguments: str) -> Finished:
    """Return the seconds of the quickest of several runs of a script."""
    runs = [run_child([f"{SCRIPTS}/{script}", *arguments]) for _ in range(RUNS)]
    for run in runs:
        if run.exit_code != 0:
            raise SystemExit(run.output)
    return min(runs, key=lambda run: run.wall_s)


def quickest(call: Callable[[], object]) -> float:
    """Return the seconds of the quickest of several calls."""
    found = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def measure(folder: Path) -> dict[str, Any]:
    results, workbook = folder / "results.json", folder / f"{MODEL}_result.xlsx"
    write_results(results)
    register = timed("register.py", "-d", str(results), "-o", str(folder), "-m", MODEL)
    rankers = {
        profile: timed("ranker.py", "-p", str(workbook), "-m", MODEL, "--profile", profile)
        for profile in ("paper", "reference")
    }
    table = read_result_table(workbook, MODEL)
    memory = {
        "paper": quickest(lambda: rank_paper(MODEL, table)),
        "reference": quickest(lambda: rank_reference(MODEL, table)),
    }
    slower = max(run.wall_s for run in rankers.values())
    return {
        "rows": len(tasks()),
        "register": {"wall_s": register.wall_s, "cpu_s": register.cpu_s, "peak_mb": register.peak_mb},
        "ranker": {
            name: {"wall_s": run.wall_s, "cpu_s": run.cpu_s, "peak_mb": run.peak_mb} for name, run in rankers.items()
        },
        "register_and_ranker_s": register.wall_s + slower,
        "memory_s": memory,
        "bars_s": {"register_and_ranker": BAR_BOTH_S, "ranker": BAR_RANKER_S, "memory": BAR_MEMORY_S},
        "ratio_ranker": slower / REFERENCE_RANKER_S,
        "is_within_bars": register.wall_s + slower <= BAR_BOTH_S
        and slower <= BAR_RANKER_S
        and max(memory.values()) <= BAR_MEMORY_S,
    }


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = {
            "benchmark": "general_level",
            "load_average": os.getloadavg()[0],
            **measure(Path(folder)),
        }
    print(json.dumps(report, indent=2))
    return 0 if report["is_within_bars"] else 1


if __name__ == "__main__":
    sys.exit(main())
