"""Several verifiers in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.compat.verifiers.base import Verifier, VerifyResult


class CompositeVerifier(Verifier):
    """The first confident of several verifiers, cheap ones first; without one, the last.

    Raises:
        ValueError: no verifiers.
    """

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        if not verifiers:
            raise ValueError("a composite verifier needs at least one verifier: fill its list 'verifiers'")
        self.verifiers = list(verifiers)

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Return the first result whose metadata do not deny ``confident``, else the last one."""
        *others, last = self.verifiers
        for verifier in others:
            result = verifier(question, prediction, ground_truth, **kwargs)
            if result.metadata.get("confident", True):
                return result
        return last(question, prediction, ground_truth, **kwargs)
