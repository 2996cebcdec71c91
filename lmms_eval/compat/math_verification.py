"""Equality of mathematical answers, in the form that task files of the family use (family names §4.6)."""

from __future__ import annotations

from typing import Any

from lmms_eval.metrics.math_answers import DEFAULT_TIMEOUT_S, boxed, default_verify, evaluate

__all__ = ["MathVerifyFn", "default_verify"]


class MathVerifyFn:
    r"""Comparison of a solution's ``\boxed{…}`` or LaTeX answer with the truth.

    Args:
        correct_score: score of an equal answer.
        incorrect_score: score of any other.
        timeout_seconds: bound of each step of the package.
        strict: comparison of variables by their names, and of sets by their kind.
        silent: accepted and ignored; the child process writes nothing.
    """

    def __init__(
        self,
        correct_score: float = 1.0,
        incorrect_score: float = 0.0,
        timeout_seconds: int = DEFAULT_TIMEOUT_S,
        strict: bool = True,
        silent: bool = True,
    ) -> None:
        self.correct_score, self.incorrect_score = correct_score, incorrect_score
        self.timeout_seconds, self.strict, self.silent = timeout_seconds, strict, silent

    preprocess_answer = staticmethod(boxed)

    def __call__(self, solution: Any, ground_truth: Any) -> tuple[float, str]:
        """Return the score and the answer that was found in the solution; a failure counts as an incorrect answer.

        Nothing equals a truth that is null or empty; the answer is still extracted.

        Raises:
            NotEvaluated: the package is not installed.
        """
        if not isinstance(solution, str) or (ground_truth and not isinstance(ground_truth, str)):
            return self.incorrect_score, ""
        truth, bound = boxed(ground_truth or ""), self.timeout_seconds or DEFAULT_TIMEOUT_S
        found = evaluate("verify_boxed", solution, truth, bound, self.strict, timeout_s=bound)
        if found is None:
            return self.incorrect_score, ""
        is_equal, extracted = found
        return (self.correct_score if is_equal else self.incorrect_score), extracted
