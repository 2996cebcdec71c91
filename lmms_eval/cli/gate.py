"""``lmms-eval gate``: may this run replace that one? By a policy, for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import LmmsEvalError, UsageError

EXIT_CODES = {"held": 0, "fell": 4, "cannot tell": 5}
_FILES = ("junit", "markdown", "json")
STANDARD_OUTPUT = "-"


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("gate")
    parser.add_argument("--policy", required=True, metavar="FILE", help="YAML: tasks, metric, margin, alpha, ...")
    parser.add_argument("run", metavar="RUN", help="output folder, results or samples file, foreign file")
    parser.add_argument("base", metavar="BASE", help="what it is held against")
    parser.add_argument("--junit", metavar="FILE", help="JUnit XML")
    parser.add_argument("--markdown", metavar="FILE", help="summary; $GITHUB_STEP_SUMMARY takes it")
    parser.add_argument("--json", metavar="FILE", help="- prints it instead of the table")
    from lmms_eval.config.options import LEVELS

    parser.add_argument("--verbosity", default="WARNING", type=str.upper, choices=LEVELS, metavar="LEVEL")
    given = parser.parse_args(list(arguments))
    files = {option: getattr(given, option) for option in _FILES if getattr(given, option) is not None}
    _check_files(files, (given.policy, given.run, given.base))
    from lmms_eval.utils.logging import configure_logging

    configure_logging(given.verbosity)
    from lmms_eval.compare.policy import read_policy

    policy = read_policy(Path(given.policy))
    from lmms_eval.compare.gate import check_gate
    from lmms_eval.compare.gate_files import gate_json, gate_junit, gate_markdown, gate_table, headline
    from lmms_eval.compare.readers import read_runs

    candidate, base = read_runs([given.run, given.base])
    result = check_gate(candidate, base, policy)
    contents = {
        "junit": lambda: gate_junit(result),
        "markdown": lambda: gate_markdown(result).encode("utf-8", "replace"),
        "json": lambda: gate_json(result).encode("utf-8", "replace"),
    }
    for option, file in files.items():
        if (option, file) != ("json", STANDARD_OUTPUT):
            _write(Path(file), contents[option]())
    if given.json == STANDARD_OUTPUT:
        emit(gate_json(result).rstrip("\n"))
        complain(headline(result))
    else:
        emit([gate_table(result).rstrip("\n"), headline(result)])
    return EXIT_CODES[result.outcome]


def _check_files(files: dict[str, str], inputs: Sequence[str]) -> None:
    """Refuse files that would overwrite an input or each other. Raises ``UsageError``."""
    taken = {Path(name).resolve(): name for name in inputs}
    for option, file in files.items():
        if (option, file) == ("json", STANDARD_OUTPUT):
            continue
        path = Path(file).resolve()
        if path in taken or path.is_dir():
            raise UsageError(f"--{option} {file}: {'a folder' if path.is_dir() else 'also ' + taken[path]}")
        taken[path] = f"--{option}"


def _write(path: Path, content: bytes) -> None:
    from lmms_eval.storage.atomic import replacing
    from lmms_eval.utils.redaction import mask_known

    try:
        with replacing(path) as file:
            file.write(mask_known(content.decode("utf-8")).encode("utf-8"))
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error
