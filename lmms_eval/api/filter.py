"""The interface of answer filters: what a class named in a task's ``filter_list`` must offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class Filter:
    """Changes the answers of all documents before scoring; this base leaves them as they are.

    The arguments come from the ``filter_list`` item. A subclass takes the ones it knows and need not call this
    constructor, which keeps nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take any arguments."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> Sequence[Any]:  # noqa: ARG002 - interface
        """Return one value per document: a list of answers for the next filter, or the single answer.

        Args:
            resps: per document the list of its answers (or what the filter before made of it).
            docs: the documents, in the same order.
        """
        return resps


@dataclass
class FilterEnsemble:
    """Filters one after the other over the answers of requests, as the family's programs call them."""

    name: str
    filters: Sequence[Any]

    def apply(self, instances: Sequence[Any], docs: Sequence[Any]) -> None:
        """Put what the filters make of each request's ``resps`` into its ``filtered_resps``, under the name."""
        values: Sequence[Any] = [instance.resps for instance in instances]
        for step in self.filters:
            values = list(step.apply(values, docs))
        for instance, value in zip(instances, values, strict=True):
            instance.filtered_resps[self.name] = value
