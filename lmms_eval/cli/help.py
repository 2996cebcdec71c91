"""Help texts, made from the table of options."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.examples import EXAMPLES, example_lines
from lmms_eval.config.option import GROUPS, Option
from lmms_eval.config.options import options

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
    (4, "gate: a score fell, it is worse than the margin of the policy allows"),
    (5, "gate: cannot tell, for lack of documents, coverage or a task; nothing fell"),
    (130, "interrupted (143: terminated, 129: the terminal is gone); the same command continues the run"),
)


def top_level_help() -> list[str]:
    """Return the commands and all flags of an evaluation."""
    lines = [
        "usage: lmms-eval COMMAND ...",
        "       lmms-eval --model NAME --tasks TASK[,TASK] [flags]",
        "",
        "Commands:",
    ]
    lines += [entry(command.name, command.text) for command in COMMANDS.values()]
    return [*lines, "", *_examples(), "", *_flags(), "", "Exit codes:", *exit_codes()]


def evaluation_help() -> list[str]:
    """Return examples and all flags of an evaluation."""
    usage = "usage: lmms-eval [eval] --model NAME --tasks TASK[,TASK] [flags]"
    return [usage, "", *_examples(), "", *_flags(), "", "Exit codes:", *exit_codes()]


def default_text(option: Option) -> str:
    """Return the default as a person would write it on the command line; empty where there is none."""
    if option.default is None or option.default is False or option.default == "":
        return ""
    if isinstance(option.default, tuple):
        return ",".join(str(part) for part in option.default)
    return str(option.default)


def flag_text(option: Option) -> str:
    """Return spellings and placeholder: ``-b, --batch_size TEXT``."""
    names = sorted({option.flag, *option.aliases}, key=lambda name: (name.startswith("--"), name != option.flag))
    if option.is_switch:
        return ", ".join(names)
    value = "|".join(option.choices) if 0 < len(option.choices) <= 3 else option.metavar or "VALUE"
    return f"{', '.join(names)} {f'[{value}]' if option.optional_value else value}"


def width() -> int:
    """Return the columns for help: those of the terminal, within reason; ``COLUMNS`` where it is set."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns))


def flags_of(group: str) -> list[str]:
    """Return the flags of a group of options."""
    return [entry(flag_text(option), _text(option)) for option in options() if option.group == group]


def exit_codes() -> list[str]:
    """Return the exit codes and what they mean."""
    return [entry(str(code), text) for code, text in EXIT_CODES]


def entry(name: str, text: str) -> str:
    """Return a name with its text beside it, or below it on a narrow terminal."""
    columns = width()
    indent = _INDENT if columns >= _NARROW else _NARROW_INDENT
    wrapped = textwrap.wrap(text, columns - indent) or [""]
    head = f"  {name}"
    gap = "\n" + " " * indent
    return (head.ljust(indent) if len(head) < indent else head + gap) + gap.join(wrapped)


def _examples() -> list[str]:
    return ["Examples:", *example_lines(EXAMPLES)]


def _flags() -> Iterable[str]:
    intro = "Flags of an evaluation (in a --config file: the names without dashes; --no_NAME turns a switch off):"
    yield textwrap.fill(intro, width())
    for group in GROUPS:
        yield from ("", f"{group}:", *flags_of(group))


def _text(option: Option) -> str:
    notes = [option.text]
    if default := default_text(option):
        notes.append(f"[default: {default}]")
    if option.variables:
        notes.append(f"[environment: {', '.join(option.variables)}]")
    return " ".join(notes)
