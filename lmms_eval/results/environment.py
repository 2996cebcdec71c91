"""Environment of a run: package versions, git state, machine."""

from __future__ import annotations

import os
import platform
import socket
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lmms_eval.utils.installed import git, package_version

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


@lru_cache(maxsize=1)
def git_state() -> GitState:
    return GitState(git("rev-parse", "HEAD"), git("rev-parse", "--abbrev-ref", "HEAD"))


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
