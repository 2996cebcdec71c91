"""Functions of users: which arguments one accepts, and the place in its files that an error came from."""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def place_of(error: BaseException, function: Callable[..., Any]) -> str:
    """Return ``FILE:LINE`` of the innermost frame of an error that is in the files of ``function``.

    These are the files in the folder of its module and below, without installed packages. If no frame is among them (a
    call with the wrong number of arguments), this is the function's definition; empty if the function has no file.
    """
    target = getattr(function, "func", function)  # of a functools.partial
    file = getattr(sys.modules.get(getattr(target, "__module__", None) or ""), "__file__", None)
    home = Path(file).resolve().parent if file else None
    if home is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = []
    for frame in frames:
        path = Path(frame.filename).resolve()
        is_installed = path.is_relative_to(home) and _INSTALLED.intersection(path.relative_to(home).parts)
        is_foreign = path.is_relative_to(_PACKAGE) and not home.is_relative_to(_PACKAGE)
        if path.is_relative_to(home) and not (is_installed or is_foreign):
            own.append(frame)
    if own:
        return f"{own[-1].filename}:{own[-1].lineno}"
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


class Parameters(Struct, frozen=True):
    """The parameters of a function."""

    names: tuple[str, ...]
    """Names of the parameters that can be given by keyword."""
    positional: int
    """Number of parameters that can be given by position."""
    any_positional: bool
    """Whether the function takes ``*args``."""
    any_keyword: bool
    """Whether the function takes ``**kwargs``."""


@functools.lru_cache(maxsize=1024)
def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Return a function's parameters. A signature that cannot be read counts as one positional parameter."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Parameters((), 1, any_positional=False, any_keyword=False)
    kinds = [parameter.kind for parameter in found]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return Parameters(
        names=tuple(parameter.name for parameter in found if parameter.kind in by_keyword),
        positional=sum(kind in by_position for kind in kinds),
        any_positional=inspect.Parameter.VAR_POSITIONAL in kinds,
        any_keyword=inspect.Parameter.VAR_KEYWORD in kinds,
    )


def accepts(function: Callable[..., Any], name: str) -> bool:
    """Return whether the function can be called with the keyword ``name``."""
    parameters = parameters_of(function)
    return name in parameters.names or parameters.any_keyword


def keywords_for(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offered keyword arguments that the function accepts."""
    return {name: value for name, value in offered.items() if accepts(function, name)}


def parameter_names(made: Callable[..., Any]) -> frozenset[str]:
    """Return the public keyword names that a class or function can be called with."""
    named = {*parameters_of(made).names, *getattr(made, "__struct_fields__", ())}
    return frozenset(name for name in named if not name.startswith("_"))
