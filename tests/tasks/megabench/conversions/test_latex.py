import pytest
from hypothesis import given

from lmms_eval.tasks.megabench.conversions.latex import (
    first_tokens,
    normalize_latex,
    token_count,
    unbox,
    unwrap_delimiters,
)
from lmms_eval.tasks.megabench.conversions.literals import ConversionError
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text


@for_each(
    ("text", "expected"),
    [
        (r"\bar{x}_1", r"\overline{x_1}"),
        (r"\barrier", r"\overlinerier"),
        ("ā_2", r"\overline{a_2}"),
        ("x\u0304\u0304", r"\overline{\overline{x}}"),
        ("ᾱ", "\\overline{\\alpha }"),
        ("πΩο", "\\pi \\Omega \\omicron "),
        (r"\begin{array}[t]x\end{array}", "x"),
        (r"\(x\) \[y\] $z$", "x y $z$"),
    ],
)
def test_normalisation(text: str, expected: str) -> None:
    assert normalize_latex(text) == expected


@for_each("text", ["ς", "\u0304x"])
def test_refusals(text: str) -> None:
    with pytest.raises(ConversionError):
        normalize_latex(text)


def test_delimiters_are_unwrapped_on_one_line_only() -> None:
    assert unwrap_delimiters(r"a \(b\) \(c", r"\(", r"\)") == r"a b \(c"
    assert unwrap_delimiters("\\(b\n\\)", r"\(", r"\)") == "\\(b\n\\)"


def test_boxes_with_one_nested_level() -> None:
    assert unbox(r"so $\boxed{\frac{1}{2}}$ or \boxed{3}") == r"\frac{1}{2}"
    assert unbox(r"\boxed{\sqrt{\frac{1}{4}}}") == r"\boxed{\sqrt{\frac{1}{4}}}"
    assert unbox("none") == "none"


@FUZZ
@given(reply_text)
def test_raises_nothing_else(text: str) -> None:
    unbox(text)
    unwrap_delimiters(text, r"\(", r"\)")
    try:
        assert isinstance(normalize_latex(text), str)
    except ConversionError:
        assert "ς" in text or "\u0304" in text or "\u03a2" in text


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit():
        normalize_latex(NASTY[name])
        unbox(NASTY[name])
        unwrap_delimiters(NASTY[name], "[", "]")


def test_tokens() -> None:
    assert token_count(r"\frac{1}{23} + \alpha_b") == 12
    assert first_tokens(r"\frac{1}{2}+x", 4) == r"\frac{1}"
    assert first_tokens("a b c", 2) == "a b"
    assert first_tokens("a b", 5) == "a b"
    assert first_tokens("", 5) == ""


def test_of_vertical_bars_and_blanks_there_are_limits() -> None:
    assert first_tokens("|a" * 40, 1000) == "|a" * 16
    assert first_tokens("|a" * 8, 1000) == "|a" * 8
    assert len(first_tokens("a" + "\n" * 1_000_000 + "b", 250)) == 10_000
