from __future__ import annotations

import re
from pathlib import Path

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.help import EXIT_CODES, flag_text, topics
from lmms_eval.cli.main import main
from lmms_eval.config import parse_flags
from lmms_eval.config.options import GROUPS, options
from tests.cases import for_each

ROOT = Path(__file__).parents[2]


@for_each("name", topics())
def test_topics_are_shown_with_pages_that_are_there(name, capsys) -> None:
    assert main(["help", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name}: ")
    assert "{" not in re.sub(r"^  .*$", "", text, flags=re.MULTILINE)
    pages = re.search(r"^More: (.+?)$(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert pages is not None
    assert [page for page in re.split(r",\s", pages[1].strip()) if not (ROOT / page).is_file()] == []


def test_lines_of_topics_are_right_command_lines() -> None:
    lines = [line.split()[1:] for text in topics().values() for line in text if line.startswith("lmms-eval ")]
    assert len(lines) > 5
    for words in lines:
        if words[0].startswith("-"):
            parse_flags(words)
        else:
            assert words[0] in COMMANDS


def test_every_group_of_flags_has_a_topic(capsys) -> None:
    texts = "\n".join("\n".join(lines) for lines in topics().values())
    assert set(re.findall(r"\{flags: (.+)\}", texts)) == set(GROUPS)
    main(["help", "judges"])
    text = capsys.readouterr().out
    assert all(flag_text(option) in text for option in options() if option.group == "Judge")


@for_each("words", [["exit-codes"], ["exit", "codes"], ["EXIT_CODES"]])
def test_exit_codes(words, capsys) -> None:
    assert main(["help", *words]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {code} " in text for code, _ in EXIT_CODES)


def test_the_list_names_all(capsys) -> None:
    assert main(["help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in topics())


def test_a_command_without_a_topic_shows_its_own_help(capsys) -> None:
    assert "gate" in COMMANDS
    assert "gate" not in topics()
    assert main(["help", "gate"]) == 0
    assert "usage: lmms-eval gate" in capsys.readouterr().out


def test_a_command_that_is_a_topic_names_its_flags(capsys) -> None:
    main(["help", "tasks"])
    assert "lmms-eval tasks --help" in capsys.readouterr().out


def test_an_unknown_topic(capsys) -> None:
    assert main(["help", "juges"]) == 2
    assert "unknown topic 'juges'; did you mean judges" in capsys.readouterr().err


@for_each("columns", [40, 80, 200])
def test_help_fits_the_terminal(columns, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    main(["help", "errors"])
    main(["eval", "--help"])
    lines = capsys.readouterr().out.splitlines()
    texts = [line for line in lines if not line.startswith(("  -", "  #", "  lmms-eval", "usage"))]
    longest_word = max(len(word) for line in texts for word in line.split())
    assert max(map(len, texts)) <= max(min(columns, 118), 6 + longest_word)
    assert max(map(len, texts)) > min(columns, 118) * 0.8
