"""Signatures of functions: which arguments a function accepts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct


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


def has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Return whether the function has a parameter ``name``; ``**kwargs`` does not count."""
    return name in parameters_of(function).names


def keywords_for(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offered keyword arguments that the function accepts."""
    return {name: value for name, value in offered.items() if accepts(function, name)}


def parameter_names(made: Callable[..., Any]) -> frozenset[str]:
    """Return the public keyword names that a class or function can be called with."""
    named = {*parameters_of(made).names, *getattr(made, "__struct_fields__", ())}
    return frozenset(name for name in named if not name.startswith("_"))
