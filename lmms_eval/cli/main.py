"""Dispatch of the command line, and what a command's errors end with."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from lmms_eval.cli.ending import end
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.utils.redaction import learn_secrets

SUBCOMMANDS = {
    "eval": "evaluate a model on tasks (also without the word: lmms-eval --model ...)",
    "tasks": "list tasks, groups, subtasks or tags",
    "models": "list models",
    "power": "how many documents a comparison needs",
    "score": "score or judge a finished run again",
    "cache": "look into, prune or check a response cache",
    "megabench": "score MEGA-Bench submissions, derive the leaderboard's numbers",
    "milebench": "score MileBench predictions, collect the scores of several models",
    "mmie": "judge a file of MMIE answers",
    "general-bench": "General-Bench result workbooks and General-Level scores",
    "fetch": "install data that scoring needs (fetch nltk)",
    "doctor": "what of this machine and installation a run would find",
    "version": "versions of lmms-eval and what it runs on",
}
LATER = {
    "ui": "web page",
    "tui": "interactive screen",
    "serve": "HTTP server",
    "mcp": "tool server for assistants",
}
_MODULES = {
    "eval": "evaluate",
    "tasks": "tasks",
    "models": "models",
    "power": "power",
    "score": "score",
    "cache": "cache",
    "megabench": "megabench",
    "milebench": "milebench",
    "mmie": "mmie",
    "general-bench": "general_bench",
    "fetch": "fetch",
    "doctor": "doctor",
    "version": "version",
}
_Run = Callable[[Sequence[str]], int]
INTERNAL_ERROR, INTERRUPTED = 1, 130
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Faults of a file system, whatever was written to it: no defect, so that no traceback would help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line to its end and return its exit code (``docs/commands.md``)."""
    code = run_command(list(sys.argv[1:] if argv is None else argv))
    end()
    return code


def run_command(arguments: list[str]) -> int:
    """``main`` without what is done at the command's end (``lmms_eval.cli.ending``)."""
    learn_secrets({"arguments": arguments}, os.environ)
    try:
        return dispatch(arguments)
    except SystemExit as stop:  # argparse after printing a subcommand's help
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place where any error becomes an exit code
        return report_error(error, shows_traceback(arguments))


def dispatch(arguments: list[str]) -> int:
    """Choose the command by the words given.

    Raises:
        UsageError: an unknown command, or one of a later version.
    """
    if not arguments:
        emit(banner())
        return 0
    if arguments in (["--help"], ["-h"]):
        from lmms_eval.cli.help import top_level_help

        emit(top_level_help())
        return 0
    if arguments == ["--version"]:
        return _command("version")([])
    if "--tui" in arguments:
        raise UsageError("--tui: not in this version")
    if arguments == ["eval"]:
        raise UsageError("the evaluation wizard is not in this version; give flags, see lmms-eval eval --help")
    if arguments[0].startswith("-"):
        return _command("eval")(arguments)
    return _subcommand(arguments[0])(arguments[1:])


def report_error(error: Exception, with_traceback: bool, place: str = "") -> int:
    """Print an error to standard error and return the exit code that it stands for."""
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        place = f"process {os.environ.get('RANK', '?')}: {place}"
    if isinstance(error, LmmsEvalError):
        if with_traceback:
            complain("".join(traceback.format_exception(error)).rstrip())
        complain(f"error: {place}{error}")
        return error.exit_code
    if isinstance(error, OSError) and error.errno in _DISK:
        complain(
            f"error: {place}{error.filename or 'a file'} cannot be written: {error.strerror}; what was finished before "
            "is kept: make room and start the same command again"
        )
        return INTERNAL_ERROR
    complain("".join(traceback.format_exception(error)).rstrip())
    complain(f"error: {place}internal error: {type(error).__name__}: {error}")
    return INTERNAL_ERROR


def shows_traceback(arguments: Sequence[str]) -> bool:
    """Whether ``--verbosity DEBUG`` (or finer) is in force, by the command line or the environment."""
    level = os.environ.get("VERBOSITY", "")
    for position, word in enumerate(arguments):
        if word == "--verbosity":
            level = arguments[position + 1] if position + 1 < len(arguments) else ""
        elif word.startswith("--verbosity="):
            level = word.partition("=")[2]
    return level.upper() in ("DEBUG", "TRACE")


def banner() -> list[str]:
    """The box that stands for a command line without arguments."""
    rows = ["lmms-eval: evaluation of large multimodal models", ""]
    column = max(map(len, (*SUBCOMMANDS, *LATER))) + 2
    rows += [f"  {name:<{column}}{text}" for name, text in SUBCOMMANDS.items()]
    rows += [f"  {name:<{column}}{text} (not in this version)" for name, text in LATER.items()]
    rows += ["", "lmms-eval --help lists all flags"]
    width = max(map(len, rows))
    edge = "+" + "-" * (width + 2) + "+"
    return [edge, *(f"| {row:<{width}} |" for row in rows), edge]


def _subcommand(word: str) -> _Run:
    if word in LATER:
        raise UsageError(f"{word}: not in this version")
    if word not in _MODULES:
        close = difflib.get_close_matches(word, SUBCOMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"commands: {', '.join(SUBCOMMANDS)}"
        raise UsageError(f"unknown command {word!r}; {hint}")
    return _command(word)


def _command(name: str) -> _Run:
    run: _Run = importlib.import_module(f"lmms_eval.cli.{_MODULES[name]}").run
    return run
