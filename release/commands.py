"""The tables of options in ``docs/commands/``, from the parsers: ``python -m release.commands``.

A page marks the place of a table with ``<!-- options: WORDS -->`` and ``<!-- end of options -->``. WORDS name the
command and its action, as after ``lmms-eval``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from lmms_eval.cli.arguments import CommandParser, parsers_asked_for_help
from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.help import default_text, flag_text
from lmms_eval.config.options import options
from lmms_eval.evaluation.rescore import GIVEN

PAGES = Path(__file__).parents[1] / "docs" / "commands"
_TABLE = re.compile(r"(<!-- options: ([a-z -]+) -->\n).*?(<!-- end of options -->)", re.DOTALL)
_HIDDEN = {"--help", "--verbosity"}


def tables_in(text: str) -> list[str]:
    """Return the commands whose tables a page has."""
    return [match[2] for match in _TABLE.finditer(text)]


def written(text: str) -> str:
    """Return a page with tables of the present options."""
    return _TABLE.sub(lambda match: match[1] + "\n".join(_table(match[2])) + "\n" + match[3], text)


def parser_of(words: str) -> CommandParser:
    """Return the parser of a command or of one of its actions. Raises ``SystemExit`` if it has no parser."""
    name, *action = words.split()
    if name not in COMMANDS or not (found := parsers_asked_for_help(COMMANDS[name], action)):
        raise SystemExit(f"docs/commands: lmms-eval {words} has no parser")
    return found[-1]


def _table(words: str) -> Iterator[str]:
    yield "| option | meaning |"
    yield "|---|---|"
    rows = _rows_of_score() if words == "score" else _rows(parser_of(words))
    yield from rows or ("| | no options |",)


def _rows(parser: CommandParser) -> list[str]:
    actions = [action for action in parser._actions if _HIDDEN.isdisjoint(action.option_strings)]
    formatter = parser._get_formatter()
    return [_row(_spelled(action), formatter._expand_help(action) if action.help else "") for action in actions]


def _spelled(action: argparse.Action) -> str:
    """Return the spellings, without those that only exchange dashes and underscores, and the placeholder."""
    kept = {name.lstrip("-").replace("-", "_"): name for name in reversed(action.option_strings)}
    names = sorted(kept.values(), key=lambda name: (name.startswith("--"), name))
    choices = "|".join(map(str, action.choices or ()))
    value = action.metavar if isinstance(action.metavar, str) else choices or action.dest.upper()
    if not names:
        return f"{value} ..." if action.nargs in ("*", "+") else value
    return ", ".join(names) if action.nargs == 0 else f"{', '.join(names)} {value}"


def _rows_of_score() -> list[str]:
    rows = [_row("RUN", "output folder, results file (or FOLDER/STAMP), samples file, .runs/KEY")]
    for option in options():
        if option.name in GIVEN:
            default = f"; default: {shown}" if (shown := default_text(option)) else ""
            rows.append(_row(flag_text(option), option.text + default))
    return rows


def _row(spelled: str, text: str) -> str:
    escaped = [cell.replace("|", "\\|") for cell in (spelled, text)]
    return f"| `{escaped[0]}` | {escaped[1]} |"


def main() -> int:
    """Rewrite the tables of all pages and print the pages that changed."""
    for page in sorted(PAGES.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = written(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page.relative_to(PAGES.parents[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
