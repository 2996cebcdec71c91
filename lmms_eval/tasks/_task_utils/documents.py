"""Parses a document once for all of a task's functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Doc = Mapping[str, Any]


def once_per_document(parse: Callable[Concatenate[Doc, P], T]) -> Callable[Concatenate[Doc, P], T]:
    """Decorate a function of a document and hashable settings to keep its result while the document is in flight.

    All functions of a task that get the document from the framework share the result, within one process. It is dropped
    when the document is scored. For a plain mapping the function is called each time. The result must not be changed,
    and must depend only on the stored document and the settings. Exceptions are not kept.
    """

    @functools.wraps(parse)
    def call(doc: Doc, /, *args: P.args, **kwargs: P.kwargs) -> T:
        parsed: dict[Hashable, Any] | None = getattr(doc, "parsed", None)
        if parsed is None:
            return parse(doc, *args, **kwargs)
        key = (parse, args, *kwargs.items())
        if key not in parsed:
            parsed[key] = parse(doc, *args, **kwargs)
        found: T = parsed[key]
        return found

    return call
