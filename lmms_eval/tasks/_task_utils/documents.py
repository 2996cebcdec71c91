"""Parsing a document once, however many of a task's functions need what is parsed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Doc = Mapping[str, Any]


def once_per_document(parse: Callable[Concatenate[Doc, P], T]) -> Callable[Concatenate[Doc, P], T]:
    """Decorates a function of a document and hashable settings: its result is kept while the document is in flight.

    All functions of a task that get a document from the framework share what is kept, in one process; it goes when the
    document is scored. A plain mapping is parsed at each call. The result must not be changed, and may depend on
    nothing but the document as it is stored and the settings. An exception is not kept.
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
