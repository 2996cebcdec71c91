"""What each ``fn`` of the metric vectors of General-Bench is here: ``FUNCTIONS`` of every module of this package."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any


@functools.cache
def functions() -> Mapping[str, Callable[..., Any]]:
    """All of them by name."""
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(__path__):
        table = importlib.import_module(f"{__name__}.{module.name}").FUNCTIONS
        repeated = found.keys() & table.keys()
        if repeated:
            raise ValueError(f"{module.name} repeats {', '.join(sorted(repeated))}")
        found.update(table)
    return found
