"""``lmms-eval judge``: draws judged answers for people to score, and finds out whether a judge has drifted."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import add_media_flags, add_verbosity, command_parser, run_action
from lmms_eval.cli.commands import Action
from lmms_eval.cli.output import complain, emit
from lmms_eval.config.options import options
from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from lmms_eval.results.human import LabelPlan
    from lmms_eval.results.run import Run

_FORMS = ("csv", "xlsx", "html")
_JUDGE_OPTIONS = ("judge_model", "judge_base_url", "judge_args", "judge_retries", "launcher_args")
DRIFTED = 4
"""Exit code if the judge has drifted, as of a gate whose score fell."""


def run(arguments: Sequence[str]) -> int:
    return run_action("judge", ACTIONS, arguments, logless=("plan", "anchors"))


def _plan(arguments: Sequence[str]) -> int:
    parser = command_parser("judge plan", "draw judged answers for people to score, as a table to fill")
    parser.add_argument(
        "run", metavar="RUN", help="judged run: output folder, results file, FOLDER/STAMP, samples file, or .runs/KEY"
    )
    parser.add_argument("--labels", type=int, required=True, metavar="N", help="how many answers people will score")
    parser.add_argument("--task", default="", metavar="TASK", help="the judged task, if the run has several")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed of the drawing; default: %(default)s"
    )
    parser.add_argument(
        "--csv",
        type=Path,
        metavar="FILE",
        help="write the table as CSV; default, if no other form is given: labels_TASK.csv",
    )
    parser.add_argument("--xlsx", type=Path, metavar="FILE", help="write the table as a workbook")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page on which people score the answers, and save the CSV"
    )
    add_media_flags(parser)
    given = parser.read(arguments)
    places: dict[str, Path] = {form: path for form in _FORMS if (path := getattr(given, form)) is not None}
    for form, path in places.items():
        if path.suffix.lower() != f".{form}":
            raise UsageError(f"judge plan: --{form} {path}: end the name with .{form}")
    from lmms_eval.results.human import check_free, plan_labels, write_plan
    from lmms_eval.results.run import load

    found = load(given.run)
    for note in found.notes:
        complain(note)
    plan = plan_labels(found, given.labels, given.task, given.seed)
    places = places or {"csv": Path(f"labels_{plan.task.replace('/', '_')}.csv")}
    for path in places.values():
        check_free(path)
    for form, path in places.items():
        if form == "html":
            _write_page(plan, found, path, given)
        else:
            write_plan(plan, path)
        emit(f"{path}: {plan.line}, seed {given.seed}")
    how = (
        f"Fill the column score in the units of the judge's scores (here {plan.within}) and keep all rows"
        if places.keys() - {"html"}
        else "Open the page in a browser, score the answers and save the CSV"
    )
    emit(f"{how}, then: lmms-eval score {given.run} --human_scores FILE")
    return 0


def _write_page(plan: LabelPlan, run: Run, path: Path, given: Namespace) -> None:
    from lmms_eval.viewer.labels import write_label_page

    written = write_label_page(plan, run, path, "none" if given.no_media else given.media, given.allow_path)
    if written.missing_media:
        complain(f"{written.missing_media} pictures, videos or sounds are not shown: the page says why")


def _anchors(arguments: Sequence[str]) -> int:
    parser = command_parser("judge anchors", "write judged answers to a file, to judge them again later")
    parser.add_argument(
        "run", metavar="RUN", help="judged run: output folder, results file, FOLDER/STAMP, samples file, or .runs/KEY"
    )
    parser.add_argument("--items", type=int, required=True, metavar="N", help="how many answers to draw")
    parser.add_argument("--out", type=Path, metavar="FILE", help="file to write; default: anchors_TASK.json")
    parser.add_argument("--task", default="", metavar="TASK", help="the judged task, if the run has several")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed of the drawing; default: %(default)s"
    )
    given = parser.read(arguments)
    from lmms_eval.evaluation.judge_anchors import draw_anchors, write_anchors
    from lmms_eval.results.run import load

    found = load(given.run)
    for note in found.notes:
        complain(note)
    anchors = draw_anchors(found, given.items, given.task, given.seed)
    path = given.out or Path(f"anchors_{anchors.task.replace('/', '_')}.json")
    write_anchors(anchors, path)
    emit(f"{path}: {len(anchors.items)} answers of {anchors.task} with the scores of {anchors.judge}, drawn at random")
    emit(f"To judge them again: lmms-eval judge check {path}")
    return 0


def _check(arguments: Sequence[str]) -> int:
    parser = command_parser("judge check", "judge the answers of a file again, and say whether the judge has drifted")
    parser.add_argument("file", type=Path, metavar="FILE", help="file that lmms-eval judge anchors wrote")
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="X", help="significance level of the test; default: %(default)s"
    )
    parser.add_argument(
        "--margin",
        type=float,
        default=0.0,
        metavar="X",
        help="largest shift of the mean score that is no drift; default: %(default)s",
    )
    texts = {one.name: one.text for one in options() if one.name in _JUDGE_OPTIONS}
    for name in _JUDGE_OPTIONS:
        parser.add_argument(f"--{name}", metavar="VALUE", help=f"{texts[name]}; default: as recorded")
    add_verbosity(parser)
    given = parser.read(arguments)
    if not 0 < given.alpha < 1:
        raise UsageError(f"judge check: --alpha {given.alpha:g}: give a number between 0 and 1")
    if not 0 <= given.margin < math.inf:
        raise UsageError(f"judge check: --margin {given.margin:g}: give a number from 0 on")
    from lmms_eval.evaluation.judge_anchors import check_anchors

    judge = {name: value for name in _JUDGE_OPTIONS if (value := getattr(given, name)) is not None}
    drift = check_anchors(given.file, judge, given.alpha, given.margin)
    emit(drift.lines)
    return DRIFTED if drift.has_drifted else 0


ACTIONS: Mapping[str, Action] = {"plan": _plan, "anchors": _anchors, "check": _check}
