"""The child process in which math-verify runs; started by ``math_answers``."""

from __future__ import annotations

import functools
import re
from typing import Any

from lmms_eval.metrics.guarded_worker import run


@functools.cache
def _repair_grammar() -> None:
    """Add the accessor that the package's reader asks of its own grammar for antlr 4.11, which lacks it.

    Without it a number with a percent sign counts as not readable.
    """
    from latex2sympy2_extended.gen.antlr4_11_0.PSParser import PSParser

    if not hasattr(PSParser.AtomContext, "FUNC_GAMMA"):
        PSParser.AtomContext.FUNC_GAMMA = lambda _context: None


def default_verify(truth: str, predict: str) -> bool:
    """Compare two texts with the package's defaults."""
    from math_verify import parse, verify

    _repair_grammar()
    predicted = parse(predict)
    return bool(verify(parse(truth), predicted))


def verify_boxed(solution: str, truth: str, timeout_s: int, strict: bool) -> tuple[bool, str]:
    """Compare the first answer of a solution, boxed ones before others, with the truth's; and the answer's text."""
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse, verify

    _repair_grammar()
    normalization = NormalizationConfig(
        basic_latex=True, units=True, malformed_operators=True, nits=True, boxed="last", equations=False
    )
    config = LatexExtractionConfig(boxed_match_priority=0, normalization_config=normalization)
    gold, found = (
        parse(text, extraction_mode="first_match", extraction_config=[config], parsing_timeout=timeout_s)
        for text in (truth, solution)
    )
    is_equal = bool(found) and bool(verify(gold, found, timeout_seconds=timeout_s, strict=strict))
    return is_equal, _shown(found)


def _shown(found: list[Any]) -> str:
    """The first text among the forms of an answer, else the first form as a text."""
    texts = [form for form in found if isinstance(form, str)]
    return texts[0] if texts else str(found[0]) if found else ""


_UNREADABLE = re.compile(r"\\circ|(?<!\\)%")
"""Marks that the reader with which the benchmark's numbers were made does not know: degrees, and a percent sign."""
_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def latex_number(text: str, decimals: int) -> list[float] | None:
    """Read LaTeX as latex2sympy2 1.9 does: real and imaginary part of its value, rounded; ``None`` for no number.

    What stands side by side is multiplied (``2\\frac{1}{2}`` is 1), and ``x=5`` is 5.
    """
    import sympy
    from latex2sympy2_extended import NormalizationConfig, normalize_latex

    _repair_grammar()
    if _UNREADABLE.search(text):
        return None
    bare = text[1:-1] if text.startswith("{") and text.endswith("}") and text.count("{") == 1 else text
    only_latex = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=False, nits=False, boxed="all", equations=False
    )
    found = _reader().parse(normalize_latex(_plain_factors(bare), only_latex))
    if not isinstance(found, sympy.Expr) or found.atoms(sympy.Symbol):
        return None
    value = complex(sympy.N(found.doit()))
    return [round(value.real, decimals), round(value.imag, decimals)]


def _plain_factors(text: str) -> str:
    """Without commas between thousands and a last full stop; with a sign between π and what it multiplies."""
    return _GROUPING.sub("", text.removesuffix(".")).replace("\\pi(", "\\pi\\cdot(")


def _reader() -> Any:
    """The package's reader, without its mixed numbers: it adds an integer to a number beside it, ``2(3)`` gives 5."""
    import sympy
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, _Latex2Sympy

    class Reader(_Latex2Sympy):  # type: ignore[misc]
        def convert_postfix_list(self, factors: Any, place: int = 0) -> Any:
            if place + 1 < len(factors):
                first = self.convert_postfix(factors[place])
                if getattr(first, "is_Integer", False):
                    return sympy.Mul(first, self.convert_postfix_list(factors, place + 1))
            return super().convert_postfix_list(factors, place)

    config = ConversionConfig(
        interpret_simple_eq_as_assignment=True, interpret_contains_as_eq=False, lowercase_symbols=False
    )
    return Reader(None, None, False, config=config)


def _prepare() -> None:
    default_verify("1", "1")


if __name__ == "__main__":
    run({"default_verify": default_verify, "verify_boxed": verify_boxed, "latex_number": latex_number}, _prepare)
