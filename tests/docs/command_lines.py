"""Command lines in the documentation, read by the parsers that run them."""

from __future__ import annotations

import argparse
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from lmms_eval.cli.arguments import CommandParser
from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.main import dispatch
from lmms_eval.config import load_configs, parse_flags
from lmms_eval.config.resolve import flag_names
from lmms_eval.errors import UsageError
from tests.docs.pages import Block

_START = re.compile(r"(?:^|[\s'\"])(?:lmms-eval|-m lmms_eval)(?=\s|$)")
LANGUAGES = ("", "bash", "console", "sh")
SCORE = "score"
"""The command whose flags are those of an evaluation behind the name of a run."""


class Parsed(Exception):
    """Raised in place of running a command whose words were read."""

    def __init__(self, given: Mapping[str, Any], flags: Sequence[str]) -> None:
        super().__init__()
        self.given = dict(given)
        self.flags = frozenset(flags)


@dataclass(frozen=True)
class Line:
    """A command line of a page."""

    place: str
    words: tuple[str, ...]
    """Behind ``lmms-eval``, without marks of what was left out (``...``)."""


def lines_of(text: str, place: str) -> Iterator[Line]:
    """Find the command lines in the text of a block of commands."""
    for line in text.replace("\\\n", " ").splitlines():
        start = _START.search(line)
        if start and not line.lstrip().startswith(("|", "to ", "#")):
            yield Line(place, tuple(_whole(shlex.split(line[start.end() :], comments=True))))


def _whole(words: Sequence[str]) -> Iterator[str]:
    """Drop the marks of further words that were left out, keep those that stand for a value, and end at a pipe."""
    own = itertools.takewhile(lambda word: word != "|", words)
    for before, word in itertools.pairwise(["", *own]):
        if word != "..." or before.startswith("--"):
            yield word


def lines_in(block: Block) -> Iterator[Line]:
    """Find those of a block."""
    if block.language in LANGUAGES:
        yield from lines_of(block.text, block.place)


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Read a command line by the parser that the command itself uses, and return what it read.

    Raises:
        UsageError: the command would refuse it.
    """
    if not words or words[0] == "eval" or words[0].startswith("-"):
        flags = [word for word in words if word not in ("eval", "--tui")]
        if flags in (["--help"], ["--version"], []):
            return {}
        (config, *_) = load_configs(parse_flags(flags)).configs
        return {"model": config.model if "--model" in flags else None, "tasks": config.tasks}
    if words[0] == SCORE and "--submission" not in words:
        return {"tasks": None, **parse_flags(words[2:])} if words[1:] != ["--help"] else {}
    try:
        _stopped(words)
    except Parsed as parsed:
        return parsed.given
    raise AssertionError(f"the command read no words: {words}")


def flags_of(words: Sequence[str]) -> frozenset[str]:
    """Return the flags that a command knows, from the words before the first flag."""
    if not words or words[0] in ("eval", SCORE):
        extra = {"--submission", "--output_file"} if words else set()
        return frozenset({*flag_names(), "--help", "--version", "--tui", "-h", *extra})
    try:
        _stopped([*words, "--help"])
    except Parsed as parsed:
        return parsed.flags
    raise AssertionError(f"the command has no parser: {words}")


def _stopped(words: Sequence[str]) -> NoReturn:
    """Run a command up to the point where it has read its words."""

    def stop(parser: argparse.ArgumentParser, args: Sequence[str] | None = None, namespace: Any = None) -> NoReturn:
        flags = [flag for action in parser._actions for flag in action.option_strings]
        if args is not None and "--help" in args:
            raise Parsed({}, flags)
        found, rest = argparse.ArgumentParser.parse_known_args(parser, args, namespace)
        if rest:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        raise Parsed(vars(found), flags)

    def stop_known(parser: argparse.ArgumentParser, args: Sequence[str], namespace: Any = None) -> NoReturn:
        found, rest = argparse.ArgumentParser.parse_known_args(parser, args, namespace)
        raise Parsed({**parse_flags(rest), **vars(found)}, [*flag_names()])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CommandParser, "parse_args", stop)
        patch.setattr(CommandParser, "parse_known_args", stop_known)
        if words[0] not in COMMANDS:
            raise UsageError(f"there is no command {words[0]!r}")
        dispatch(list(words))
    raise AssertionError(f"the command did not read its words: {words}")
