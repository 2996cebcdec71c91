import math
import time
from typing import Any

import pytest

from lmms_eval.metrics.guard import LimitExceeded
from lmms_eval.tasks.megabench.metrics import numbers
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import NASTY, cpu_limit


@for_each(
    ("response", "truth", "score"),
    [
        ("9", "10", 0.9),
        (9, "10", 0.9),
        ("25", "10", 0),
        ("5", "0", 0),
        ("ten", "10", 0),
        ("nan", "5", 0),
        (math.inf, "5", 0),
    ],
)
def test_relative_difference(response: Any, truth: Any, score: float) -> None:
    assert numbers.number_rel_diff_ratio(response, truth) == pytest.approx(score)


@for_each(
    ("response", "truth", "score"),
    [
        ("3", "3", 1),
        ("2", "3", 0),
        (3, "3", 0),
        ("3.0", "3", 0),
        ("0", "-1", -1),
        ("1", "0", 0),
        ("x", "0", 0),
        ("3", "", 0),
    ],
)
def test_positive_integers(response: Any, truth: Any, score: float) -> None:
    assert numbers.positive_int_match(response, truth) == score


def test_positive_integers_need_an_integer_truth() -> None:
    with pytest.raises(TypeError):
        numbers.positive_int_match("3", "3.5")


def test_normalised_error() -> None:
    assert numbers.normalized_rmse("0.55", "0.5") == pytest.approx(0.5)
    assert numbers.normalized_rmse("0.6", "0.5") == pytest.approx(0, abs=1e-12)
    assert numbers.normalized_rmse("50%", "0.5") == 0


def test_angles() -> None:
    assert numbers.angle_seq_float_rmse("[91, 89]", "90, 90") == pytest.approx(0.9)
    assert numbers.angle_seq_float_rmse("[90]", "[90, 90]") == 0
    assert numbers.angle_seq_float_rmse("['90', '90']", "[90, 90]") == 0
    assert numbers.angle_seq_float_rmse("[nan, 90]", "[90, 90]") == 0


@for_each(
    ("response", "truth"),
    [
        ("4.95", "5"),
        ("x = 5.01", "5"),
        (r"\(\frac{1}{2}\)", "0.5"),
        ("$1,234$", "1234"),
        ("2^{10}", "1024"),
        ("3π", "9.42"),
        ("50%", "0.5"),
        ("25 °C", "25"),
        ("5, six", "5"),
        ("[2, 1.001]", "[1, 2]"),
        ("5 > 3", "1"),
        ("E", "2.718"),
        ('"5"', "5"),
        ("Five", "five"),
        ("Ｔｒｕe", "1"),
        ("[1, 2] or [1, 2°]", "[1, 2]"),
    ],
)
def test_equal_numbers(response: str, truth: str) -> None:
    assert numbers.general_single_numerical_match(response, truth) == 1


@for_each(
    ("response", "truth"),
    [
        ("5.06", "5"),
        ("1.2e3", "1200"),
        (r"\sqrt{16}", "4"),
        ("(1, 2)", "(1, 2)"),
        ("[1, 2]", "1"),
        ("Answer is 5", "5"),
        ("", "5"),
        ("\u202f[2, 1]", "[1, 2]"),
        ("\u202f[2, 1]", "[2, 1]"),
    ],
)
def test_different_or_unread_numbers(response: str, truth: str) -> None:
    assert numbers.general_single_numerical_match(response, truth) == 0


@for_each(
    ("response", "truth"),
    [
        ("1.2e3", "1200"),
        ("1.2E3", "1200"),
        ("$1.5e3$", "1500"),
        ("2e-3", "0.002"),
        ("2e-1%", "0.002"),
        (r"50\%", "0.5"),
        (r"12.5 \%", "12.5%"),
        (r"\sqrt{16}", "4"),
        (r"2\sqrt{3}", "3.4641"),
        (r"x = \frac{\sqrt{2}}{2}", "0.7071"),
        ("e^2", "7.389"),
        (r"\exp(2)", "7.389"),
        ("7.389", "e^2"),
    ],
)
def test_numbers_that_only_the_fixed_match_reads(response: str, truth: str) -> None:
    assert numbers.general_single_numerical_match(response, truth) == 0
    assert numbers.general_single_numerical_match_fixed(response, truth) == 1


@for_each(
    ("response", "truth", "score"),
    [
        ("50%", "0.5", 1),
        ("10**3", "10", 1),
        ("10**3", "1000", 0),
        ("1,234", "1234", 1),
        ("5, 6", "5", 1),
        ("1 000", "1000", 1),
        ("[2, 1.001]", "[1, 2]", 1),
        ("(1, 2)", "(1, 2)", 0),
        ("5 > 3", "1", 1),
        ("E", "2.718", 1),
        ("pi", "3.14", 0),
        ("nan", "nan", 1),
        ("inf", "inf", 1),
        ("1_000", "1", 1),
        ("3\u03c0", "9.42", 1),
        ("Five", "five", 1),
        ("5 kg", "5", 0),
        ("5!", "120", 0),
        ("5.06", "5", 0),
        ("", "5", 0),
    ],
)
def test_numbers_that_both_matches_read_alike(response: str, truth: str, score: float) -> None:
    assert numbers.general_single_numerical_match(response, truth) == score
    assert numbers.general_single_numerical_match_fixed(response, truth) == score


def test_the_fixed_match_in_a_box() -> None:
    response = r"so $\boxed{\sqrt{16}}$"
    assert numbers.boxed_single_numerical_match(response, r"\boxed{4}") == 0
    assert numbers.boxed_single_numerical_match_fixed(response, r"\boxed{4}") == 1


@for_each(
    ("response", "truth", "official", "fixed"),
    [
        (3, "3", 0, 1),
        (2, "3", 0, 0),
        (0, "-1", 0, -1),
        ("3", "3", 1, 1),
        (3.0, "3", 0, 0),
        (True, "1", 0, 0),
        (None, "3", 0, 0),
        ([3], "3", 0, 0),
    ],
)
def test_integers_of_a_json_reply(response: Any, truth: str, official: float, fixed: float) -> None:
    assert numbers.positive_int_match(response, truth) == official
    assert numbers.positive_int_match_fixed(response, truth) == fixed


def test_a_slow_reading_of_the_fixed_match_falls_back_to_the_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(job: str, *arguments: str, limit: float) -> str:
        raise LimitExceeded("slow")

    monkeypatch.setattr(numbers, "evaluate_in_process", slow)
    numbers._printed_latex.cache_clear()
    assert numbers.general_single_numerical_match_fixed("sqrt(16) + 1", "5") == 1
    numbers._printed_latex.cache_clear()


def test_the_truth_must_be_text() -> None:
    with pytest.raises(TypeError):
        numbers.general_single_numerical_match("5", 5)


def test_boxes_are_opened() -> None:
    assert numbers.boxed_single_numerical_match(r"so $\boxed{\frac{5}{3}}$", r"\boxed{1.6667}") == 1
    assert numbers.boxed_single_numerical_match(r"\boxed{1} and \boxed{2}", "2") == 0


def test_a_slow_reading_falls_back_to_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(job: str, *arguments: str, limit: float) -> str:
        raise LimitExceeded("slow")

    monkeypatch.setattr(numbers, "evaluate_in_process", slow)
    numbers._printed_latex.cache_clear()
    assert (
        numbers.boxed_single_numerical_match(r"\boxed{x y}", r"\boxed{xy}") == 0
    )  # the boxed text against the bare one
    assert numbers.boxed_single_numerical_match("x y", r"\boxed{xy}") == 1
    assert numbers.general_single_numerical_match("2 + 3", "5") == 1  # still an expression
    numbers._printed_latex.cache_clear()


@for_each("text", ["9**9**9**9", "9^{9^{9^{9}}}", "10^{10^{10}}", "1" + "0" * 5000, "(" * 3000, "2**" * 500 + "2"])
def test_huge_numbers_and_deep_nesting_return_at_once(text: str) -> None:
    numbers.general_single_numerical_match("x", "y")  # the child process is there
    start = time.monotonic()
    assert numbers.general_single_numerical_match(text, "5") == 0
    assert time.monotonic() - start < 3


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit():
        numbers.boxed_single_numerical_match(NASTY[name], "5")
