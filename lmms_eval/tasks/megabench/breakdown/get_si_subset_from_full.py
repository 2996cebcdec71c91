"""Take the single-image results out of a full run: ``lmms-eval megabench single-image`` as users know it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[4])  # this folder's modules must not hide others
    sys.argv[1:1] = ["megabench", "single-image"]
    runpy.run_module("lmms_eval", run_name="__main__")
