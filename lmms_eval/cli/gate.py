"""``lmms-eval gate``: decides by a policy whether one run may replace another, for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmms_eval.cli.arguments import add_verbosity, command_parser
from lmms_eval.cli.files import STANDARD_OUTPUT, check_files, stated_files, write_files
from lmms_eval.cli.output import complain, emit

EXIT_CODES = {"held": 0, "fell": 4, "cannot tell": 5}
_FILES = ("junit", "markdown", "json")


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("gate")
    parser.add_argument(
        "--policy", required=True, metavar="FILE", help="YAML file with the rules: tasks, metric, margin, alpha, ..."
    )
    parser.add_argument(
        "run", metavar="RUN", help="the new run: output folder, results or samples file, or a file of another harness"
    )
    parser.add_argument("base", metavar="BASE", help="the run that it may replace, in the same forms")
    parser.add_argument("--junit", metavar="FILE", help="write the outcome as JUnit XML, for test reports")
    parser.add_argument(
        "--markdown", metavar="FILE", help="write a summary in Markdown, such as to $GITHUB_STEP_SUMMARY"
    )
    parser.add_argument("--json", metavar="FILE", help="write the outcome as JSON; -: print it instead of the table")
    add_verbosity(parser)
    given = parser.read(arguments)
    files = stated_files(given, _FILES)
    check_files(files, (given.policy,), (given.run, given.base))
    from lmms_eval.compare.gate import read_policy

    policy = read_policy(Path(given.policy))
    from lmms_eval.compare.gate import check_gate, gate_json, gate_junit, gate_markdown, gate_table, headline
    from lmms_eval.compare.readers import read_runs

    candidate, base = read_runs([given.run, given.base])
    result = check_gate(candidate, base, policy)
    contents = {
        "junit": lambda: gate_junit(result),
        "markdown": lambda: gate_markdown(result),
        "json": lambda: gate_json(result),
    }
    write_files({file: [contents[option]()] for option, file in files.items()})
    if given.json == STANDARD_OUTPUT:
        emit(gate_json(result).rstrip("\n"))
        complain(headline(result))
    else:
        emit([gate_table(result).rstrip("\n"), *result.notes, headline(result)])
    return EXIT_CODES[result.outcome]
