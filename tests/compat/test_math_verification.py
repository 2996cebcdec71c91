"""Mathematical answers: the child process, and the message without the package."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated, evaluated_wholly
from lmms_eval.metrics import math_answers
from lmms_eval.tasks._task_utils.math_verify_utils import MathVerifyFn
from tests.cases import for_each

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="the package math-verify is not installed"
)


@needs_package
def test_answers_are_compared_in_any_thread() -> None:
    verify = MathVerifyFn()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(verify, [r"\boxed{0.5}", r"\boxed{3}", r"\boxed{50\%}"], [r"\frac{1}{2}", "4", "50"]))
    assert [score for score, _ in found] == [1.0, 0.0, 1.0]
    assert math_answers._guard.child_pid not in (None, os.getpid())


@needs_package
def test_a_task_chooses_its_scores() -> None:
    verify = MathVerifyFn(correct_score=2, incorrect_score=-1)
    assert verify(r"\boxed{x+1}", "$1+x$")[0] == 2
    assert verify(r"\boxed{x+1}", "x")[0] == -1
    assert verify(None, "x") == verify("x", 5) == (-1, "")


@needs_package
@pytest.mark.parametrize("truth", [None, "", 0, [], False])
def test_an_empty_truth_equals_nothing_and_the_answer_is_found(truth: Any) -> None:
    assert MathVerifyFn()(r"so \boxed{5}", truth) == (0.0, "5")
    assert MathVerifyFn()(r"\boxed{None}", truth)[0] == MathVerifyFn()("", truth)[0] == 0.0


@needs_package
def test_astronomical_numbers_take_bounded_time() -> None:
    verify = MathVerifyFn(timeout_seconds=1)
    verify(r"\boxed{1}", "1")
    start = time.monotonic()
    assert verify(r"\boxed{9^{9^{9^{9}}}}", r"9^{9^{9}}")[0] == 0.0
    assert time.monotonic() - start < 10
    assert verify(r"\boxed{2}", "2") == (1.0, "2")


@for_each("use", [lambda: MathVerifyFn()("5", "5"), lambda: math_answers.default_verify("5", "6")])
def test_without_the_package_nothing_is_scored(monkeypatch: pytest.MonkeyPatch, use: Callable[[], object]) -> None:
    monkeypatch.setattr(math_answers, "_is_installed", lambda: False)
    with pytest.raises(NotEvaluated, match=r"pip install 'lmms_eval\[math\]'"):
        use()


def test_task_code_that_takes_any_error_for_a_wrong_answer_does_not_hide_the_absence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def process_results() -> float:
        try:
            return MathVerifyFn()("5", "5")[0]
        except Exception:  # noqa: BLE001 - as task files of the family do
            return 0.0

    monkeypatch.setattr(math_answers, "_is_installed", lambda: False)
    assert process_results() == 0.0
    with pytest.raises(NotEvaluated, match="math-verify"), evaluated_wholly():
        process_results()
