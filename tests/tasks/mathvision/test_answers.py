"""The answer of a response, and its comparison, as the benchmark's authors have them."""

from __future__ import annotations

import importlib.util
import time

import pytest

from lmms_eval.metrics import math_answers
from lmms_eval.tasks.mathvision.answers import final_answer, is_equal

needs_math = pytest.mark.skipif(
    importlib.util.find_spec("latex2sympy2_extended") is None, reason="the package that reads LaTeX is not installed"
)


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("so I choose (C).", "c"),
        ("(B)\nsince it fits", "b"),
        ("It is 12.", "12"),
        ("The answer is 7. Indeed.\nYes.", "7"),
        (r"first \boxed{1}, then \boxed{\dfrac{3}{4}}", r"\frac{3}{4}"),
        (r"x = \boxed{y = 90^\circ}", "90"),
        (r"\boxed{5 km}", "5"),
        (r"\boxed{5 \text{ km}}", "5{}"),  # the braces stay, and that is no number: so the rule has it
        ("3/4", r"\frac{3}{4}"),
        ("0.5", r"\frac{1}{2}"),
        (".75", "0.75"),
        (r"\sqrt2+\frac34", r"\sqrt{2}+\frac{3}{4}"),
        (r"\frac34", r"\frac34"),  # no braces without a root
        ("50%", "50%"),
        (r"\boxed{(A)}", "a"),
        ("12}.", "12"),
        ("", ""),
        ("I cannot say.", "icannotsay"),
        ("١٢", "١٢"),
    ],
)
def test_the_answer_is_cut_out_and_simplified(response: str, answer: str) -> None:
    assert final_answer(response) == answer


@needs_math
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "A"),
        ("12.004", "12"),
        ("1,200", "1200"),
        ("$\\frac{1}{2}$", "0.5"),
        ("(1, 2.001)", "(1,2)"),
        (r"2\pi", "6.28"),
        (r"2\frac{1}{2}", "1"),
        ("x=5", "5"),
        (r"50\%", r"\frac{1}{2}"),
        ("{12}", "12"),
        ("2(3)", "6"),
        (r"\frac{1,200}{2}", "600"),
    ],
)
def test_equal(one: str, other: str) -> None:
    assert is_equal(one, other)
    assert is_equal(other, one)


@needs_math
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("", ""),
        ("12.006", "12"),
        ("(1,2)", "[1,2]"),
        ("[2,1]", "[1,2]"),
        ("x+1", "1+x"),
        ("50%", "50"),
        ("90^\\circ", "90"),
        ("3 cm", "3"),
        ("two", "2"),
        (r"\int_0^1 x dx", "0.5"),
        ("__import__('os')", "1"),
    ],
)
def test_not_equal(one: str, other: str) -> None:
    assert not is_equal(one, other)


@needs_math
def test_a_number_that_takes_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math_answers, "_NUMBER_TIMEOUT_S", 0.05)
    assert not is_equal("9^{9^{9^{9^9}}}", "1")


@pytest.mark.parametrize("piece", ["oxed{", "is ", "<think>", "(a", "}", "\\frac", "数"])
def test_answers_of_a_hundred_thousand_characters_take_no_time(piece: str) -> None:
    started = time.process_time()
    assert not is_equal(final_answer((piece * 100_000)[:100_000]), "12")
    assert time.process_time() - started < 2
