from __future__ import annotations

import re
from pathlib import Path

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.general_bench import ACTIONS
from lmms_eval.cli.help import EXIT_CODES, default_text, flag_text
from lmms_eval.cli.main import main
from lmms_eval.config.options import options
from tests.cases import for_each

DOC = Path(__file__).parents[2] / "docs" / "commands.md"


def _rows() -> dict[str, list[str]]:
    """Rows of the table of options: name to its other cells."""
    rows = {}
    for line in DOC.read_text(encoding="utf-8").splitlines():
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


def test_commands_and_exit_codes() -> None:
    text = DOC.read_text(encoding="utf-8")
    for name in COMMANDS:
        assert re.search(rf"^\| .*`(\[)?{name}\b", text, re.MULTILINE), name
    for code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in text


@for_each("action", sorted(ACTIONS))
def test_rows_of_general_bench_hold_its_flags(action, capsys) -> None:
    assert main(["general-bench", action, "--help"]) == 0
    printed = capsys.readouterr().out
    flags = set(re.findall(r"--[a-z_]+(?![\w-])", printed)) - {"--help"}
    row = next(line for line in DOC.read_text("utf-8").splitlines() if line.startswith(f"| `general-bench {action}`"))
    assert flags <= set(re.findall(r"--[a-z_]+", row))
    assert flags or action == "metrics"
