"""``lmms-eval general-bench run`` (what ``run.sh`` calls): predictions, scores, levels; ``tasks``: a folder's tasks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from lmms_eval.cli import evaluate
from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.names import model_name_from_args, sanitize_model_name

STEPS = "123"
USAGE = 2
Step = Callable[[Sequence[str]], int]


def run_steps(words: Sequence[str], register: Step, rank: Step) -> int:
    """Run the steps whose digit stands in ``--step``; the exit code is the first that is not 0.

    A step that ends with samples that failed or were not evaluated is followed by the next one; a wrong command line
    and an interruption end it.

    Raises:
        UsageError: a step that there is not, or step 1 without a model.
    """
    parser = command_parser(
        "general-bench run",
        "1: ask a model and write prediction.json beside each annotation; 2: score (register); 3: levels (rank)",
    )
    add = parser.add_argument
    add("--step", default=STEPS, metavar="N", help="digits of the steps to run: 1, 12, 23, ... (123)")
    add("--model", metavar="NAME", help="back end that answers (step 1)")
    add("--model_args", "--model-args", default="", metavar="K=V,...", help="its arguments")
    add("--dataset", type=Path, default=Path("General-Bench-Openset"), metavar="DIR", help="(General-Bench-Openset)")
    add("--tasks", default="general_bench", metavar="NAMES", help="which tasks are asked (general_bench)")
    add("--name", metavar="NAME", help="of the model's column and files (the model's)")
    add("-p", "--prediction", default="prediction.json", metavar="FILE", help="name of the predictions' files")
    add("--output", type=Path, default=Path("outcome"), metavar="DIR", help="(outcome)")
    add("--profile", choices=("paper", "reference"), default="paper", help="of steps 2 and 3 (paper)")
    add("--task_kwargs", "--task-kwargs", default="", metavar="K=V,...", help="options of the tasks, for steps 1 and 2")
    add("--judge_model", "--judge-model", metavar="NAME", help="judge of the one judged metric, for steps 1 and 2")
    add("--judge_base_url", "--judge-base-url", metavar="URL", help="the judge's server")
    add("--judge_args", "--judge-args", metavar="K=V,...", help="further arguments of its back end")
    given, further = parser.parse_known_args(list(words))
    if not given.step or set(given.step) - set(STEPS):
        raise UsageError(f"--step {given.step}: give digits of steps: 1 (predictions), 2 (scores), 3 (levels)")
    if "1" not in given.step and further:
        raise UsageError(f"{' '.join(further)}: further options go to step 1 (lmms-eval eval), which is not run")
    if "1" in given.step and not given.model:
        raise UsageError("step 1 needs a model: --model NAME --model_args K=V,...; or leave it out: --step 23")
    name = given.name or model_name_from_args(given.model_args) or given.model
    if not name:
        raise UsageError("give the model's name with --name NAME: it names the column and the files")
    steps: dict[str, Callable[[], int]] = {
        "1": lambda: evaluate.run([*_evaluation(given), *further]),
        "2": lambda: register(_registering(given, name)),
        "3": lambda: rank(_ranking(given, name)),
    }
    codes = []
    for digit in STEPS:
        if digit in given.step:
            complain(f"step {digit}")
            codes.append(steps[digit]())
            if codes[-1] in evaluate.STOPPED:
                break
    return next((code for code in codes if code), 0)


def _evaluation(given: argparse.Namespace) -> list[str]:
    options = ",".join(filter(None, [f"predictions=beside,prediction_name={given.prediction}", given.task_kwargs]))
    words = ["--model", given.model, "--tasks", given.tasks, "--data_root", str(given.dataset)]
    words += ["--task_kwargs", options, "--output_path", str(given.output / "runs")]
    if given.model_args:
        words += ["--model_args", given.model_args]
    return [*words, *_judging(given)]


def _judging(given: argparse.Namespace) -> list[str]:
    stated = ("--judge_model", given.judge_model), ("--judge_base_url", given.judge_base_url)
    return [word for pair in (*stated, ("--judge_args", given.judge_args)) if pair[1] for word in pair]


def _registering(given: argparse.Namespace, name: str) -> list[str]:
    words = ["-d", str(given.dataset), "-o", str(given.output), "-m", name, "--profile", given.profile]
    words += ["-p", given.prediction]
    if given.task_kwargs:
        words += ["--task_kwargs", given.task_kwargs]
    return [*words, *_judging(given)]


def _ranking(given: argparse.Namespace, name: str) -> list[str]:
    workbook = given.output / f"{sanitize_model_name(name, full_path=True)}_result.xlsx"
    return ["-p", str(workbook), "-m", name, "--profile", given.profile, "--picture"]


def list_tasks(words: Sequence[str]) -> int:
    """A line for each task's folder: its task, what it is scored by; then what does not fit."""
    parser = command_parser("general-bench tasks", "what a data set's folder holds")
    parser.add_argument(
        "-d", "--dataset", type=Path, default=Path("General-Bench-Openset"), metavar="DIR",
        help="(General-Bench-Openset)",
    )  # fmt: skip
    parser.add_argument("--subset", choices=("open", "closed"), help="where both sets are there (the open one)")
    given = parser.parse_args(list(words))

    from lmms_eval.tasks.general_bench.data.scanning import match, scan
    from lmms_eval.utils.markdown import Column, markdown_table

    found = scan(given.dataset)
    matched = match(found, given.subset)
    problems = (*found.problems, *matched.problems)
    rows = [
        (f"general_bench_{facts.id}", folder.path.relative_to(given.dataset).as_posix(), facts.spelling, facts.needs)
        for facts, folder in sorted(matched.folders.items(), key=lambda pair: pair[0].id)
    ]
    if rows:
        headings = ("task", "folder", "metric", "needs")
        columns = zip(headings, zip(*rows, strict=True), strict=True)
        emit(markdown_table([Column(name, tuple(cells), True) for name, cells in columns]).rstrip("\n"))
    for problem in problems:
        complain(f"error: {problem}")
    return USAGE if problems or not rows else 0


def list_metrics(words: Sequence[str]) -> int:
    """The table of metrics, as Markdown."""
    command_parser("general-bench metrics", "what computes each metric, and what that needs").parse_args(list(words))

    from lmms_eval.tasks.general_bench.measures.table import markdown

    emit(markdown().rstrip("\n"))
    return 0
