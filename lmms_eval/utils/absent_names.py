"""Errors of imports that ask this package for a name that it does not have."""

from __future__ import annotations

import re
from pathlib import Path

FAMILY_VERSION = "0.7"
"""Version of the family's package whose names task folders and plugins may import."""
_PACKAGE = "lmms_eval"
_FOLDER = Path(__file__).resolve().parents[1]
_NAME = re.compile(r"cannot import name '([^']+)' from '")


def told(error: BaseException) -> str:
    """Return ``TYPE: MESSAGE`` of an error; to one that asks this package for an absent name, the message is ours."""
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
    """Say that this package has no such name, and what to do."""
    from lmms_eval.utils.installed import package_version  # reading versions takes longer than all else here

    version = package_version(_PACKAGE)
    place = ", or bring the module below --include_path" if name.startswith(f"{_PACKAGE}.tasks.") else ""
    return (
        f"{name} is not part of this version of lmms_eval{f' ({version})' if version else ''}; code of the "
        f"family that imports it needs a package lmms-eval {FAMILY_VERSION}.x that has it: take the import out{place}"
    )
