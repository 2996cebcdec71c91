"""Parser for subcommands that reports mistakes as ``UsageError``."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from lmms_eval.cli.commands import COMMANDS, Action, Command
from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


_asked: list[CommandParser] | None = None
"""Collects parsers that are asked for help, instead of their printing it."""


class CommandParser(argparse.ArgumentParser):
    """Raises ``UsageError`` for a wrong command line."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        if _asked is None:
            super().print_help(file)
        else:
            _asked.append(self)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message.removeprefix('argument ')}; see {self.prog} --help")


def command_parser(name: str, description: str = "") -> CommandParser:
    """Return the parser of ``lmms-eval NAME``; the table of commands describes it where nothing else is given."""
    text = description or COMMANDS[name].text
    return CommandParser(prog=f"lmms-eval {name}", description=text, allow_abbrev=False)


def parsers_asked_for_help(command: Command, words: Sequence[str]) -> list[CommandParser]:
    """Return the parsers with which ``lmms-eval COMMAND WORDS --help`` would answer; none where it has its own."""
    global _asked
    found: list[CommandParser] = []
    _asked = found
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # a help of its own
            command.run([*words, "--help"])
    except (SystemExit, UsageError):  # the end of every help; an action that is no action
        pass
    finally:
        _asked = None
    return found


def run_action(name: str, actions: Mapping[str, Action], words: Sequence[str], logless: Collection[str] = ()) -> int:
    """Run ``lmms-eval NAME ACTION ...``.

    ``logless`` actions log nothing and start without the logger, whose import takes as long as their work.

    Raises:
        UsageError: no action, or an unknown one.
    """
    if not words or words[0] not in actions:
        parser = command_parser(name)
        parser.add_argument("action", choices=tuple(actions), help="each has a --help of its own")
        parser.parse_args(list(words))
    if words[0] not in logless:
        from lmms_eval.utils.logging import configure_logging

        configure_logging()
    return actions[words[0]](list(words[1:]))


def add_catalogue_flags(parser: CommandParser, verbosity: str = "WARNING") -> None:
    """Add the flags of commands that read the task catalogue."""
    from lmms_eval.config.options import LEVELS  # many commands need none of the options

    parser.add_argument(
        "--include-path",
        "--include_path",
        action="append",
        default=[],
        metavar="DIR",
        help="folder with more task YAML files; may be given several times",
    )
    parser.add_argument("--verbosity", default=verbosity, type=str.upper, choices=LEVELS, metavar="LEVEL")
