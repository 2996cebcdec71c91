"""``lmms-eval compare``: compares runs of any origin."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lmms_eval.cli.arguments import add_verbosity, command_parser
from lmms_eval.cli.files import STANDARD_OUTPUT, Content, check_files, stated_files, write_files
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.arguments import comma_list

if TYPE_CHECKING:
    from lmms_eval.compare.matching import MatchedPair
    from lmms_eval.compare.suspects import Suspects
    from lmms_eval.compare.verdicts import CompareOptions, Comparison

_FILES = ("plot", "json", "csv", "markdown", "latex", "flips", "suspects")
_PRINTED = ("json", "latex")
"""Options whose content is printed in place of the table if they are ``-``."""
_PICTURES = (".pdf", ".svg", ".png")
_MOST_FLIP_LINES = 6


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("compare")
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="run to compare: output folder, results or samples file, or a file of another harness",
    )
    parser.add_argument(
        "--tasks", default="", metavar="TASK[,TASK]", help="tasks to compare; default: all that the runs share"
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="A=B",
        help="treat task B of one run as task A of the other; repeatable",
    )
    parser.add_argument(
        "--metric",
        default="",
        metavar="METRIC[,A=B]",
        help="metrics to compare; A=B treats metric B of one run as metric A of the other; default: all",
    )
    parser.add_argument(
        "--by",
        default="",
        metavar="COLUMN[,COLUMN]",
        help="metadata columns; also compare the documents of each of their values",
    )
    parser.add_argument(
        "--reference", default="", metavar="RUN", help="compare the other runs with this one, instead of every pair"
    )
    parser.add_argument(
        "--anchors",
        default="",
        metavar="RUN[,RUN]",
        help="earlier runs whose scores narrow the difference between a run that stopped early and a whole one",
    )
    parser.add_argument(
        "--margin",
        type=float,
        metavar="X",
        help="smallest difference that matters, in units of the score (from 0 to 1: 0.01 is one point of 100)",
    )
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="X", help="significance level; default: %(default)s"
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=10_000,
        metavar="N",
        help="resamplings for intervals without a formula; default: %(default)s",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="random seed of the resamplings; default: %(default)s",
    )
    parser.add_argument("--json", metavar="FILE", help="write the comparison as JSON; -: print it instead of the table")
    parser.add_argument("--csv", metavar="FILE", help="write the table as CSV")
    parser.add_argument("--markdown", metavar="FILE", help="write the table as Markdown")
    parser.add_argument(
        "--latex",
        nargs="?",
        const=STANDARD_OUTPUT,
        metavar="FILE",
        help="write the table as LaTeX; - or no FILE: print it instead of the table",
    )
    parser.add_argument(
        "--flips", metavar="FILE", help="write the documents whose score changed, largest changes first (JSONL)"
    )
    parser.add_argument(
        "--suspects",
        metavar="FILE",
        help="write the documents whose reference answer may be wrong (CSV); needs four or more runs",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.pdf|svg|png",
        help="draw the differences with their intervals (forest plot; needs matplotlib)",
    )
    add_verbosity(parser)
    given = parser.read(arguments)
    files = _files(given)
    options = _options(given)
    from lmms_eval.compare.anchored import refuse_useless
    from lmms_eval.compare.comparing import compare_pairs_of, refuse_without_intervals
    from lmms_eval.compare.matching import match_runs
    from lmms_eval.compare.readers import read_runs
    from lmms_eval.compare.suspects import find_suspects, suspect_lines

    read = read_runs([*given.runs, *comma_list(given.anchors)])
    runs, anchors = read[: len(given.runs)], read[len(given.runs) :]
    pairs = match_runs(runs, options)
    refuse_useless(anchors, pairs)
    options = replace(options, anchors=anchors)
    suspects = find_suspects(pairs) if given.suspects is not None else []
    comparison = compare_pairs_of(pairs, [run.name for run in runs], options)
    refuse_without_intervals(comparison, pairs)
    if files:
        write_files(_contents(files, comparison, pairs, suspects))
        complain(f"written: {', '.join(files.values())}")
    if given.json == STANDARD_OUTPUT:
        from lmms_eval.compare.table import comparison_json

        emit(comparison_json(comparison).rstrip("\n"))
    elif given.latex == STANDARD_OUTPUT:
        from lmms_eval.compare.table import comparison_latex

        emit(comparison_latex(comparison).rstrip("\n"))
    else:
        from lmms_eval.compare.flips import flip_lines
        from lmms_eval.compare.table import comparison_text

        flips = list(islice(flip_lines(pairs), _MOST_FLIP_LINES + 1))
        if len(flips) > _MOST_FLIP_LINES:
            flips = ["--flips FILE lists the documents that changed"]
        emit([comparison_text(comparison), *flips, *(suspect_lines(suspects, options.alpha) if suspects else ())])
    return 0


def _options(given: Namespace) -> CompareOptions:
    from lmms_eval.compare.matching import metric_names
    from lmms_eval.compare.verdicts import CompareOptions

    for word in given.task:
        if "=" not in word:
            raise UsageError(f"--task {word}: write A=B, or --tasks {word} for this task alone")
    return CompareOptions(
        alpha=given.alpha,
        margin=given.margin,
        draws=given.draws,
        seed=given.seed,
        tasks=tuple(comma_list(given.tasks)),
        metrics=metric_names(comma_list(given.metric), "--metric"),
        task_names=metric_names(given.task, "--task"),
        by=tuple(dict.fromkeys(comma_list(given.by))),
        reference=given.reference,
    )


def _files(given: Namespace) -> dict[str, str]:
    """Return the files to write by option. They are checked before anything is computed.

    Raises ``UsageError`` if a file cannot be written or would replace an input; the message names the option.
    """
    if all(getattr(given, option) == STANDARD_OUTPUT for option in _PRINTED):
        raise UsageError(f"--{' and --'.join(_PRINTED)} would both be printed: name a file for one of them")
    found = stated_files(given, _FILES, _PRINTED)
    check_files(found, (), given.runs)
    if given.plot is not None:
        from lmms_eval.plots.figure import check_available

        if Path(given.plot).suffix.lower() not in _PICTURES:
            raise UsageError(
                f"--plot {given.plot}: give a file that ends with {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]}"
            )
        check_available()
    return found


def _contents(
    files: Mapping[str, str], comparison: Comparison, pairs: Sequence[MatchedPair], suspects: Sequence[Suspects]
) -> dict[str, Content]:
    """Return the contents of the files by name. Flips are generated line by line while they are written."""
    from lmms_eval.compare.flips import flips_of
    from lmms_eval.compare.suspects import suspects_csv
    from lmms_eval.compare.table import (
        comparison_csv,
        comparison_json,
        comparison_latex,
        comparison_markdown,
        flips_json,
        forest_plot,
    )

    makers: dict[str, Callable[[str], Content]] = {
        "json": lambda _: [comparison_json(comparison)],
        "csv": lambda _: [comparison_csv(comparison)],
        "markdown": lambda _: [comparison_markdown(comparison)],
        "latex": lambda _: [comparison_latex(comparison)],
        "plot": lambda file: forest_plot(comparison, Path(file).suffix),
        "flips": lambda _: flips_json(flips_of(pairs)),
        "suspects": lambda _: suspects_csv(suspects),
    }
    return {file: makers[option](file) for option, file in files.items()}
