"""Measure the start-up times of interactive commands.

    python -m benchmarks.startup             # one JSON object on standard output

Each command runs in a separate process, once to warm the file cache, then ``--runs`` times; the median is reported,
and its ratio to the bare interpreter's start. ``--packs FOLDER`` measures the commands with these packs too
(``docs/packs.md``), alternating with the runs without packs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.workload import Finished, run_child

COMMANDS = {
    "python": ["-c", "pass"],
    "--help": ["-m", "lmms_eval", "--help"],
    "eval --help": ["-m", "lmms_eval", "eval", "--help"],
    "tasks list": ["-m", "lmms_eval", "tasks", "list"],
    "models": ["-m", "lmms_eval", "models"],
    "version": ["-m", "lmms_eval", "version"],
}
RUN = [
    "-m", "lmms_eval", "--model", "baseline", "--model_args", "strategy=gold", "--tasks", "startup", "--include_path",
]  # fmt: skip
TASK = (
    "task: startup\ndataset_path: json\ndataset_kwargs: {data_files: {test: rows.jsonl}}\ntest_split: test\n"
    "doc_to_text: '{{q}}'\ndoc_to_target: a\nmetric_list: [{metric: exact_match}]\n"
)
WITH_PACKS = ("--help", "tasks list", "a run of one task")
BARS_S = {"--help": 0.2, "tasks list": 0.5, "tasks list, with packs": 0.6}
MORE_WITH_PACKS_S = {"--help": 0.01, "a run of one task": 0.01}
"""Most additional processor time."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--packs", default="", help="folder of packs, as LMMS_EVAL_PACKS names it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "startup.yaml").write_text(TASK, encoding="utf-8")
        Path(folder, "rows.jsonl").write_text('{"q": "1 + 1", "a": "2"}\n', encoding="utf-8")
        numbers = measured({**COMMANDS, "a run of one task": [*RUN, folder]}, given.runs, given.packs)
    for entry in numbers.values():
        entry["ratio_to_python"] = entry["wall_s"] / numbers["python"]["wall_s"]
    more = {
        name: numbers[f"{name}, with packs"]["cpu_s"] - numbers[name]["cpu_s"] for name in WITH_PACKS if given.packs
    }
    bars = {"bars_s": BARS_S, "more_with_packs_s": more, "bars_more_s": MORE_WITH_PACKS_S}
    print(json.dumps({"benchmark": "startup", "commands": numbers, **bars}, indent=2))


def measured(commands: Mapping[str, Sequence[str]], runs: int, packs: str) -> dict[str, dict[str, float]]:
    """Return the medians of each command, and of some with packs, which alternate with those without."""
    numbers = {}
    for name, arguments in commands.items():
        kinds = {name: "/nowhere", **({f"{name}, with packs": packs} if packs and name in WITH_PACKS else {})}
        finished: dict[str, list[Finished]] = {kind: [] for kind in kinds}
        for _ in range(runs + 1):
            for kind, place in kinds.items():
                finished[kind].append(run_child(arguments, {"LMMS_EVAL_PACKS": place}))
        for kind, ended in finished.items():
            if failed := [run for run in ended if run.exit_code]:
                raise SystemExit(f"{kind} ended with code {failed[0].exit_code}: {failed[0].output}")
            numbers[kind] = {
                "wall_s": statistics.median(run.wall_s for run in ended[1:]),
                "cpu_s": statistics.median(run.cpu_s for run in ended[1:]),
                "peak_mb": statistics.median(run.peak_mb for run in ended[1:]),
            }
    return numbers


if __name__ == "__main__":
    main()
