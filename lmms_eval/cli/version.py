"""``lmms-eval version``: prints the versions of this package and of what it runs on."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import emit
from lmms_eval.utils.installed import git, package_version

PACKAGES = ("torch", "accelerate", "transformers", "vllm")


def run(arguments: Sequence[str]) -> int:
    command_parser("version").read(arguments)
    emit(version_lines())
    return 0


def version_lines() -> list[str]:
    """Return the versions of lmms-eval, Python, the Git checkout, and the installed libraries that run models."""
    lines = [f"lmms-eval {package_version('lmms_eval') or 'not installed (run from its source folder)'}"]
    lines += [f"Python {platform.python_version()}", f"Git {git_state() or 'not a checkout'}"]
    return lines + [f"{name} {version}" for name in PACKAGES if (version := package_version(name))]


def git_state() -> str | None:
    """Return ``branch@commit[+changes]`` of the source folder; ``None`` outside a checkout."""
    branch, commit = git("rev-parse", "--abbrev-ref", "HEAD"), git("rev-parse", "--short=8", "HEAD")
    if not (branch and commit):
        return None
    return f"{branch}@{commit}" + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
