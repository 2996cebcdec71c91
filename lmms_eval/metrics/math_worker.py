"""The child process that runs math-verify; started by ``math_answers``."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from lmms_eval.metrics.guarded_worker import run


@functools.cache
def _repair_grammar() -> None:
    """Add the accessor that the package's reader needs and its grammar for antlr 4.11 lacks.

    Without it a number with a percent sign counts as unreadable.
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
    """Compare the first answer of a solution, boxed ones first, with the truth; also return the answer's text."""
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
    texts = [form for form in found if isinstance(form, str)]
    return is_equal, (texts[0] if texts else str(found[0]) if found else "")


_UNREADABLE = re.compile(r"\\circ|(?<!\\)%|oxed\b|\\fbox|\\[()\[\]\s]")
"""Marks that the reader behind the benchmark's published numbers does not know: degrees, a percent sign, boxes, the
delimiters of formulas in a text, and a backslash before a blank."""
_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]")
"""A letter that is not part of a command."""
_DIVISION = re.compile(r"frac|/|\\div|:")


def latex_number(text: str, decimals: int) -> tuple[float, bool] | None:
    """Read LaTeX as latex2sympy2 1.9 does; return ``None`` for anything but a number.

    Adjacent factors are multiplied (``2\\frac{1}{2}`` is 1), ``x=5`` is 5, and the text after the first complete
    expression is ignored (``\\frac{1}{2}}since{x}`` is a half). ``3.0`` is read as 3. A complex or infinite value is
    not a number, nor is an expression that Python's ``math`` has no name for (``e`` by itself, an absolute value).

    Returns the rounded value, and whether it is computed from integers only: a quotient, a root or a decimal fraction
    is a floating-point number, even if its rounded value is whole.
    """
    import sympy
    from latex2sympy2_extended import NormalizationConfig, normalize_latex

    _repair_grammar()
    expression = _first_expression(text)
    if _UNREADABLE.search(expression):
        return None
    only_latex = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=False, nits=False, boxed="none", equations=False
    )
    factors = _GROUPING.sub("", _unwrapped(expression)).replace("\\pi(", "\\pi\\cdot(")
    found = _reader().parse(normalize_latex(factors, only_latex))
    if not isinstance(found, sympy.Expr) or _has_unknown_names(found, expression):
        return None
    value = complex(sympy.N(found.doit()))
    if value.imag or not math.isfinite(value.real):
        return None
    return round(value.real, decimals), _is_of_integers(found, expression)


def _has_unknown_names(found: Any, text: str) -> bool:
    """Return whether an expression has parts that ``math`` cannot compute: symbols, a bare ``e``, other functions.

    A symbol that is multiplied by zero has vanished from the expression, but not from the text.
    """
    import sympy
    from sympy.core.function import Application

    if found.has(sympy.E) or found.atoms(sympy.Symbol) or (found == 0 and _LETTER.search(text.rpartition("=")[2])):
        return True
    return not all(hasattr(math, function.func.__name__) for function in found.atoms(Application))


def _is_of_integers(found: Any, text: str) -> bool:
    """Return whether Python computes an expression without floating-point numbers."""
    import sympy

    if found.is_Number:
        return bool(found.is_finite) and float(found).is_integer() and not _DIVISION.search(text)
    if isinstance(found, sympy.floor):
        return True
    if found.is_Pow and not found.exp.is_nonnegative:
        return False
    is_exact = isinstance(found, (sympy.Add, sympy.Mul, sympy.Pow, sympy.factorial))
    return is_exact and all(_is_of_integers(part, text) for part in found.args)


_ENDS = re.compile(r"(?P<closing>(?:\\right)?(?:\\}|(?<!\\)[)\]}]))|(?P<opening>(?<!\\)[(\[]|{)|\.(?!\d)")


def _first_expression(text: str) -> str:
    """Return the text up to an unmatched closing bracket, or to a full stop outside brackets."""
    depth = 0
    for mark in _ENDS.finditer(text):
        if mark["opening"]:
            depth += 1
        elif depth == 0:
            return text[: mark.start()]
        elif mark["closing"]:
            depth -= 1
    return text


_WRAPPINGS = (("{", "}"), ("\\text{", "}"), ("\\{", "\\}"), ("$", "$"))


def _unwrapped(text: str) -> str:
    """Return a text without the braces, dollar signs or ``\\text{…}`` that enclose the whole of it."""
    text = text.strip()
    for opening, closing in _WRAPPINGS:
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening):
            inner = text[len(opening) : len(text) - len(closing)]
            if _is_balanced(inner):
                return _unwrapped(inner)
    return text


def _is_balanced(text: str) -> bool:
    depth = 0
    for mark in re.findall(r"\\[{}]|[{}]", text):
        depth += 1 if mark[-1] == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _reader() -> Any:
    """Return the package's reader without its mixed numbers, which would read ``2(3)`` as 5."""
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


if __name__ == "__main__":
    run(
        {"default_verify": default_verify, "verify_boxed": verify_boxed, "latex_number": latex_number},
        lambda: default_verify("1", "1"),
    )
