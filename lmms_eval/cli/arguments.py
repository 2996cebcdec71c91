"""Parsers and flags that subcommands share."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct, field

from lmms_eval.cli.commands import COMMANDS, Action, Command
from lmms_eval.config.options import LEVELS, environment_defaults, options
from lmms_eval.errors import UsageError
from lmms_eval.utils.arguments import comma_list

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from lmms_eval.config import RunConfig
    from lmms_eval.results.run import Choice, Run
    from lmms_eval.tasks.catalogue import Catalogue


_asked: list[CommandParser] | None = None
"""If set, parsers are collected here instead of printing their help."""


_UNKNOWN = "unrecognized arguments: "
"""Begin of argparse's message about words that it does not know."""


class CommandParser(argparse.ArgumentParser):
    """Parser that raises ``UsageError`` for a wrong command line."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        if _asked is None:
            super().print_help(file)
        else:
            _asked.append(self)

    def read(self, words: Sequence[str]) -> Namespace:
        """Parse the words after the command, and log from ``--verbosity`` on if the command has this flag."""
        given = self.parse_args(list(words))
        if "verbosity" in given:
            from lmms_eval.utils.logging import configure_logging

            configure_logging(given.verbosity)
        return given

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ") + self._nearest_flag(message)
        raise UsageError(f"{self.prog}: {message}; see {self.prog} --help")

    def _nearest_flag(self, message: str) -> str:
        """Return a hint for a message of argparse about an unknown flag; empty if no flag resembles it."""
        import difflib

        words = message.removeprefix(_UNKNOWN).split()
        if not message.startswith(_UNKNOWN) or not words[0].startswith("-"):
            return ""
        close = difflib.get_close_matches(words[0].partition("=")[0], self._option_string_actions, n=1)
        return f"; did you mean {close[0]}?" if close else ""


def command_parser(name: str, description: str = "") -> CommandParser:
    """Return the parser of ``lmms-eval NAME``. The default description comes from the table of commands."""
    text = description or COMMANDS[name].text
    return CommandParser(prog=f"lmms-eval {name}", description=text, allow_abbrev=False)


def parsers_asked_for_help(command: Command, words: Sequence[str]) -> list[CommandParser]:
    """Return the parsers for the help of ``lmms-eval COMMAND WORDS --help``; empty if the command has no parser."""
    global _asked
    found: list[CommandParser] = []
    _asked = found
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # drop the help of commands that print their own
            command.run([*words, "--help"])
    except (SystemExit, UsageError):  # the end of a help, or a word that is not an action
        pass
    finally:
        _asked = None
    return found


def run_action(name: str, actions: Mapping[str, Action], words: Sequence[str], logless: Collection[str] = ()) -> int:
    """Run ``lmms-eval NAME ACTION ...``.

    ``logless`` actions log nothing and skip the logger, whose import takes as long as their work. Raises ``UsageError``
    if the action is missing or unknown.
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
    parser.add_argument(
        "--include-path",
        "--include_path",
        action="append",
        default=[],
        metavar="DIR",
        help="folder with more task YAML files; repeatable",
    )
    parser.add_argument(
        "--pack_first", "--pack-first", action="store_true",
        help="if a pack and this package share a name, take the pack's",
    )  # fmt: skip
    add_plugins_flag(parser)
    add_verbosity(parser, verbosity)


def add_verbosity(parser: CommandParser, default: str = "WARNING") -> None:
    """Add ``--verbosity``."""
    parser.add_argument("--verbosity", default=default, type=str.upper, choices=LEVELS, metavar="LEVEL")


def add_media_flags(parser: CommandParser) -> None:
    """Add the flags of commands that show the media of samples."""
    media = parser.add_mutually_exclusive_group()
    media.add_argument(
        "--media",
        default="thumbnails",
        choices=("thumbnails", "full"),
        metavar="KIND",
        help="media to include: thumbnails, or full for the original pictures too; default: %(default)s",
    )
    media.add_argument("--no_media", action="store_true", help="leave out pictures, frames and sounds")
    parser.add_argument(
        "--allow_path", action="append", default=[], type=Path, metavar="FOLDER",
        help="folder whose media may be shown for runs that have not recorded them; repeatable",
    )  # fmt: skip


def add_redact_flag(parser: CommandParser) -> None:
    """Add ``--redact``."""
    parser.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="KEY",
        help="key of the samples whose values are left out; repeatable",
    )


def add_choice_flags(parser: CommandParser) -> None:
    """Add ``--ids`` and ``--where``."""
    parser.add_argument(
        "--ids", metavar="FILE|N,N-N", help="documents to keep: numbers and ranges, TASK:1,2;TASK2:5, or a file of them"
    )
    parser.add_argument(
        "--where", metavar="EXPRESSION", help="keep only samples that match, such as \"topic == 'art' and score < 1\""
    )


def choice_of(given: Namespace, run: Run) -> Choice:
    """Read and check ``--ids`` and ``--where``. Raises ``UsageError`` for a mistake or an unknown column."""
    choice = read_choice(given)
    if choice.where is not None:
        run.check(choice.where)
    return choice


def read_choice(given: Namespace) -> Choice:
    """Read ``--ids`` and ``--where`` without checking the columns. Raises ``UsageError`` for a mistake."""
    from lmms_eval.results.run import Choice
    from lmms_eval.utils.document_ids import ids_text, parse_ids
    from lmms_eval.utils.where import parse_where

    ids = None if given.ids is None else parse_ids(ids_text(given.ids))
    return Choice(ids, None if given.where is None else parse_where(given.where))


class TaskSources(Struct, frozen=True):
    """Sources of tasks in addition to the built-in ones."""

    include_paths: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    data_root: str | None = None
    run_options: Mapping[str, str] = field(default_factory=dict)
    """Options that tasks may ask for."""
    pack_first: bool = False

    @classmethod
    def of_config(cls, config: RunConfig) -> TaskSources:
        return cls(
            config.include_paths, config.names("plugins"), config.data_root, config.for_tasks(), config.pack_first
        )  # fmt: skip

    @classmethod
    def of_flags(cls, given: argparse.Namespace) -> TaskSources:
        """Read ``--include-path`` and ``--plugins`` of subcommands. Task options come from the environment."""
        defaults = environment_defaults(os.environ)
        stated = {one.name: defaults[one.name].text for one in options() if one.for_tasks and one.name in defaults}
        return cls(
            tuple(given.include_path), plugins_of(given), run_options=stated, pack_first=given.pack_first
        )  # fmt: skip

    def open(self) -> Catalogue:
        """Open the catalogue of tasks. Raises ``UsageError`` if a folder or package does not exist."""
        from lmms_eval.tasks.catalogue import Catalogue

        return Catalogue(self.include_paths, self.plugins, pack_first=self.pack_first)


def add_plugins_flag(parser: CommandParser) -> None:
    """Add ``--plugins``."""
    parser.add_argument(
        "--plugins", metavar="NAME,NAME", help="packages with models and tasks, or files and folders with models"
    )


def plugins_of(given: Namespace) -> tuple[str, ...]:
    """Return the plugins of ``--plugins``, by default those of ``LMMS_EVAL_PLUGINS``."""
    return plugins_of_environment() if given.plugins is None else comma_list(given.plugins)


def plugins_of_environment() -> tuple[str, ...]:
    """Return the packages that ``LMMS_EVAL_PLUGINS`` names."""
    found = environment_defaults(os.environ).get("plugins")
    return comma_list(found.text if found else None)
