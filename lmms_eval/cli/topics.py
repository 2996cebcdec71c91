"""``lmms-eval help``: short texts by topic, and the help of commands."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.examples import EXAMPLES, example_lines
from lmms_eval.cli.help import entry, exit_codes, flags_of, top_level_help, width
from lmms_eval.cli.output import emit
from lmms_eval.errors import UnknownNameError

FILE = Path(__file__).with_name("topics.md")
_FLAGS = "{flags: "


def run(arguments: Sequence[str]) -> int:
    """Print a topic, the help of a command that is no topic, or the list of topics.

    Raises:
        UnknownNameError: neither a topic nor a command.
    """
    words = [word.lower() for word in arguments]
    if not words:
        return _printed(overview())
    if words in (["--help"], ["-h"]):
        return _printed(["usage: lmms-eval help [TOPIC]", "", *overview()])
    name = "-".join(words).replace("_", "-")
    known = topics()
    if name in known:
        return _printed(topic_lines(name, known[name]))
    if name == "help":
        return _printed(top_level_help())
    if name in COMMANDS:
        return COMMANDS[name].run(["--help"])
    raise UnknownNameError("topic", name, {*known, *COMMANDS}, "lmms-eval help lists all", "; ")


def topics() -> dict[str, list[str]]:
    """Read the topics: name to its lines, of which the first is its title."""
    found: dict[str, list[str]] = {}
    for section in FILE.read_text("utf-8").split("\n## ")[1:]:
        head, *lines = section.rstrip("\n").split("\n")
        name, _, title = head.partition(": ")
        found[name] = [title, *lines]
    return found


def overview() -> list[str]:
    """Return the names of all topics."""
    rows = [entry(name, lines[0]) for name, lines in topics().items()]
    return ["Topics (lmms-eval help TOPIC; of a command, lmms-eval COMMAND --help):", *rows]


def topic_lines(name: str, lines: Sequence[str]) -> list[str]:
    """Return a topic with its flags or codes, as wide as the terminal."""
    title = f"{name}: {lines[0]}"
    shown = [title, "=" * len(title), *_body(lines[1:])]
    if name in COMMANDS:
        shown += ["", f"Flags of the command: lmms-eval {name} --help"]
    return shown


def _body(lines: Sequence[str]) -> Iterator[str]:
    is_code = False
    for line in lines:
        if line.startswith("```"):
            is_code = not is_code
        elif is_code:
            yield f"  {line}"
        elif line.startswith(_FLAGS):
            yield from flags_of(line.removeprefix(_FLAGS).rstrip("}"))
        elif line == "{exit codes}":
            yield from exit_codes()
        elif line == "{examples}":
            yield from example_lines(EXAMPLES)
        else:
            yield textwrap.fill(line.replace("`", ""), width(), break_on_hyphens=False)


def _printed(lines: Sequence[str]) -> int:
    emit(lines)
    return 0
