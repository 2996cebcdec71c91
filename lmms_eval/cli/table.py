"""``lmms-eval table``: runs and tasks as a table for a paper."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import CommandParser, add_verbosity, command_parser
from lmms_eval.cli.files import STANDARD_OUTPUT, check_files, stated_files, write_files
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.arguments import comma_list

if TYPE_CHECKING:
    from lmms_eval.exchange.score_table import ScoreTable, TableOptions

FORMS = ("latex", "markdown", "csv", "html")


def run(arguments: Sequence[str]) -> int:
    given = _parser().read(arguments)
    printed = [form for form in FORMS if getattr(given, form) == STANDARD_OUTPUT]
    if len(printed) > 1:
        raise UsageError(f"--{' and --'.join(printed)} would both be printed: name a file for one of them")
    files = stated_files(given, FORMS, FORMS)
    check_files(files, (), given.runs)
    options = _options(given)
    from lmms_eval.exchange import table_forms
    from lmms_eval.exchange.score_table import score_table

    made = score_table(given.runs, options)
    table = made.turned() if given.rows == "tasks" else made
    makers: dict[str, Callable[[ScoreTable], str]] = {
        "latex": table_forms.latex,
        "markdown": table_forms.markdown,
        "csv": table_forms.csv_lines,
        "html": table_forms.html,
    }
    if files:
        write_files({file: [makers[form](table)] for form, file in files.items()})
        complain(f"written: {', '.join(files.values())}")
    if printed or not files:
        emit(makers[printed[0] if printed else "markdown"](table).rstrip("\n"))
    return 0


def _parser() -> CommandParser:
    parser = command_parser("table")
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="run or runs: output folder, results or samples file, or a file of another harness",
    )
    parser.add_argument(
        "--tasks", default="", metavar="TASK[,TASK]", help="tasks and groups to show, in this order; default: all"
    )
    parser.add_argument(
        "--metric",
        default="",
        metavar="METRIC[,METRIC]",
        help="metrics to show; all: every metric; default: each task's first",
    )
    parser.add_argument(
        "--rows",
        default="runs",
        choices=("runs", "tasks"),
        help="give each run or each task a row; default: %(default)s",
    )
    parser.add_argument("--names", default="", metavar="NAME[,NAME]", help="names for the runs, in their order")
    around = parser.add_mutually_exclusive_group()
    around.add_argument(
        "--ci",
        dest="uncertainty",
        action="store_const",
        const="ci",
        default="ci",
        help="show 95 %% intervals (default)",
    )
    around.add_argument(
        "--se", dest="uncertainty", action="store_const", const="se", help="show standard errors instead of intervals"
    )
    around.add_argument(
        "--none",
        dest="uncertainty",
        action="store_const",
        const="none",
        help="show neither intervals nor standard errors",
    )
    parser.add_argument(
        "--bold",
        default="best",
        choices=("best", "significant", "none"),
        help="which numbers are bold: the best of a column, those better than all others, none; default: %(default)s",
    )
    parser.add_argument(
        "--published",
        nargs="?",
        const="",
        metavar="MODEL[,MODEL]",
        help="add rows of published numbers of these models; without a name, of the runs' models",
    )
    parser.add_argument("--digits", type=int, metavar="N", help="number of decimals; default: 1 for percentages")
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="X", help="significance level of the marks; default: %(default)s"
    )
    for form, name in zip(FORMS, ("LaTeX", "Markdown", "CSV", "HTML"), strict=True):
        parser.add_argument(
            f"--{form}",
            nargs="?",
            const=STANDARD_OUTPUT,
            metavar="FILE",
            help=f"write the table as {name}; - or no FILE: print it",
        )
    add_verbosity(parser)
    return parser


def _options(given: Namespace) -> TableOptions:
    from lmms_eval.compare.verdicts import CompareOptions
    from lmms_eval.exchange.score_table import TableOptions
    from lmms_eval.exchange.table_numbers import ColumnChoice

    CompareOptions(alpha=given.alpha)
    return TableOptions(
        choice=ColumnChoice(tuple(comma_list(given.tasks)), tuple(comma_list(given.metric))),
        uncertainty=given.uncertainty,
        bold=given.bold,
        published=None if given.published is None else tuple(comma_list(given.published)),
        decimals=given.digits,
        names=tuple(comma_list(given.names)),
        alpha=given.alpha,
    )
