"""``python -m lmms_eval`` and the console script ``lmms-eval``."""

from __future__ import annotations

import sys

from lmms_eval.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
