"""Named pipelines of filters (harness specification §12.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lmms_eval.errors import UsageError


class AppliesToAnswers(Protocol):
    """The interface of a filter (``lmms_eval.api.filter.Filter`` does)."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class FilterPipeline:
    """Filters applied one after the other, under the name that the results carry."""

    name: str
    filters: tuple[AppliesToAnswers, ...]

    def run(self, answers: Sequence[Sequence[Any]], docs: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The filtered value of each document, in the order of ``docs``.

        Args:
            answers: per document the list of its raw answers.
            docs: the documents the answers belong to.

        Raises:
            UsageError: numbers of answers, documents or results differ, or a filter refuses.
        """
        if len(answers) != len(docs):
            raise UsageError(
                f"filter pipeline {self.name!r}: {len(answers)} lists of answers for {len(docs)} documents"
            )
        values: Sequence[Any] = [list(of_document) for of_document in answers]
        for step in self.filters:
            values = list(step.apply(values, docs))  # plugins may return a lazy map
            if len(values) != len(docs):
                raise UsageError(
                    f"filter pipeline {self.name!r}: {type(step).__name__} returned {len(values)} values"
                    f" for {len(docs)} documents; return one for each"
                )
        return list(values)
