"""Filters that choose among the answers of a document (harness specification §12.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lmms_eval.api.filter import Filter
from lmms_eval.errors import UsageError


class TakeFirst(Filter):
    """The first answer, or empty text where there is none."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [answers[0] if answers else "" for answers in resps]


class TakeFirstK(Filter):
    """The first ``k`` answers.

    Raises:
        UsageError: ``k`` is no number above 0, or a document has fewer answers.
    """

    def __init__(self, k: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise UsageError(f"filter take_first_k: k is {k!r}; give a number of at least 1")
        self.k = k

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        fewest = min((len(answers) for answers in resps), default=self.k)
        if fewest < self.k:
            raise UsageError(
                f"filter take_first_k: wants {self.k} answers of each document but one has {fewest};"
                f" set repeats to at least {self.k}"
            )
        return [list(answers[: self.k]) for answers in resps]


class MajorityVote(Filter):
    """A list with the most common answer, the first one on ties; an empty list where there is none."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer for answer, _ in Counter(answers).most_common(1)] for answers in resps]
