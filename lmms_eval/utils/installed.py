"""Versions of installed packages, and the state of the checkout that holds this one."""

from __future__ import annotations

import importlib.metadata
import subprocess
from pathlib import Path


def package_version(name: str) -> str | None:
    """Return a package's version as installed, without importing it; ``None`` where it is absent."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def git(*arguments: str) -> str | None:
    """Ask Git about the checkout that holds this package; ``None`` outside of one, or where Git fails or is silent."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
