"""The two steps of a verification as abstract classes, and the result."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class VerifyResult:
    """Result of a verification. Task files change it, so it is not frozen."""

    score: float
    """From 0 to 1."""
    is_correct: bool
    raw_output: str = ""
    """The comparison in words, or the judge's reply."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """``confident``: a composite stops here; ``judge_failed``: the score says nothing about the answer."""


class Extractor(abc.ABC):
    """Step that cuts the answer out of a model's text."""

    @abc.abstractmethod
    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the extracted text; ``kwargs`` are the keywords of the verification."""

    def __call__(self, text: Any, **kwargs: Any) -> str:
        return self.extract(text, **kwargs)


class Verifier(abc.ABC):
    """Step that compares a prediction with the truth."""

    @abc.abstractmethod
    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare a prediction with the truth."""

    def __call__(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        return self.verify(question, prediction, ground_truth, **kwargs)
