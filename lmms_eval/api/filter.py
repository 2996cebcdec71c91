"""The interface of answer filters: what a class named in a task's ``filter_list`` must offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class Filter(ABC):
    """Changes the answers of all documents before scoring.

    The keyword arguments come from the ``filter_list`` item; a subclass takes the ones it knows.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs

    @abstractmethod
    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> Sequence[Any]:
        """Return one value per document: a list of answers for the next filter, or the single answer.

        Args:
            resps: per document the list of its answers (or what the filter before made of it).
            docs: the documents, in the same order.
        """
