"""Optional packages: ``optional_import`` for plugins that work with and without one."""

from __future__ import annotations

import importlib
from typing import Any


def optional_import(module: str, attribute: str | None = None) -> tuple[Any, bool]:
    """A module, or an attribute of it, and whether it is there; ``(None, False)`` where it is not installed.

    An installed package that fails while it is imported is not hidden: its error passes through.
    """
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module == missing or module.startswith(f"{missing}."):
            return None, False
        raise
    if attribute is None:
        return found, True
    return getattr(found, attribute, None), hasattr(found, attribute)
