"""Equality of mathematical answers by the package math-verify (family names §4.6).

The package limits its time with an alarm, which only the main thread can set, and scoring runs in several threads. So
it runs in a child process, whose memory is limited too.
"""

from __future__ import annotations

import atexit
import functools
import importlib.metadata
import importlib.util
from collections.abc import Sequence
from typing import Any

from lmms_eval.api.outcome import NotEvaluated, note_absence
from lmms_eval.errors import DataError, UsageError
from lmms_eval.metrics.guard import GuardedProcess, JobError, LimitExceeded

INSTALL_HINT = "answers in mathematics need the package math-verify: pip install 'lmms_eval[math]'"
DEFAULT_TIMEOUT_S = 10
STEPS = 6
"""Bounded steps of one verification: two readings, and the comparison of two forms of each side."""
_guard = GuardedProcess("lmms_eval.metrics.math_worker", "math-verify with latex2sympy2_extended")
atexit.register(_guard.close)


@functools.cache
def _is_installed() -> bool:
    return importlib.util.find_spec("math_verify") is not None


def evaluate(job: str, *arguments: Any, timeout_s: float) -> Any:
    """Run a job of ``math_worker``; return ``None`` if it raised, or exceeded its time or memory.

    Raises ``NotEvaluated`` if the package is not installed or its process does not start. The absence is recorded even
    if task code treats any error as a wrong answer.
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
    """Compare two texts as the package reads them by default; unreadable or incomparable texts are not equal.

    Raises ``NotEvaluated`` if the package is not installed.
    """
    return bool(evaluate("default_verify", truth, predict, timeout_s=DEFAULT_TIMEOUT_S))


MAX_NUMBER_CHARS = 1000
"""A longer text is a whole solution, not a number, and reading it would take seconds."""
_NUMBER_TIMEOUT_S = 2


@functools.lru_cache(maxsize=4096)
def latex_number(text: str, decimals: int) -> float | None:
    """Return the rounded value of a number in LaTeX; ``None`` for any other text, or one that takes seconds to read.

    It is an ``int`` if it is computed from integers only, without a quotient, a root or a decimal fraction, so that it
    is printed as Python prints it. Raises ``NotEvaluated`` if the package is not installed.
    """
    if len(text) > MAX_NUMBER_CHARS:
        return None
    found = evaluate("latex_number", text, decimals, timeout_s=_NUMBER_TIMEOUT_S)
    if found is None:
        return None
    value, is_of_integers = found
    return int(value) if is_of_integers else float(value)


def installed_reader() -> str:
    """Return the release of the package that reads LaTeX, for ``depends_on``.

    Raises ``DataError`` if it is not installed, which ends the run before any request.
    """
    try:
        return f"latex2sympy2_extended {importlib.metadata.version('latex2sympy2_extended')}"
    except importlib.metadata.PackageNotFoundError as error:
        raise DataError(INSTALL_HINT) from error


def boxed(answer: str) -> str:
    r"""Wrap a truth in ``\boxed{…}`` unless it is boxed already; dollar signs around it are removed."""
    if not answer:
        return answer
    if answer.startswith("$") and answer.endswith("$"):
        return f"\\boxed{{{answer.strip('$')}}}"
    return answer if "\\boxed" in answer else f"\\boxed{{{answer}}}"


def math_verify(references: Sequence[str], predictions: Sequence[Any]) -> float:
    """1.0 if the answer is mathematically equal to the truth, which is read as LaTeX or a number.

    A null on either side is never equal. Raises ``NotEvaluated`` if the package is not installed, and ``UsageError``
    without a reference or a prediction.
    """
    if not references or not predictions:
        raise UsageError("metric 'math_verify': needs one reference and one prediction")
    truth, answer = references[0], predictions[0]
    if truth is None or answer is None:
        return 0.0
    return float(default_verify(boxed(str(truth)), str(answer)))
