import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.megabench.metrics.arithmetic import REPAIRED, ArithmeticRefused, evaluate
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text


@for_each(
    ("expression", "value"),
    [
        ("2 + 3*4 - 6/4", 12.5),
        ("-7 // 2", -4),
        ("7 % 4 ** 2", 7),
        ("(1 + 2) * 3", 9),
        ("2**-1", 0.5),
        ("E*2", 5.436),
        ("5 > 3", True),
        ("1 < 2 < 2", False),
        ("[1, (2, 3)]", [1, (2, 3)]),
        (" '5' ", "5"),
        ("True", True),
        ("Ｔｒｕe", True),
        ("Ｆalse", False),
        ("[1, 2] or [1, 2]", [1, 2]),
        ("0 or 5", 5),
        ("3 and [4]", [4]),
        ("0 and x", 0),
        ("1 or 1/0", 1),
        ("0 or () or ''", ""),
        ("not 5", False),
        ("not [] and 2", 2),
        (" \t7", 7),
        ("7\n", 7),
        ("7\x0c", 7),
        ("\r\n \x0b[2, 1]\x0b\n ", [2, 1]),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert evaluate(expression) == value


@for_each(
    "expression",
    [
        "__import__('os').getcwd()",
        "abs(-5)",
        "x",
        "[1]*1000000000",
        "'a'*1000000000",
        "1/0",
        "(-1)**0.5",
        "9**9**9**9",
        "2**-9**9**9",
        "10**10**10",
        "1e308**2",
        "1 if True else 2",
        "lambda: 1",
        "1; 2",
        "1 << 5",
        "1 in [1]",
        "[x for x in [1]]",
        "1j",
        "0 or x",
        "not x",
        "[1] or 1/0 and x or",
        "ＴＲＵＥ",
        *(f"{blank}[2, 1]" for blank in "\x1c\x85\xa0\u2003\u2028\u202f\u3000"),
        *(f"[2, 1]{blank}" for blank in "\x1c\x85\xa0\u2003\u2028\u202f\u3000"),
        "-" * 4000 + "1",
        "1+" * 2400 + "1",
        "",
    ],
)
def test_refusals(expression: str) -> None:
    with cpu_limit(0.5), pytest.raises(ArithmeticRefused):
        evaluate(expression)


@for_each(("expression", "value"), [("sqrt(16)", 4), ("e**2", math.e**2), ("2*exp(1)", 2 * math.e), ("E", 2.718)])
def test_the_repaired_vocabulary(expression: str, value: float) -> None:
    assert evaluate(expression, REPAIRED) == pytest.approx(value)


@for_each(
    "expression", ["sqrt(-1)", "sqrt(1, 2)", "sqrt(x=1)", "sqrt([1])", "sqrt", "exp(9**9)", "abs(1)", "e.real", "pi"]
)
def test_refusals_of_the_repaired_vocabulary(expression: str) -> None:
    with pytest.raises(ArithmeticRefused):
        evaluate(expression, REPAIRED)


def test_the_official_vocabulary_has_no_functions() -> None:
    for expression in ("sqrt(16)", "e**2", "exp(1)"):
        with pytest.raises(ArithmeticRefused):
            evaluate(expression)


def test_repeated_multiplication_stays_bounded() -> None:
    factor = f"(2**{60_000})"
    assert isinstance(evaluate(factor), int)
    with pytest.raises(ArithmeticRefused, match="too large"):
        evaluate(f"{factor}*{factor}")


@FUZZ
@given(st.one_of(reply_text, st.text("0123456789+-*/%(). E<>=,[]", max_size=30)))
def test_gives_a_value_or_refuses(expression: str) -> None:
    try:
        value = evaluate(expression)
    except ArithmeticRefused:
        return
    assert isinstance(value, int | float | str | list | tuple)


@FUZZ
@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.sampled_from("+-*"))
def test_agrees_with_python(left: int, right: int, operation: str) -> None:
    expected = {"+": left + right, "-": left - right, "*": left * right}[operation]
    assert evaluate(f"{left} {operation} ({right})") == expected


def test_infinity_is_a_value() -> None:
    assert evaluate("1e999") == math.inf


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit(), pytest.raises(ArithmeticRefused):
        evaluate(NASTY[name])
