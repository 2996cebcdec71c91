"""Dispatch of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.output import complain, emit, end, report_error, shows_traceback
from lmms_eval.errors import UsageError
from lmms_eval.utils.redaction import learn_secrets

if TYPE_CHECKING:
    from argparse import Namespace

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line to its end and return its exit code (``docs/commands.md``)."""
    code = run_command(list(sys.argv[1:] if argv is None else argv))
    end()
    return code


def run_command(arguments: list[str]) -> int:
    """Run one command line as ``main`` does, without the steps at its end (``lmms_eval.cli.output``)."""
    return _guarded(lambda: dispatch(arguments), arguments)


def run_namespace(options: Namespace) -> int:
    """Evaluate as ``main`` does, with options that a program has read (``lmms_eval.config.parse_options``)."""
    from lmms_eval.config import flags_of, stated_options

    given = stated_options(options)
    arguments = flags_of(given)
    if not given:
        return complain_of_no_flags()
    if given.get("tui"):
        code = run_command(arguments)
    else:
        from lmms_eval.cli.evaluate import run_options

        code = _guarded(lambda: run_options(given, arguments), arguments)
    end()
    return code


def _guarded(step: Callable[[], int], arguments: list[str]) -> int:
    """Run a step. Every exception is reported and becomes an exit code."""
    learn_secrets({"arguments": arguments}, os.environ)
    try:
        return step()
    except SystemExit as stop:  # argparse after printing a subcommand's help
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place where any error becomes an exit code
        return report_error(error, shows_traceback(arguments))


def dispatch(arguments: list[str]) -> int:
    """Run the command that the words name.

    Raises ``UsageError`` if the command is unknown, or one of its words is wrong.
    """
    if not arguments:
        emit(banner())
        return 0
    if arguments in (["--help"], ["-h"]):
        from lmms_eval.cli.help import top_level_help

        emit(top_level_help())
        return 0
    if arguments == ["--version"]:
        return COMMANDS["version"].run([])
    if os.path.expanduser("~") == "~":
        raise UsageError(
            f"there is no home folder: HOME is not set, and user {os.getuid()} has no entry in the list of users; set "
            "HOME to a folder that this user may write to"
        )
    if "--tui" in arguments:
        return COMMANDS["tui"].run(arguments)
    if arguments == ["eval"]:
        return complain_of_no_flags()
    if arguments[0].startswith("-"):
        return COMMANDS["eval"].run(arguments)
    word, *words = arguments
    if word not in COMMANDS:
        import difflib

        close = difflib.get_close_matches(word, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"commands: {', '.join(COMMANDS)}"
        raise UsageError(f"unknown command {word!r}; {hint}")
    return COMMANDS[word].run(words)


def complain_of_no_flags() -> int:
    """Print to standard error how to start an evaluation, and return the code of a usage error.

    This is the same with and without a terminal, so that a script whose flags got lost fails.
    """
    from lmms_eval.cli.help import bare_evaluation

    complain("\n".join(["error: eval: name a model with --model and tasks with --tasks", *bare_evaluation()]))
    return UsageError.exit_code


def banner() -> list[str]:
    """Return the box that is printed for a command line without arguments."""
    from lmms_eval.cli.help import FIRST_RUN

    column = max(map(len, COMMANDS)) + 2
    commands = [f"  {command.name:<{column}}{command.text}" for command in COMMANDS.values()]
    title, remark = "lmms-eval: evaluation of large multimodal models", "lmms-eval --help lists all flags"
    rows = [title, "", *commands, "", f"{FIRST_RUN.purpose}:", f"  {FIRST_RUN.line}", remark]
    width = max(map(len, rows))
    edge = "+" + "-" * (width + 2) + "+"
    return [edge, *(f"| {row:<{width}} |" for row in rows), edge]
