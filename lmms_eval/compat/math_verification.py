"""Equality of mathematical answers by the package math-verify (family names §4.6).

The package bounds its work with an alarm, which the main thread alone can set, and scoring runs in several threads; so
it runs in a child process, which is also held to an amount of memory.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
from typing import Any

from lmms_eval.api.outcome import NotEvaluated, note_absence
from lmms_eval.metrics.guard import Guard, JobError, LimitExceeded

INSTALL_HINT = "answers in mathematics need the package math-verify: pip install 'lmms_eval[math]'"
DEFAULT_TIMEOUT_S = 10
STEPS = 6
"""Bounded steps of one verification: two readings, and the comparison of two forms of each side."""
_guard = Guard("lmms_eval.compat.math_worker", "math-verify with latex2sympy2_extended")
atexit.register(_guard.close)


@functools.cache
def _is_installed() -> bool:
    return importlib.util.find_spec("math_verify") is not None


def _evaluate(job: str, *arguments: Any, timeout_s: float) -> Any:
    """Run a job of ``math_worker``; ``None`` where it raised, or took too long or too much memory.

    Raises:
        NotEvaluated: the package is not installed, or its process does not start. Task code that takes any error for a
            wrong answer does not hide it.
    """
    try:
        if not _is_installed():
            raise NotEvaluated(INSTALL_HINT)
        return _guard.call(job, *arguments, limit=STEPS * timeout_s)
    except NotEvaluated as absent:
        note_absence(absent.reason)
        raise
    except (JobError, LimitExceeded):
        return None


def default_verify(truth: str, predict: str) -> bool:
    """Compare two texts as the package reads them by default; what cannot be read or compared is not equal.

    Raises:
        NotEvaluated: the package is not installed.
    """
    return bool(_evaluate("default_verify", truth, predict, timeout_s=DEFAULT_TIMEOUT_S))


class MathVerifyFn:
    r"""Comparison of a solution's ``\boxed{…}`` or LaTeX answer with the truth.

    Args:
        correct_score: score of an equal answer.
        incorrect_score: score of any other.
        timeout_seconds: bound of each step of the package.
        strict: comparison of variables by their names, and of sets by their kind.
        silent: accepted; the child process writes nothing.
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

    @staticmethod
    def preprocess_answer(answer: str) -> str:
        r"""Put a truth that is not in ``\boxed{…}`` into it, without dollar signs around it."""
        if not answer:
            return answer
        if answer.startswith("$") and answer.endswith("$"):
            return f"\\boxed{{{answer.strip('$')}}}"
        return answer if "\\boxed" in answer else f"\\boxed{{{answer}}}"

    def __call__(self, solution: Any, ground_truth: Any) -> tuple[float, str]:
        """Return the score, and the answer that was found in the solution; whatever fails is an incorrect one.

        Raises:
            NotEvaluated: the package is not installed.
        """
        if not isinstance(solution, str) or not isinstance(ground_truth, str):
            return self.incorrect_score, ""
        truth, bound = self.preprocess_answer(ground_truth), self.timeout_seconds or DEFAULT_TIMEOUT_S
        found = _evaluate("verify_boxed", solution, truth, bound, self.strict, timeout_s=bound)
        if found is None:
            return self.incorrect_score, ""
        is_equal, extracted = found
        return (self.correct_score if is_equal else self.incorrect_score), extracted
