"""The interface of answer filters: the methods of a class that a task's ``filter_list`` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct


class Filter:
    """Transforms the answers of all documents before scoring. This base class returns them unchanged.

    The arguments come from the ``filter_list`` item. A subclass accepts the ones it knows. It need not call this
    constructor, which stores nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accept any arguments."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> Sequence[Any]:  # noqa: ARG002 - interface
        """Return one value per document: a list of answers for the next filter, or the single answer.

        Args:
            resps: for each document the list of its answers, or the output of the previous filter.
            docs: the documents, in the same order.
        """
        return resps


class FilterEnsemble(Struct):
    """A chain of filters over the answers of requests, for programs that call filters themselves."""

    name: str
    filters: Sequence[Any]

    def apply(self, instances: Sequence[Any], docs: Sequence[Any]) -> None:
        """Filter the ``resps`` of each request, and store the result in its ``filtered_resps`` under ``name``."""
        values: Sequence[Any] = [instance.resps for instance in instances]
        for step in self.filters:
            values = list(step.apply(values, docs))
        for instance, value in zip(instances, values, strict=True):
            instance.filtered_resps[self.name] = value
