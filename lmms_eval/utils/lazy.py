"""Imports at another time: of a package's public names on first use, of libraries ahead in a thread."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package that lists its names only in its stub.

    The stub ``__init__.pyi`` imports each name from its module. Type checkers read the stub; at run time, a module is
    imported when one of its names is first used.

    Args:
        package: ``__name__`` of the package.
        file: ``__file__`` of the package; the stub is in the same folder.
    """

    @functools.cache
    def homes() -> Mapping[str, str]:
        """Read the modules of the names from the stub."""
        import ast
        from pathlib import Path

        statements = ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body
        imports = (one for one in statements if isinstance(one, ast.ImportFrom))
        return {alias.name: str(one.module) for one in imports for alias in one.names if alias.asname == alias.name}

    def attribute(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if (name.startswith("__") and name.endswith("__")) or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes()[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes()})

    return attribute, names


def import_ahead(module: str) -> None:
    """Begin to import a module that this process needs a little later, in a thread.

    This gains the time in which an import does not hold the interpreter's lock: while it reads files, and for aiohttp
    the certificates of authorities. If the import fails, the statement that needs the module raises the error.
    """
    if module in sys.modules:
        return

    def imported() -> None:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)

    threading.Thread(target=imported, name=f"import {module}").start()
