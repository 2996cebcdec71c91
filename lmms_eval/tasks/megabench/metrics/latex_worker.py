"""The child process that parses LaTeX with sympy; started by ``latex_process``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lmms_eval.metrics.guarded_worker import run
from lmms_eval.processes import do_without

MAX_POWER_BITS = 100_000
"""Numeric powers beyond this size are not compared (the comparison would compute them)."""
MAX_EXPANDED_EXPONENT = 2_000
MAX_FACTORIAL = 20_000
DIGITS = 50
MAX_TERMS = 1_000


def latex_text(text: str) -> str | None:
    """Return the printed form of the expression in a valid prefix of ``text``; ``None`` without one."""
    from sympy.parsing.latex import parse_latex

    try:
        expression = parse_latex(text)
        return None if expression is None else str(expression)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - sympy lets any error of its parser and printer through
        return None


def latex_equal(first: str, second: str) -> str:
    """Return ``equal`` or ``different``; ``unparsed`` if the texts have to be compared instead.

    Raises whatever sympy raises apart from its parsing, conversion, type and not-implemented errors.
    """
    from sympy import SympifyError
    from sympy.parsing.latex import parse_latex
    from sympy.parsing.latex.errors import LaTeXParsingError

    try:
        left, right = parse_latex(first), parse_latex(second)
        if _too_large(left) or _too_large(right):
            return "unparsed"
        if _clearly_differ(left, right):
            return "different"
        return "equal" if left.equals(right) else "different"
    except (LaTeXParsingError, SympifyError, TypeError, NotImplementedError):
        return "unparsed"


def _clearly_differ(left: Any, right: Any) -> bool:
    """Find different values of two expressions at a point where both have one: no simplification is needed then.

    Sums, products, integrals and limits are left to sympy.
    """
    from sympy import Derivative, Expr, Float, Integral, Limit, Product, Sum

    if not isinstance(left, Expr) or not isinstance(right, Expr):
        return False
    if left.has(*(kinds := (Sum, Product, Integral, Limit, Derivative))) or right.has(*kinds):
        return False
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    points = (1.1 + 0.7 * math.modf(0.618034 * place)[0] for place in range(1, len(symbols) + 1))
    values = {symbol: Float(point, DIGITS) for symbol, point in zip(symbols, points, strict=True)}
    first, second = (_number_at(side, values) for side in (left, right))
    if first is None or second is None:
        return False
    return abs(first - second) > 1e-6 * max(abs(first), abs(second), 1e-6)


def _number_at(expression: Any, values: Mapping[Any, Any]) -> complex | None:
    """Return the value with numbers for its symbols; ``None`` if it is not finite, or cannot be computed."""
    try:
        value = complex(_filled(expression, values))
    except (TypeError, ValueError, ArithmeticError, NotImplementedError, AttributeError, RecursionError):
        return None
    return value if math.isfinite(abs(value)) else None


def _filled(expression: Any, values: Mapping[Any, Any]) -> Any:
    """Fill in numbers from the leaves up: sympy's ``evalf`` takes exponential time for deeply nested products."""
    if not expression.args:
        return values.get(expression, expression)
    return expression.func(*(_filled(part, values) for part in expression.args)).evalf(DIGITS)


def _too_large(expression: Any) -> bool:
    """Return whether comparing an expression would compute, or expand to, a huge number."""
    from sympy import Pow, Product, Sum, binomial, factorial, preorder_traversal

    for node in preorder_traversal(expression):
        if isinstance(node, factorial | binomial) and _log2(node.args[0]) > math.log2(MAX_FACTORIAL):
            return True
        expands = isinstance(node, Pow) and node.base.is_Add and _log2(node.exp) > math.log2(MAX_EXPANDED_EXPONENT)
        if expands or (isinstance(node, Pow) and _log2(node) > MAX_POWER_BITS):
            return True
        if isinstance(node, Sum | Product) and any(_is_long(limit) for limit in node.limits):
            return True
    return False


def _is_long(limit: Any) -> bool:
    """Return whether an expression is a sum over too many numbers."""
    if len(limit) != 3 or not (limit[1].is_Number and limit[2].is_Number):
        return False
    return bool(limit[2] - limit[1] > MAX_TERMS)


def _log2(expression: Any) -> float:
    """Estimate the binary logarithm of a number's size; 0 for anything else."""
    if expression.is_Number:
        value = abs(expression)
        if value.is_Rational and value.p:
            return abs(math.log2(value.p) - math.log2(value.q))
        return abs(math.log2(float(value))) if 0 < float(value) < math.inf else 0.0
    if expression.is_Pow:
        exponent = _log2(expression.exp)
        return math.inf if exponent > 1000 else _log2(expression.base) * 2.0**exponent
    if expression.is_Mul or expression.is_Add:
        return math.fsum(_log2(part) for part in expression.args)
    return 0.0


if __name__ == "__main__":
    do_without("numpy", "scipy")  # sympy would import them, for a third of a second
    run({"latex_text": latex_text, "latex_equal": latex_equal}, lambda: latex_text("1"))
