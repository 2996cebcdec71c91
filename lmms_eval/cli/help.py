"""Help texts: ``--help`` from the table of options, ``lmms-eval help TOPIC`` from ``topics.md``."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.output import emit
from lmms_eval.config.options import GROUPS, Option, options
from lmms_eval.errors import UnknownNameError

_INDENT, _NARROW_INDENT, _WIDEST, _NARROW, _NARROWEST = 32, 6, 118, 80, 30
EXIT_CODES = (
    (0, "done"),
    (1, "internal error, or an aggregation or metric list of a task that is wrong"),
    (2, "usage: a bad option, an unknown name, bad input"),
    (
        3,
        "a score is withheld: more samples failed than --error_budget allows, more lack a readable reply of the judge "
        "than --judge_error_budget allows, every answer is blank or filtered, "
        "nothing of a task could be scored, or --max_tokens or --max_cost is spent",
    ),
    (4, "gate: a score fell, it is worse than the margin of the policy allows; judge check: the judge has drifted"),
    (5, "gate: undecided, since documents, coverage or a task are missing; no score fell"),
    (130, "interrupted (143: terminated, 129: the terminal is gone); the same command continues the run"),
)
FILE = os.path.join(os.path.dirname(__file__), "topics.md")
_FLAGS = "{flags: "


class Example(NamedTuple):
    """A command line and its purpose. A named tuple, since importing dataclasses is slow (see ``Command``)."""

    purpose: str
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """Command line as it is typed."""
        return " ".join(("lmms-eval", *self.words))


FIRST_RUN = Example(
    "a first run: seconds, without network, key or GPU",
    (
        *("--model", "hf", "--model_args", "pretrained=embedded,dtype=float32,batch_size=8"),
        *("--tasks", "megabench_demo"),
    ),
)
EXAMPLES = (
    FIRST_RUN,
    Example(
        "a local model",
        (
            *("--model", "hf", "--model_args", "pretrained=Qwen/Qwen2.5-VL-3B-Instruct,dtype=bfloat16"),
            *("--tasks", "mme", "--limit", "32", "--output_path", "out"),
        ),
    ),
    Example(
        "a model behind an OpenAI-compatible server",
        (
            *("--model", "openai", "--model_args", "model=NAME,base_url=http://127.0.0.1:8000/v1"),
            *("--tasks", "mme", "--output_path", "out", "--log_samples"),
        ),
    ),
    Example("what a run would ask, without asking", ("--model", "hf", "--tasks", "quick", "--dry_run")),
)
"""Evaluations."""
NEXT_STEPS = (
    Example("which tasks there are", ("tasks", "search", "chart")),
    Example("what this machine can run", ("doctor",)),
    Example("answers by topic", ("help",)),
    Example("all flags", ("eval", "--help")),
)
"""Further commands."""


def example_lines(examples: tuple[Example, ...]) -> list[str]:
    """Return each purpose as a comment, with its line below."""
    return [text for example in examples for text in (f"  # {example.purpose}", f"  {example.line}")]


def bare_evaluation() -> list[str]:
    """Return the text that follows the error of an evaluation without flags."""
    return ["", *example_lines(EXAMPLES), "", "Next:", *example_lines(NEXT_STEPS)]


def top_level_help() -> list[str]:
    """Return the commands and all flags of an evaluation."""
    lines = [
        "usage: lmms-eval COMMAND ...",
        "       lmms-eval --model NAME --tasks TASK[,TASK] [flags]",
        "",
        "Commands:",
    ]
    lines += [entry(command.name, command.text) for command in COMMANDS.values()]
    return [*lines, "", *_evaluation_lines()]


def evaluation_help() -> list[str]:
    """Return examples and all flags of an evaluation."""
    usage = "usage: lmms-eval [eval] --model NAME --tasks TASK[,TASK] [flags]"
    return [usage, "", *_evaluation_lines()]


def _evaluation_lines() -> Iterator[str]:
    yield from ("Examples:", *example_lines(EXAMPLES), "")
    intro = "Flags of an evaluation (in a --config file: the names without dashes; --no_NAME turns a switch off):"
    yield textwrap.fill(intro, width())
    for group in GROUPS:
        yield from ("", f"{group}:", *flags_of(group))
    yield from ("", "Exit codes:", *exit_codes())


def default_text(option: Option) -> str:
    """Return the default as it is written on the command line; empty if there is no default."""
    if option.default is None or option.default is False or option.default == "":
        return ""
    if isinstance(option.default, tuple):
        return ",".join(str(part) for part in option.default)
    return str(option.default)


def flag_text(option: Option) -> str:
    """Return the spellings and the placeholder: ``-b, --batch_size VALUE``."""
    names = sorted({option.flag, *option.aliases}, key=lambda name: (name.startswith("--"), name != option.flag))
    if option.is_switch:
        return ", ".join(names)
    value = "|".join(option.choices) if 0 < len(option.choices) <= 3 else option.metavar or "VALUE"
    return f"{', '.join(names)} {f'[{value}]' if option.optional_value else value}"


def width() -> int:
    """Return the width of help texts: that of the terminal, or ``COLUMNS``, within limits."""
    stated = os.environ.get("COLUMNS", "")
    columns = int(stated) if stated.isdecimal() else 0
    if not columns:  # as shutil.get_terminal_size does, whose import takes as long as this text
        try:
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 0
        except (OSError, ValueError):  # not a terminal, or closed
            columns = 0
    return max(_NARROWEST, min(_WIDEST, columns or _WIDEST))


def flags_of(group: str) -> list[str]:
    """Return the flags of a group of options."""
    lines = []
    for option in options():
        if option.group == group:
            default = f" [default: {text}]" if (text := default_text(option)) else ""
            variables = f" [environment: {', '.join(option.variables)}]" if option.variables else ""
            lines.append(entry(flag_text(option), f"{option.text}{default}{variables}"))
    return lines


def exit_codes() -> list[str]:
    """Return the exit codes and what they mean."""
    return [entry(str(code), text) for code, text in EXIT_CODES]


def entry(name: str, text: str) -> str:
    """Return a name followed by its text, which is on the next line on a narrow terminal."""
    columns = width()
    indent = _INDENT if columns >= _NARROW else _NARROW_INDENT
    wrapped = textwrap.wrap(text, columns - indent) or [""]
    head = f"  {name}"
    gap = "\n" + " " * indent
    return (head.ljust(indent) if len(head) < indent else head + gap) + gap.join(wrapped)


def run(arguments: Sequence[str]) -> int:
    """Print a topic, the help of a command without a topic, or the list of topics.

    Raises ``UnknownNameError`` if the word is neither a topic nor a command.
    """
    words = [word.lower() for word in arguments]
    if not words:
        return _printed(overview())
    if words in (["--help"], ["-h"]):
        return _printed(["usage: lmms-eval help [TOPIC]", "", *overview()])
    name = "-".join(words).replace("_", "-")
    known = topics()
    if name in known:
        title = f"{name}: {known[name][0]}"
        pointer = ["", f"Flags of the command: lmms-eval {name} --help"] if name in COMMANDS else []
        return _printed([title, "=" * len(title), *_body(known[name][1:]), *pointer])
    if name == "help":
        return _printed(top_level_help())
    if name in COMMANDS:
        return COMMANDS[name].run(["--help"])
    raise UnknownNameError("topic", name, {*known, *COMMANDS}, "lmms-eval help lists all", "; ")


def topics() -> dict[str, list[str]]:
    """Read the topics: their lines by name; the first line is the title."""
    found: dict[str, list[str]] = {}
    with open(FILE, encoding="utf-8") as file:
        text = file.read()
    for section in text.split("\n## ")[1:]:
        head, *lines = section.rstrip("\n").split("\n")
        name, _, title = head.partition(": ")
        found[name] = [title, *lines]
    return found


def overview() -> list[str]:
    """Return the names of all topics."""
    rows = [entry(name, lines[0]) for name, lines in topics().items()]
    return ["Topics (lmms-eval help TOPIC; of a command, lmms-eval COMMAND --help):", *rows]


def _body(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a topic with its flags or codes, wrapped to the terminal's width."""
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
