"""Environment of a run: package versions, git state, machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

RECORDED_PACKAGES = (
    "accelerate", "aiohttp", "av", "codebleu", "datasets", "nltk", "numpy", "openai", "orjson", "pillow", "pyarrow",
    "pycocoevalcap", "pydantic", "rapidfuzz", "sacrebleu", "sglang", "sympy", "text-unidecode", "torch", "transformers",
    "vllm",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GitState:
    """Commit and branch of the harness's own checkout; ``None`` where it is none."""

    commit: str | None
    branch: str | None


def package_version(name: str) -> str | None:
    """Return a package's version as installed, without importing it; ``None`` where it is absent."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@lru_cache(maxsize=1)
def git_state() -> GitState:
    return GitState(git("rev-parse", "HEAD"), git("rev-parse", "--abbrev-ref", "HEAD"))


def git(*arguments: str) -> str | None:
    """Ask Git about the checkout that holds this package; ``None`` outside of one, or where Git fails or is silent."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def versions() -> dict[str, Any]:
    """Versions of Python and of the packages that can change a result, as installed (nothing is imported)."""
    found = {name: version for name in RECORDED_PACKAGES if (version := package_version(name)) is not None}
    return {"python": platform.python_version(), "lmms_eval": package_version("lmms_eval"), **found}


def machine() -> dict[str, Any]:
    """Host facts; they may differ between two starts of the same run."""
    facts: dict[str, Any] = {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
    }
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["gpus"] = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        facts["cuda"] = torch.version.cuda
    return facts
