"""``python -m lmms_eval.launch_server``: the same as ``lmms-eval serve``."""

from __future__ import annotations

import sys

from lmms_eval.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
