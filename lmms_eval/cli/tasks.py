"""``lmms-eval tasks``, and the listings of ``--tasks``."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval.cli.arguments import add_catalogue_flags, command_parser
from lmms_eval.cli.output import emit
from lmms_eval.cli.source import TaskSource
from lmms_eval.errors import UsageError

WHAT = ("list", "groups", "subtasks", "tags")
ACTIONS = ("describe", "search")
"""Words that take further ones."""


def run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in ACTIONS:
        from lmms_eval.cli.describe import run_describe, run_search

        return (run_describe if arguments[0] == "describe" else run_search)(arguments[1:])
    parser = command_parser(
        "tasks", "list tasks, groups, subtasks or tags; describe NAME and search WORD have a --help of their own"
    )
    parser.add_argument("what", nargs="?", default="list", choices=(*WHAT, *ACTIONS))
    add_catalogue_flags(parser)
    given = parser.parse_args(list(arguments))
    from lmms_eval.utils.logging import configure_logging

    configure_logging(given.verbosity)
    source = TaskSource.of_flags(given)
    emit(names_with_count(source) if given.what == "list" else listing(given.what, source))
    return 0


def names_with_count(source: TaskSource) -> list[str]:
    """All names of tasks, groups and tags, below their number."""
    names = source.open().names()
    return [f"Available tasks ({len(names)}):", "", *(f"  {name}" for name in names)]


def listing(what: str, source: TaskSource) -> list[str]:
    """Plain names with a dash (``list``), or a Markdown table.

    Raises:
        UsageError: another listing than those of ``WHAT``.
    """
    if what not in WHAT:
        raise UsageError(f"tasks: there is no listing {what!r}; choose one of {', '.join(WHAT)}")
    catalogue = source.open()
    if what == "list":
        return [f" - {name}" for name in catalogue.names()]
    from lmms_eval.tasks.manager import groups_table, subtasks_table, tags_table

    tables = {"groups": groups_table, "subtasks": subtasks_table, "tags": tags_table}
    return tables[what](catalogue).rstrip("\n").split("\n")
