"""Versions of installed packages, the Git checkout of this package, and errors about names that this version lacks."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

FAMILY_VERSION = "0.7"
"""Task folders and plugins may import the names of this version of lmms-eval."""
_PACKAGE = "lmms_eval"
_FOLDER = Path(__file__).resolve().parents[1]
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_NAME = re.compile(r"cannot import name '([^']+)' from '")


def package_version(name: str) -> str | None:
    """Return the version of an installed package without importing it; ``None`` if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def required_packages(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the packages of requirements, each with its extra, which is empty if every run needs the package.

    The extras ``all`` and ``dev`` are left out.
    """
    for line in lines:
        package, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        if package is not None and (extra is None or extra[1] not in ("all", "dev")):
            yield package[0], extra[1] if extra else ""


def own_requirements() -> Sequence[str]:
    """Return the requirements of this package; empty if it is not installed as a package."""
    try:
        return importlib.metadata.requires(_PACKAGE) or ()
    except importlib.metadata.PackageNotFoundError:
        return ()


def git(*arguments: str) -> str | None:
    """Return Git's output for the checkout of this package; ``None`` outside a checkout, or if Git prints nothing."""
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


def error_text(error: BaseException) -> str:
    """Return ``TYPE: MESSAGE`` of an error, with a better message if it is about a name that this package lacks."""
    name = absent_name(error)
    return f"{type(error).__name__}: {error if name is None else not_part_of_this_version(name)}"


def absent_name(error: BaseException) -> str | None:
    """Return the dotted name of a module or attribute of this package that an import did not find."""
    if not isinstance(error, ImportError) or (error.name or "").partition(".")[0] != _PACKAGE:
        return None
    if isinstance(error, ModuleNotFoundError):
        return error.name
    found = _NAME.match(str(error))  # a circular import has another message
    if found is None or error.path is None or not Path(error.path).resolve().is_relative_to(_FOLDER):
        return None
    return f"{error.name}.{found[1]}"


def not_part_of_this_version(name: str) -> str:
    """Return the message that this package has no such name, and what to do."""
    version = package_version(_PACKAGE)
    place = ", or bring the module below --include_path" if name.startswith(f"{_PACKAGE}.tasks.") else ""
    return (
        f"{name} is not part of this version of lmms_eval{f' ({version})' if version else ''}; code of the "
        f"family that imports it needs a package lmms-eval {FAMILY_VERSION}.x that has it: take the import out{place}"
    )
