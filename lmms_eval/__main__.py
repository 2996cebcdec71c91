"""``python -m lmms_eval`` and the console script ``lmms-eval``."""

from __future__ import annotations

import sys

from lmms_eval.cli.main import main as run
from lmms_eval.utils.terminal import guard_standard_error


def main() -> int:
    """Run the command line of this process; returns its exit code."""
    guard_standard_error()
    return run()


if __name__ == "__main__":
    sys.exit(main())
