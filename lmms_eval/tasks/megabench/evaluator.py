"""Score a submission file: ``lmms-eval megabench evaluate`` under the name of the benchmark's own script."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[3])  # this folder's modules must not hide others
    sys.argv[1:1] = ["megabench", "evaluate"]
    runpy.run_module("lmms_eval", run_name="__main__")
