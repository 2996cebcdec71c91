"""The pages of commands hold what the parsers take."""

from __future__ import annotations

import re
from pathlib import Path

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.help import EXIT_CODES, default_text, flag_text
from lmms_eval.config.options import options
from release.commands import parser_of, tables_in, written
from tests.cases import for_each

DOC = Path(__file__).parents[2] / "docs" / "commands.md"
PAGES = DOC.with_suffix("")
WITHOUT_TABLE = ("eval", "help", "version")
"""Commands without options of their own, or whose table is written by hand and tested below."""


def _rows() -> dict[str, list[str]]:
    """Rows of the table of an evaluation's options: name to its other cells."""
    rows = {}
    for line in (PAGES / "eval.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 5 and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = cells[1:]
    return rows


def test_the_table_holds_every_option_and_no_other() -> None:
    assert set(_rows()) == {option.name for option in options()}


@for_each("option", list(options()), ids=lambda option: option.name)
def test_rows_tell_what_holds(option) -> None:
    flag, default, key, text = _rows()[option.name]
    assert flag == f"`{flag_text(option)}`"
    assert default.strip("`") == default_text(option)
    assert key == ("" if option.run_only else "yes")
    assert all(f"`{variable}`" in text for variable in option.variables)


def test_the_overview_links_every_command_and_has_every_exit_code() -> None:
    text = DOC.read_text(encoding="utf-8")
    for command in COMMANDS.values():
        assert f"| [`{command.name}`](commands/{command.name}.md) | {command.text} |" in text
    for code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in text


def test_every_command_has_a_page_and_no_other_page_exists() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(COMMANDS)


@for_each("name", sorted(COMMANDS))
def test_tables_of_a_page_are_those_of_its_parsers(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text == written(text), "python -m release.commands writes the tables again"
    assert tables_in(text) or name in WITHOUT_TABLE


@for_each("name", sorted(set(COMMANDS) - {"eval", "help", "version", "score", "cache", "completion", "tasks", "fetch"}))
def test_every_action_of_a_command_has_a_table(name: str) -> None:
    actions = [str(word) for action in parser_of(name)._get_positional_actions() for word in action.choices or ()]
    shown = tables_in((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert shown == ([f"{name} {action}" for action in actions] or [name])
