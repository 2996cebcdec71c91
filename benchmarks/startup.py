"""Measure the start-up times of interactive commands.

    python -m benchmarks.startup             # one JSON object on standard output

Each command runs in a separate process, once to warm the file cache, then ``--runs`` times; the median is reported,
and its ratio to the bare interpreter's start.
"""

from __future__ import annotations

import argparse
import json
import statistics

from benchmarks.workload import run_child

COMMANDS = {
    "python": ["-c", "pass"],
    "--help": ["-m", "lmms_eval", "--help"],
    "eval --help": ["-m", "lmms_eval", "eval", "--help"],
    "tasks list": ["-m", "lmms_eval", "tasks", "list"],
    "models": ["-m", "lmms_eval", "models"],
    "version": ["-m", "lmms_eval", "version"],
}
BARS_S = {"--help": 0.2, "tasks list": 0.5}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    numbers: dict[str, dict[str, float]] = {}
    for name, arguments in COMMANDS.items():
        finished = [run_child(arguments) for _ in range(runs + 1)][1:]
        if any(run.exit_code for run in finished):
            raise SystemExit(f"{name} ended with code {finished[0].exit_code}: {finished[0].output}")
        numbers[name] = {
            "wall_s": statistics.median(run.wall_s for run in finished),
            "cpu_s": statistics.median(run.cpu_s for run in finished),
            "peak_mb": statistics.median(run.peak_mb for run in finished),
        }
    for entry in numbers.values():
        entry["ratio_to_python"] = entry["wall_s"] / numbers["python"]["wall_s"]
    print(json.dumps({"benchmark": "startup", "commands": numbers, "bars_s": BARS_S}, indent=2))


if __name__ == "__main__":
    main()
