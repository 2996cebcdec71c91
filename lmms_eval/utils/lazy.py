"""Names that a package offers without importing the modules where they are."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package whose names stand in its stub alone.

    The stub ``__init__.pyi`` imports each name from its module, which is what type checkers read; here the module is
    imported when one of its names is asked for. So a name is stated once.

    Args:
        package: ``__name__`` of the package.
        file: its ``__file__``, beside which the stub lies.
    """

    @functools.cache
    def homes() -> Mapping[str, str]:
        """Read the stub: name to module."""
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
