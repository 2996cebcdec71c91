"""Constructor arguments of a base class as the fields of a dataclass, by position or by keyword."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Given(Generic[S]):
    """The arguments of one call."""

    settings: S
    named: frozenset[str]
    """Fields that the caller gave; the others have their defaults."""
    others: Mapping[str, Any]
    """Keywords that are no field."""

    def only_named(self, *names: str) -> dict[str, Any]:
        """Return those of the fields that the caller gave."""
        return {name: getattr(self.settings, name) for name in names if name in self.named}


def read_given(kind: type[S], positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Given[S]:
    """Bind a call's arguments to the fields of ``kind``; one too many or given twice is a ``TypeError``."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    own = {name: value for name, value in keywords.items() if name in names}
    settings = kind(*positional, **own)
    named = frozenset((*names[: len(positional)], *own))
    return Given(settings, named, {name: value for name, value in keywords.items() if name not in names})


def takes(kind: type[Any], any_other: bool = False) -> Callable[[F], F]:
    """Give a constructor the parameters of ``kind`` for those who look at its signature, as the registry does.

    Args:
        kind: the dataclass of its arguments.
        any_other: it takes further keywords.
    """

    def declare(constructor: F) -> F:
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        rest = [inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD)] if any_other else []
        parameters = [own, *inspect.signature(kind).parameters.values(), *rest]
        constructor.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return constructor

    return declare
