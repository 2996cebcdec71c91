"""Choose the build of torch that ``make`` installs: on a machine without a GPU the one for CPUs, which saves 4 GB.

Prints the words of ``pip install`` for the CPU build to standard output, or nothing if torch comes from the package
index as usual; what was decided, and why, goes to standard error. Needs the standard library alone.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
INDEX = "https://download.pytorch.org/whl/cpu"
"""Index of the CPU builds, as pytorch.org names it."""
TIMEOUT_S = 5.0
DEVICES = ("nvidia[0-9]*", "nvidiactl", "kfd")
"""Files of GPUs in ``/dev``: those of NVIDIA's driver, and that of AMD's."""
BY_HAND = "docs/install.md describes how to install the CPU build yourself"


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Return whether this machine has a GPU: a driver's device file, or one that ``nvidia-smi -L`` lists."""
    if any(found for pattern in DEVICES for found in devices.glob(pattern)):
        return True
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout


def problem_of(index: str, timeout_s: float = TIMEOUT_S) -> str:
    """Return why the torch page of an index cannot be read within the time-out. Empty if it can."""
    found = [f"no answer within {timeout_s:g} s"]

    def ask() -> None:
        try:
            with urllib.request.urlopen(f"{index}/torch/", timeout=timeout_s) as reply:
                reply.read(1)
            found.append("")
        except (OSError, ValueError, urllib.error.URLError) as error:
            found.append(str(getattr(error, "reason", error)))

    asking = threading.Thread(target=ask, daemon=True)  # looking up a name takes as long as the system likes
    asking.start()
    asking.join(timeout_s)
    return found[-1]


def pinned_torch(constraints: Path = CONSTRAINTS) -> str:
    """Return the requirement that the constraints hold torch to."""
    pin = re.search(r"^torch==[\w.]+", constraints.read_text(encoding="utf-8"), re.MULTILINE)
    return pin[0] if pin else "torch"


def choose(build: str, index: str, gpu: bool) -> tuple[list[str], str]:
    """Choose the words of ``pip install``, and the line that says what was decided.

    Args:
        build: ``auto``, ``cpu``, or ``default`` for the build of the package index.
        index: address of the index of CPU builds.
        gpu: True if this machine has a GPU.
    """
    if build == "default" or (build == "auto" and gpu):
        why = "this machine has a GPU" if build == "auto" else "TORCH=default"
        return [], f"torch: the build of the package index, {why}"
    why = "no GPU found" if build == "auto" else "TORCH=cpu"
    if problem := problem_of(index):
        return [], (
            f"torch: the build of the package index, usually with CUDA (4 GB): {why}, but the index of CPU builds "
            f"cannot be read ({index}: {problem}); {BY_HAND}"
        )
    # Only torch itself comes from there; what it needs comes from the package index, as always.
    return ["--no-deps", "--index-url", index, pinned_torch()], f"torch: the CPU build from {index}, {why}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", choices=("auto", "cpu", "default"), default="auto")
    parser.add_argument("--index", default=INDEX)
    given = parser.parse_args(words)
    if find_spec("torch") is not None or sys.platform != "linux":  # elsewhere the package index has no CUDA builds
        return 0
    chosen, line = choose(given.build, given.index.rstrip("/"), given.build == "auto" and has_gpu())
    print(f"  {line}", file=sys.stderr)
    print(" ".join(chosen))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
