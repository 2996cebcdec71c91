"""``python -m lmms_eval`` and the console script ``lmms-eval``."""

from __future__ import annotations

import atexit
import sys
from typing import NoReturn

from lmms_eval.cli.ending import LastStep


def main() -> NoReturn:
    """Run this process's command line, and end the process with its exit code."""
    last = LastStep()
    atexit.register(last)
    from lmms_eval.cli.main import run_command
    from lmms_eval.utils.terminal import guard_standard_error

    guard_standard_error()
    last.code = run_command(sys.argv[1:])
    sys.exit(last.code)


def ui() -> NoReturn:
    """Run ``lmms-eval ui`` under its name of its own, the console script ``lmms-eval-ui``."""
    sys.argv.insert(1, "ui")
    main()


def mcp() -> NoReturn:
    """Run ``lmms-eval mcp`` under its name of its own, the console script ``lmms-eval-mcp``."""
    sys.argv.insert(1, "mcp")
    main()


if __name__ == "__main__":
    main()
