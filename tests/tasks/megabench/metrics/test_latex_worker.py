import pytest

from lmms_eval.tasks.megabench.metrics.latex_worker import latex_equal, latex_text
from tests.cases import for_each

pytest.importorskip("sympy", reason="LaTeX is parsed with sympy")


@for_each(
    ("first", "second", "outcome"),
    [
        ("x+1", "1+x", "equal"),
        (r"\sin^2 x+\cos^2 x", "1", "equal"),
        (r"\log(x)", r"\ln(x)", "equal"),
        (r"\sqrt{x^2}", "x", "different"),
        ("(x-1)^{9}", "x^9-1", "different"),
        ("x=1", "1=x", "equal"),
        (r"\frac{1}{0}", "x", "different"),
        (r"\int_0^1 x dx", r"\frac{1}{2}", "equal"),
        (r"\sum_{i=1}^{4} i", "10", "equal"),
        ("}{", "x", "unparsed"),
        (r"\binom{99999999}{4999999}", "x", "unparsed"),
        (r"\sum_{i=1}^{99999999} i^{99}", "x", "unparsed"),
        (r"\prod_{i=1}^{99999999} i", "x", "unparsed"),
        (r"\sum_{i=1}^{n} i", "x", "different"),
    ],
)
def test_comparisons(first: str, second: str, outcome: str) -> None:
    assert latex_equal(first, second) == outcome


def test_what_clearly_differs_is_not_simplified(monkeypatch: pytest.MonkeyPatch) -> None:
    from sympy import Expr

    def equals(*_: object, **__: object) -> bool:
        raise AssertionError("simplified")

    monkeypatch.setattr(Expr, "equals", equals)
    assert latex_equal("".join(f"(x+{number})" for number in range(40)), r"\frac{x+1}{2}") == "different"
    for first, second in (("x+1", "1+x"), ("(x-1)^{9}+1", "(x-1)^{9}+1"), (r"\int_0^1 x dx", "x")):
        with pytest.raises(AssertionError, match="simplified"):
            latex_equal(first, second)


def test_cancellation_is_no_difference() -> None:
    expanded = "x^{8}-8x^{7}+28x^{6}-56x^{5}+70x^{4}-56x^{3}+28x^{2}-8x+1"
    assert latex_equal("(x-1)^{8}", expanded) == "equal"


def test_printed_forms() -> None:
    assert latex_text(r"\frac{1}{2}, as shown") == "1/2"
    assert latex_text("x y") == "x*y"
    assert latex_text("}") is None
