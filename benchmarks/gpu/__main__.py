from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.sections import SECTIONS

BARS = {"ratio_wall": 0.97, "waits_for_host": 0.03}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--size", choices=("full", "tiny"), help="default: full with a GPU, else tiny")
    parser.add_argument("--device", help="default: cuda if available, else cpu")
    parser.add_argument("--only", nargs="*", choices=tuple(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--budget_s", type=float, default=470.0, help="sections that would begin later are left out")
    parser.add_argument("--folder", type=Path, help="models and tasks stay there (36 GB at full size)")
    given = parser.parse_args()
    has_gpu = _gpu() is not None
    size = given.size or ("full" if has_gpu else "tiny")
    device = given.device or ("cuda" if has_gpu else "cpu")
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        report = measured(folder, size, device, given.only, given.budget_s)
    print(json.dumps({"benchmark": "gpu", "size": size, "device": device, "gpu": _gpu(), **report}, indent=2))
    if any(section.get("failed") for section in report["sections"].values()):
        sys.exit(1)


def measured(folder: Path, size: str, device: str, sections: list[str], budget_s: float) -> dict[str, Any]:
    """Run each section in a separate process. A section that fails, or has no time left, yields its reason."""
    begin = time.monotonic()
    report: dict[str, Any] = {}
    for section in sections:
        left = budget_s - (time.monotonic() - begin)
        if left <= 0:
            report[section] = {"not_measured": f"the budget of {budget_s:g} s is used up"}
            continue
        report[section] = _section(section, size, device, folder, left)
    return {"seconds": time.monotonic() - begin, "bars": BARS, "sections": report}


def _section(section: str, size: str, device: str, folder: Path, left: float) -> dict[str, Any]:
    result, started = folder / f"{section}.json", time.monotonic()
    command = [sys.executable, "-m", "benchmarks.gpu.sections", section, size, device, str(folder), str(result)]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return {"not_measured": f"not ended in the {left:.0f} s that were left"}
    if finished.returncode:
        return {"failed": (finished.stdout + finished.stderr)[-3000:]}
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return {**found, "seconds": time.monotonic() - started}


def _gpu() -> dict[str, Any] | None:
    import torch

    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "bytes": properties.total_memory,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
