"""Scores that depend on data outside the task, and are computed again when that data changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def depends_on(identity: Callable[[Any], str]) -> Callable[[Function], Function]:
    """Decorate a ``process_results``: what ``identity(lmms_eval_specific_kwargs)`` returns is part of the scores' key.

    It is called once, when the run begins; a ``DataError`` ends the run before the model is asked.
    """

    def mark(function: Function) -> Function:
        function.data_identity = identity  # type: ignore[attr-defined]
        return function

    return mark


def identity_of(function: Any, kwargs: Any) -> str:
    """Return the identity of the data that a scoring function depends on with these settings; empty for most."""
    identity = getattr(function, "data_identity", None)
    return str(identity(kwargs)) if callable(identity) else ""
