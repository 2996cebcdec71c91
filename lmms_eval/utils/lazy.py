"""Imports: a package's public names on first use, and many modules at once."""

from __future__ import annotations

import functools
import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_collection() -> Iterator[None]:
    """Import modules without garbage collection, and exclude what they create from later collections.

    Modules create many objects and hardly any garbage: looking for it takes a tenth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


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
