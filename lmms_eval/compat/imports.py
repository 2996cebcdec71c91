"""Optional packages, and names that are imported when they are first used."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.errors import MissingOptionalDependencyError as MissingOptionalDependencyError


def optional_import(module: str, attribute: str | None = None, fallback: Any = None) -> tuple[Any, bool]:
    """Return a module or one of its attributes, and ``True``; ``fallback`` and ``False`` if it is not installed.

    An error that an installed package raises while it is imported is passed on.
    """
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module == missing or module.startswith(f"{missing}."):
            return fallback, False
        raise
    if attribute is None:
        return found, True
    return getattr(found, attribute, fallback), hasattr(found, attribute)


def is_package_available(name: str) -> bool:
    """Return whether a package can be found. Its parents are imported; the package itself is not."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False  # a parent is absent
    except ValueError:
        return True  # the module is imported already and has no specification


def require_package(package: str, extras: str | None = None, feature: str | None = None) -> None:
    """Raise an error if a package is not installed.

    Args:
        package: name of its module.
        extras: the extra of ``lmms_eval`` that installs it.
        feature: the feature that needs it, for the message.

    Raises:
        MissingOptionalDependencyError: the package is not installed. It is an ``ImportError`` that states how to
            install it.
    """
    if is_package_available(package):
        return
    purpose = f" for {feature}" if feature else ""
    source = f"lmms_eval[{extras}]" if extras else package
    raise MissingOptionalDependencyError(
        f"{package!r} is required{purpose} but not installed. Install with: pip install {source}"
    )


def make_lazy_getattr(names: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """Make a ``__getattr__`` for a module that imports names when they are first used.

    Args:
        names: for each name its module and its attribute there.
    """

    def attribute(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"no attribute {name!r}; there are {', '.join(sorted(names))}")
        module, found = names[name]
        return getattr(importlib.import_module(module), found)

    return attribute
