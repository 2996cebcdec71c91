"""Flags that choose samples of a finished run, for every command that shows or writes some."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import CommandParser

if TYPE_CHECKING:
    from lmms_eval.results.run_reader.run import Run
    from lmms_eval.results.run_reader.task import Choice


def add_choice_flags(parser: CommandParser) -> None:
    """Add ``--ids`` and ``--where``."""
    parser.add_argument("--ids", metavar="FILE|N,N-N", help="only these documents; also TASK:1,2;TASK2:5")
    parser.add_argument("--where", metavar="EXPRESSION", help="only samples that fit: \"topic == 'art' and score < 1\"")


def choice_of(given: Namespace, run: Run) -> Choice:
    """Read the flags. Raises ``UsageError`` for a mistake in one, or a column that no sample has."""
    choice = read_choice(given)
    if choice.where is not None:
        run.check(choice.where)
    return choice


def read_choice(given: Namespace) -> Choice:
    """Read the flags, whose columns nobody has checked yet. Raises ``UsageError`` for a mistake in one."""
    from lmms_eval.results.run_reader.task import Choice
    from lmms_eval.utils.document_ids import ids_text, parse_ids
    from lmms_eval.utils.where import parse_where

    ids = None if given.ids is None else parse_ids(ids_text(given.ids))
    return Choice(ids, None if given.where is None else parse_where(given.where))
