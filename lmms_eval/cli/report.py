"""``lmms-eval report``: runs as pages that open from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmms_eval.cli.arguments import (
    add_choice_flags,
    add_media_flags,
    add_redact_flag,
    add_verbosity,
    command_parser,
    read_choice,
)
from lmms_eval.cli.output import complain, emit

_MOST_PROBLEMS = 8


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("report")
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="DIR",
        help="run to show: output folder, results or samples file, or a file of another harness",
    )
    parser.add_argument(
        "--out", default="", metavar="FOLDER", help="folder to write; default: report (with --single_file: report.html)"
    )
    parser.add_argument("--only", choices=("failed",), metavar="failed", help="keep only samples that failed")
    add_choice_flags(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="largest number of samples of each task; default: all")
    add_media_flags(parser)
    add_redact_flag(parser)
    parser.add_argument(
        "--single_file", action="store_true", help="write one HTML file that holds everything, for small runs"
    )
    parser.add_argument(
        "--no_compare", action="store_true", help="leave out the comparison of the runs with each other"
    )
    add_verbosity(parser)
    given = parser.read(arguments)
    from lmms_eval.viewer.page import ReportOptions
    from lmms_eval.viewer.report import write_report

    options = ReportOptions(
        media="none" if given.no_media else given.media,
        only_failed=given.only == "failed",
        choice=read_choice(given),
        limit=given.limit,
        redact=frozenset(given.redact),
        allowed=tuple(given.allow_path),
        single_file=given.single_file,
        compare=not given.no_compare,
    )
    out = Path(given.out or ("report.html" if given.single_file else "report"))
    report = write_report(given.runs, out, options)
    for problem in report.problems[:_MOST_PROBLEMS]:
        complain(problem)
    if len(report.problems) > _MOST_PROBLEMS:
        complain(f"and {len(report.problems) - _MOST_PROBLEMS} more: the report's first page lists them")
    if report.missing_media:
        complain(f"{report.missing_media} pictures, videos or sounds are not shown: the samples say why")
    emit(f"{report.runs} runs, {report.samples} samples: open {report.page}")
    return 0
