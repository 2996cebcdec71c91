import contextlib
import time

import pytest

from lmms_eval.metrics.guard import JobError, LimitExceeded
from lmms_eval.tasks.megabench.metrics import latex
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import NASTY, cpu_limit


@for_each(
    ("response", "truth", "score"),
    [
        ("x^2-1", "(x-1)(x+1)", 1),
        ("x+1", "x+2", 0),
        ("α", r"\alpha", 1),
        ("x=1", "1=x", 1),
        ("0.1+0.2", "0.3", 0),
        (r"\frac{1}{", r"\frac{1}{", 1),
        ("a=1 b=2", "a=1 b=3", 1),
        ("$x$", "x", 0),
    ],
)
def test_equality(response: str, truth: str, score: float) -> None:
    assert latex.latex_expr_equality(response, truth) == score


def test_other_types_than_text_score_nothing() -> None:
    assert latex.latex_expr_equality(5, "5") == 0
    assert latex.text_with_latex_expr_equality("x", None) == 0


def test_text_and_formulas_must_both_match() -> None:
    assert latex.text_with_latex_expr_equality("let $x+1$ be", "Let, $1+x$ be") == 1
    assert latex.text_with_latex_expr_equality("let $x+2$ be", "let $1+x$ be") == 0
    assert latex.text_with_latex_expr_equality("set $x+1$ be", "let $1+x$ be") == 0
    assert latex.text_with_latex_expr_equality("no formula", "no-formula") == 1


def test_a_lone_dollar_sign_is_an_empty_formula() -> None:
    assert latex.text_with_latex_expr_equality("$", "") == 1
    assert latex.text_with_latex_expr_equality("$x+1$$", "$1+x$") == 1
    assert latex.text_with_latex_expr_equality("let $x$ be $", "let $x$ be") == 0


def test_the_head_of_a_long_response_counts() -> None:
    assert latex.latex_expr_equality(r"\frac{x+1}{2}" + ". I added both sides" * 2_000, r"\frac{1+x}{2}") == 1
    assert latex.latex_expr_equality("x+2" + ". I added both sides" * 2_000, "x+1") == 0


def test_a_long_truth_is_compared_in_full() -> None:
    truth = "+".join(f"x_{{{number}}}" for number in range(60))
    assert latex.token_count(truth) > latex.MAX_LATEX_TOKENS
    assert latex.latex_expr_equality(truth + "+y", truth) == 0
    assert latex.latex_expr_equality("y+" + truth, truth + "+y") == 1


def test_a_slow_comparison_falls_back_to_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(job: str, *arguments: str, limit: float) -> str:
        raise LimitExceeded("slow")

    monkeypatch.setattr(latex, "evaluate_in_process", slow)
    assert latex.latex_expr_equality("x - Y", "xy") == 1
    assert latex.latex_expr_equality("x", "y") == 0


def test_other_errors_of_sympy_come_through() -> None:
    with pytest.raises(JobError):
        latex.latex_expr_equality("(" * 2000, "x")


@for_each("text", ["9^{9^{9^{9}}}", "(x+1)^{99999999}", "99999999!", "{" * 50 + "}" * 50])
def test_hostile_expressions_return_at_once(text: str) -> None:
    latex.latex_expr_equality("x", "x")  # the child process is there
    start = time.monotonic()
    assert latex.latex_expr_equality(text, "xy") == 0
    assert time.monotonic() - start < 3


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit(), contextlib.suppress(JobError):  # too deeply nested: scores 0
        latex.text_with_latex_expr_equality("$" + NASTY[name].replace("$", "") + "$", "$x$")
