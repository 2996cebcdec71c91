"""``python -m lmms_eval`` and the console script ``lmms-eval``."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import TYPE_CHECKING, NoReturn

from lmms_eval.cli.output import LastStep

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

COLLECTS_AFTER = 200_000
"""New objects before a garbage collection. With Python's 700, collections over the imported modules are a tenth of the
time to the first request. While a run asks, the usual number holds (``lmms_eval.engine.evaluate``)."""


def main() -> NoReturn:
    """Run this process's command line and exit with its code."""
    gc.set_threshold(COLLECTS_AFTER)
    last = LastStep()
    atexit.register(last)
    from lmms_eval.cli.main import run_command
    from lmms_eval.utils.terminal import guard_standard_error

    guard_standard_error()
    last.code = run_command(sys.argv[1:])
    sys.exit(last.code)


def parse_eval_args() -> tuple[ArgumentParser, Namespace]:
    """Return the parser of an evaluation's flags, and all options of this process's command line.

    Raises:
        ConfigError: a flag is unknown, or a value has the wrong form.
    """
    from lmms_eval.config import flag_parser, parse_options

    words = sys.argv[1:]
    return flag_parser(), parse_options(words[1:] if words[:1] == ["eval"] else words)


def cli_evaluate(args: Namespace | None = None) -> None:
    """Evaluate as the command line does.

    Args:
        args: options by name, such as those of ``parse_eval_args``; by default this process's command line. Options
            that still have their default come from the environment and the ``--config`` file. Attributes that are not
            options are ignored, with a warning.

    Raises:
        SystemExit: the command ends with a code other than 0.
    """
    from lmms_eval.cli.main import run_namespace

    if code := run_namespace(parse_eval_args()[1] if args is None else args):
        sys.exit(code)


def ui() -> NoReturn:
    """Run ``lmms-eval ui`` as the console script ``lmms-eval-ui``."""
    sys.argv.insert(1, "ui")
    main()


def mcp() -> NoReturn:
    """Run ``lmms-eval mcp`` as the console script ``lmms-eval-mcp``."""
    sys.argv.insert(1, "mcp")
    main()


if __name__ == "__main__":
    main()
