"""The command line's flags, derived from the options. Tells what was given, so that a default can be given too."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from lmms_eval.config.option import Option
from lmms_eval.config.options import options
from lmms_eval.errors import ConfigError


class FlagParser(argparse.ArgumentParser):
    """Raises ``ConfigError`` instead of ending the process, and takes no abbreviations."""

    def __init__(self) -> None:
        super().__init__(prog="lmms-eval", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        raise ConfigError(re.sub(r"^argument ([^/:]+)[^:]*", r"\1", message))


def parse_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """Options given on the command line: name to text, or to ``True`` / ``False`` for switches.

    Dashes and underscores in a flag's name mean the same; ``--no_NAME`` turns a switch off that a file turned on.

    Raises:
        ConfigError: an unknown flag (with the nearest known one) or a missing value.
    """
    parser = flag_parser()
    namespace, rest = parser.parse_known_args(list(arguments))
    if not rest:
        return vars(namespace)
    word, known = rest[0], flag_names()
    if not word.startswith("-"):
        raise ConfigError(f"unexpected word {word!r}: it belongs to no flag (quote values that contain spaces)")
    flag = word.split("=")[0]
    close = [name for name in known if flag.startswith("--") and name.startswith(flag)]
    close = close or difflib.get_close_matches(flag, list(known), n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(close[:2])}?" if close else "see lmms-eval --help"
    raise ConfigError(f"unknown flag {flag}; {hint}")


def flag_parser() -> FlagParser:
    """Make the parser of an evaluation's flags; what is not given is absent from what it reads."""
    parser = FlagParser()
    for option in options():
        names = spellings(option)
        if option.is_switch:
            parser.add_argument(*names, dest=option.name, action="store_true")
            off = dict.fromkeys((f"--no_{option.name}", f"--no-{option.name.replace('_', '-')}"))
            parser.add_argument(*off, dest=option.name, action="store_false")
        elif option.optional_value:
            parser.add_argument(*names, dest=option.name, nargs="?", const=True)
        else:
            parser.add_argument(*names, dest=option.name, action="append" if option.repeatable else "store")
    return parser


def flag_names() -> list[str]:
    """Every spelling of every flag."""
    return [spelling for option in options() for spelling in spellings(option)]


def spellings(option: Option) -> list[str]:
    """The flag, its aliases, and their forms with dashes or underscores."""
    names: dict[str, None] = {}
    for name in (option.flag, *option.aliases):
        names[name] = None
        if name.startswith("--"):
            names["--" + name[2:].replace("-", "_")] = None
            names["--" + name[2:].replace("_", "-")] = None
    return list(names)
