"""Verifiers that compare by rule (family names §5)."""

from __future__ import annotations

import math
import re
from typing import Any

from lmms_eval.compat.verifiers.base import Verifier, VerifyResult
from lmms_eval.metrics.answers import ABS_TOL, REL_TOL, bare_choice, is_contained, read_number

_LETTER = re.compile("[A-Z]")


def _result(is_correct: bool, raw_output: str, *, confident: bool) -> VerifyResult:
    return VerifyResult(float(is_correct), is_correct, raw_output, {"confident": confident})


class ExactMatchVerifier(Verifier):
    """Equality of texts; confident only of a match."""

    def __init__(self, ignore_case: bool = True, strip: bool = True) -> None:
        self.ignore_case, self.strip = ignore_case, strip

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the two texts."""
        one, other = self._folded(prediction), self._folded(ground_truth)
        return _result(one == other, f"exact_match: {one!r} vs {other!r}", confident=one == other)

    def _folded(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.lower() if self.ignore_case else text


class ContainsVerifier(Verifier):
    """Containment of the truth in the prediction; confident only of a match."""

    def __init__(self, ignore_case: bool = True) -> None:
        self.ignore_case = ignore_case

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Look for the truth in the prediction."""
        found = is_contained(ground_truth, prediction, self.ignore_case)
        if self.ignore_case:
            ground_truth = ground_truth.lower()
        return _result(found, f"contains: {ground_truth!r} in prediction={found}", confident=found)


class MCQMatchVerifier(Verifier):
    """Equality of two choices; confident if the prediction is one letter from A to Z."""

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the choices in upper case, without parentheses and full stops around them."""
        one, other = map(bare_choice, (prediction, ground_truth))
        return _result(one == other, f"mcq_match: {one!r} vs {other!r}", confident=bool(_LETTER.fullmatch(one)))


class NumericToleranceVerifier(Verifier):
    """Closeness of two numbers (``math.isclose``); confident if both could be read."""

    def __init__(self, rel_tol: float = REL_TOL, abs_tol: float = ABS_TOL) -> None:
        self.rel_tol, self.abs_tol = rel_tol, abs_tol

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the numbers that the two texts hold."""
        one, other = read_number(prediction), read_number(ground_truth)
        if one is None or other is None:
            return _result(False, f"numeric_parse_fail: pred={prediction!r} gt={ground_truth!r}", confident=False)
        close = math.isclose(one, other, rel_tol=self.rel_tol, abs_tol=self.abs_tol)
        return _result(close, f"numeric: {one} vs {other} (rel_tol={self.rel_tol})", confident=True)
