"""Measure the start-up times of interactive commands.

    python -m benchmarks.startup             # one JSON object on standard output

Each command runs in a separate process, once to warm the file cache, then ``--runs`` times; the median is reported,
and its ratio to the bare interpreter's start. ``first request`` is the time until a run of a text task with ``openai``
connects to its server, with the numbers of modules that are imported by then; ``scripts`` that until each stand-alone
script of a benchmark opens the first file that it is given. ``--packs FOLDER`` measures the commands
with these packs too (``docs/packs.md``), alternating with the runs without packs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.workload import Finished, run_child, text_task
from tests.servers.stub import StubServer

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
UNTIL = """
import os, runpy, sys, time
given = os.environ.get("STARTUP_INPUTS")
def is_it(event, arguments):
    if given is None:
        return event == "socket.connect"
    return event == "open" and str(arguments[0]).startswith(given)
def note(event, arguments, seen=[]):
    if not seen and is_it(event, arguments):
        seen.append(event)
        ours = sum(name.partition(".")[0] == "lmms_eval" for name in sys.modules)
        with open(os.environ["STARTUP_NOTE"], "w") as file:
            file.write(f"{time.time()} {time.process_time()} {ours} {len(sys.modules)}")
sys.addaudithook(note)
del sys.argv[0]
if os.path.isfile(sys.argv[0]):
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
else:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
"""Runs a module or a script, and notes when it first connects or, with ``STARTUP_INPUTS``, opens a file below it."""
SCRIPTS = {
    "megabench/evaluator.py": (
        "--subset_name demo --submission_file {in}/submissions/megabench_demo_all_query_responses.json "
        "--output_file {in}/scores/megabench_demo_data_with_scores.json --force"
    ),
    "megabench/breakdown/derive_breakdown_results.py": "--input_dir {in}/scores",
    "milebench/evaluate.py": "--data-dir {in}/data --dataset WebQA --result-dir {in}/milebench_demo/baseline",
    "milebench/score.py": "--result-dir {in}/milebench_demo --models baseline",
    "milebench/combine_images.py": "--data_dir {in}/data --dataset_name WebQA --max_img_num 1",
    "mmie/main.py": (
        "--input_dir {in}/submissions --input_file mmie_demo_to_evaluate.json --data_root {tasks}/mmie/demo "
        "--output_dir {in}/judged --output_file result.json --judge_model stub --judge_base_url {url} --force"
    ),
    "mmie/compare.py": "{in}/submissions/mmie_demo_scores.csv {in}/submissions/mmie_demo_scores.csv",
    "general_bench/register.py": "-d {in}/general_bench/baseline -m NAME -o {in}/outcome",
    "general_bench/ranker.py": "-p {in}/outcome/NAME_result.xlsx -m NAME",
}
"""Scripts below the tasks' folder, with arguments; each may read what the ones before it wrote."""
DEMOS = "megabench_demo,milebench_demo,mmie_demo,general_bench_demo"
ALLOWED_EXIT_CODES = (0, 2, 3)
"""2 and 3: the demonstrations lack tasks of the whole benchmark, and this machine may lack a metric's data."""
TASKS = Path(__file__).parents[1] / "lmms_eval" / "tasks"
BARS_S = {"--help": 0.05, "tasks list": 0.2, "tasks list, with packs": 0.6, "first request": 0.45, "scripts": 0.3}
MOST_MODULES = 150
"""Most modules of the package at the first request."""
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
    numbers["first request"] = first_request(given.runs)
    numbers |= scripts(given.runs)
    for entry in numbers.values():
        entry["ratio_to_python"] = entry["wall_s"] / numbers["python"]["wall_s"]
    more = {
        name: numbers[f"{name}, with packs"]["cpu_s"] - numbers[name]["cpu_s"] for name in WITH_PACKS if given.packs
    }
    bars = {"bars_s": BARS_S, "most_modules": MOST_MODULES, "more_with_packs_s": more, "bars_more_s": MORE_WITH_PACKS_S}
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


def first_request(runs: int) -> dict[str, float]:
    """Return the medians at the first connection of a run of a text task, and the numbers of imported modules."""
    noted: list[Sequence[float]] = []
    with tempfile.TemporaryDirectory() as folder, StubServer() as server:
        task = text_task(Path(folder, "tasks"), 3)
        for number in range(runs + 1):
            words = [
                *("lmms_eval", "--model", "openai", "--model_args", f"model=stub,base_url={server.url}"),
                *("--tasks", task, "--include_path", f"{folder}/tasks", "--output_path", f"{folder}/{number}"),
            ]
            noted.append(begun(words, Path(folder), {}))
    return medians(noted)


def scripts(runs: int) -> dict[str, dict[str, float]]:
    """Measure each stand-alone script until it opens its input; returns medians of times (s) and modules."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, StubServer() as server:
        inputs = Path(folder, "inputs")
        words = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", DEMOS, "--output_path", str(inputs)]
        if (ended := run_child(["-m", "lmms_eval", *words])).exit_code not in ALLOWED_EXIT_CODES:
            raise SystemExit(f"the run ended with code {ended.exit_code}: {ended.output}")
        shutil.copytree(TASKS / "milebench" / "demo", inputs / "data")
        for name, arguments in SCRIPTS.items():
            stated = arguments.format(**{"in": inputs, "tasks": TASKS, "url": server.url})
            noted = [
                begun([str(TASKS / name), *stated.split()], Path(folder), {"STARTUP_INPUTS": str(inputs)})
                for _ in range(runs + 1)
            ]
            found[f"script {name}"] = medians(noted)
    return found


def begun(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Sequence[float]:
    """Run a module or script, and return the figures that it notes (see ``UNTIL``)."""
    note = folder / "note"
    note.unlink(missing_ok=True)
    ended = run_child(["-c", UNTIL, *words], {"LMMS_EVAL_PACKS": "/nowhere", "STARTUP_NOTE": str(note), **environment})
    if ended.exit_code not in ALLOWED_EXIT_CODES or not note.exists():
        raise SystemExit(f"{words[0]} ended with code {ended.exit_code}: {ended.output}")
    at, *others = map(float, note.read_text().split())
    return [at - ended.started_at, *others]


def medians(noted: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the medians of what was noted, without the first time."""
    names = ("wall_s", "cpu_s", "modules", "all_modules")
    return {name: statistics.median(values) for name, values in zip(names, zip(*noted[1:], strict=True), strict=True)}


if __name__ == "__main__":
    main()
