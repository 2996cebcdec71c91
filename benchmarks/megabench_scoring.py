"""Measure the stand-alone evaluator on 6,531 synthetic core answers of MEGA-Bench, including start-up and files.

    python -m benchmarks.megabench_scoring [--nltk_data DIR]      # one JSON object on standard output

``fast``: without the tasks whose metrics run programs, read linguistic data or parse LaTeX. Bars on 2 cores: 6 s fast,
15 s all, 0.4 s to start. The reference takes 85 s for all.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.megabench_workload import LATEX, SLOW, Workload, write_workload
from benchmarks.workload import Finished, run_child

SCRIPT = "lmms_eval/tasks/megabench/evaluator.py"
REFERENCE_S = 85.0
ALLOWED_EXIT_CODES = (0, 3)
"""Accepted exit codes. 3: linguistic data or the sandbox is missing; the report counts such tasks."""


def measure(work: Workload, workers: int, further: Sequence[str]) -> dict[str, Any]:
    """Measure one evaluation from start to end."""
    output = work.data_root / f"scores_{workers}.json"
    finished = run_child(
        [
            SCRIPT, "--subset_name", "core", "--data_root", str(work.data_root),
            "--submission_file", str(work.submission), "--output_file", str(output),
            "--workers", str(workers), *further,
        ]
    )  # fmt: skip
    check(finished)
    summary = json.loads(output.read_bytes())["summary"]
    return {
        "wall_s": finished.wall_s,
        "cpu_s": finished.cpu_s,
        "peak_mb": finished.peak_mb,
        "tasks_not_evaluated": len(summary.get("not_evaluated", ())),
    }


def check(finished: Finished) -> None:
    if finished.exit_code not in ALLOWED_EXIT_CODES:
        raise SystemExit(finished.output)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nltk_data", metavar="DIR")
    given = parser.parse_args()
    further = ["--nltk_data", given.nltk_data] if given.nltk_data else []
    start = min(run_child([SCRIPT, "--help"]).wall_s for _ in range(3))
    report: dict[str, Any] = {"benchmark": "megabench_scoring", "start_s": start, "reference_s": REFERENCE_S}
    with tempfile.TemporaryDirectory() as folder:
        for name, left_out in (("fast", SLOW | LATEX), ("all", frozenset[str]())):
            work = write_workload(Path(folder) / name, left_out)
            report[name] = {
                "queries": work.queries,
                "fields": sum(work.fields_by_metric.values()),
                **{f"workers_{number}": measure(work, number, further) for number in (1, 2)},
            }
            report[f"wall_s_{name}"] = min(report[name][f"workers_{number}"]["wall_s"] for number in (1, 2))
    report["ratio_to_reference"] = report["wall_s_all"] / REFERENCE_S
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
