"""Measure MEGA-Bench's breakdown of 505 tasks from score files as a process: start-up, files and table, without plot.

    python -m benchmarks.megabench_breakdown      # one JSON object on standard output

``bare``: the score files hold no queries, as in the recorded vectors; ``full``: 7,689 queries of some 700 characters.
Bar on 2 cores: below the 0.18 s that the reference takes on the bare files. The best of ``REPEATS`` calls counts.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.workload import run_child
from lmms_eval.tasks.megabench.facts import DatasetTask, tasks

SCRIPT = "lmms_eval/tasks/megabench/breakdown/derive_breakdown_results.py"
REFERENCE_S = 0.18
REPEATS = 7


def write_scores(folder: Path, *, with_queries: bool) -> None:
    """Write the evaluator's two output files, with scores by a fixed seed."""
    source = random.Random(0)
    for subset in ("core", "open"):
        data = [_task(task, source, with_queries) for task in tasks().values() if task.subset == subset]
        path = folder / f"megabench_{subset}_data_with_scores.json"
        path.write_text(json.dumps({"data": data, "summary": {}}, indent=4), encoding="utf-8")


def _task(task: DatasetTask, source: random.Random, with_queries: bool) -> dict[str, Any]:
    query = {
        "response": "word " * 60, "correct_answer": {"answer": "word"}, "global_idx": "1", "images": [],
        "query_text": "question " * 30, "scores": {"field": {"answer": 1}, "info": {}, "query": 1.0},
    }  # fmt: skip
    return {
        "task_name": task.name,
        "example_info": {"image_paths": [], "example_text": "x" if task.demonstrations else ""},
        "query_response": [query if with_queries else {}] * task.queries,
        "mean_task_score": source.random(),
        "eval_type": "llm" if task.subset == "open" else "rule",
    }


def measure(folder: Path) -> dict[str, float]:
    calls = [run_child([SCRIPT, "--input_dir", str(folder), "--no_plot"]) for _ in range(REPEATS)]
    for call in calls:
        if call.exit_code:
            raise SystemExit(call.output)
    return {"wall_s": min(call.wall_s for call in calls), "cpu_s": min(call.cpu_s for call in calls)}


def main() -> None:
    report: dict[str, Any] = {"benchmark": "megabench_breakdown", "reference_s": REFERENCE_S}
    with tempfile.TemporaryDirectory() as parent:
        for name in ("bare", "full"):
            folder = Path(parent) / name
            folder.mkdir()
            write_scores(folder, with_queries=name == "full")
            report[name] = measure(folder)
    report["ratio_to_reference"] = report["bare"]["wall_s"] / REFERENCE_S
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
