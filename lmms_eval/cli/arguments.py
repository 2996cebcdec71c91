"""A parser for subcommands that reports mistakes as ``UsageError``."""

from __future__ import annotations

import argparse
from typing import NoReturn

from lmms_eval.config.options import LEVELS
from lmms_eval.errors import UsageError


class CommandParser(argparse.ArgumentParser):
    """Raises ``UsageError`` for a wrong command line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message.removeprefix('argument ')}; see {self.prog} --help")


def command_parser(name: str, description: str) -> CommandParser:
    """The parser of ``lmms-eval NAME``."""
    return CommandParser(prog=f"lmms-eval {name}", description=description, allow_abbrev=False)


def add_catalogue_flags(parser: CommandParser, verbosity: str = "WARNING") -> None:
    """The flags of commands that read the task catalogue."""
    parser.add_argument("--include-path", "--include_path", metavar="DIR", help="folder with more task YAML files")
    parser.add_argument("--verbosity", default=verbosity, type=str.upper, choices=LEVELS, metavar="LEVEL")
