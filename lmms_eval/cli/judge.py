"""``lmms-eval judge``: draws judged answers for people to score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lmms_eval.cli.arguments import command_parser, run_action
from lmms_eval.cli.commands import Action
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError


def run(arguments: Sequence[str]) -> int:
    return run_action("judge", ACTIONS, arguments, logless=("plan",))


def _plan(arguments: Sequence[str]) -> int:
    parser = command_parser("judge plan", "draw judged answers for people to score, as a table to fill")
    parser.add_argument(
        "run", metavar="RUN", help="output folder, results file (or FOLDER/STAMP), samples file, .runs/KEY"
    )
    parser.add_argument("--labels", type=int, required=True, metavar="N", help="how many answers people will score")
    parser.add_argument("--task", default="", metavar="TASK", help="the judged task, if the run has several")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="default, without --xlsx: labels_TASK.csv")
    parser.add_argument("--xlsx", type=Path, metavar="FILE")
    given = parser.read(arguments)
    if given.xlsx is not None and given.xlsx.suffix.lower() != ".xlsx":
        raise UsageError(f"judge plan: --xlsx {given.xlsx}: end the name with .xlsx")
    if given.csv is not None and given.csv.suffix.lower() != ".csv":
        raise UsageError(f"judge plan: --csv {given.csv}: end the name with .csv")
    from lmms_eval.results.human import plan_labels, write_plan
    from lmms_eval.results.run import load

    found = load(given.run)
    for note in found.notes:
        complain(note)
    plan = plan_labels(found, given.labels, given.task, given.seed)
    paths = [path for path in (given.csv, given.xlsx) if path is not None]
    for path in paths or [Path(f"labels_{plan.task.replace('/', '_')}.csv")]:
        write_plan(plan, path)
        emit(f"{path}: {plan.line}, seed {given.seed}")
    emit(
        f"Fill the column score in the units of the judge's scores (here {plan.within}) and keep all rows, then: "
        f"lmms-eval score {given.run} --human_scores FILE"
    )
    return 0


ACTIONS: Mapping[str, Action] = {"plan": _plan}
