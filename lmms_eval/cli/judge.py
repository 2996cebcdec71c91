"""``lmms-eval judge``: draws judged answers for people to score."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import add_media_flags, command_parser, run_action
from lmms_eval.cli.commands import Action
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from lmms_eval.results.human import LabelPlan
    from lmms_eval.results.run import Run

_FORMS = ("csv", "xlsx", "html")


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
    parser.add_argument("--csv", type=Path, metavar="FILE", help="default, without another: labels_TASK.csv")
    parser.add_argument("--xlsx", type=Path, metavar="FILE")
    parser.add_argument("--html", type=Path, metavar="FILE", help="a page to score them on, which saves the CSV")
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


ACTIONS: Mapping[str, Action] = {"plan": _plan}
