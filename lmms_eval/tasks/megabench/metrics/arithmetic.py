"""Evaluates arithmetic expressions of a model by walking Python's syntax tree, without executing code."""

from __future__ import annotations

import ast
import math
import operator
import string
from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct

from lmms_eval.tasks.megabench.conversions.literals import ConversionError, quiet_parser

MAX_EXPRESSION_CHARS = 5_000
MAX_BITS = 1 << 16
"""Size of integers; larger ones are refused before they are computed."""
MAX_DEPTH = 200
"""Depth of nested operations: each takes three calls on a stack of a thousand."""

Number = int | float
Value = Number | str | list["Value"] | tuple["Value", ...]
"""Values of expressions. Truth values are integers, as in Python."""


class ArithmeticRefused(ConversionError):
    """The text is not an arithmetic expression, or is too large to evaluate."""


_TRUTH_VALUES: Mapping[str, bool] = MappingProxyType({"True": True, "False": False})
"""Truth values as names: Python normalises full-width letters of names to ASCII."""
_BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
    }
)
_COMPARE: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = MappingProxyType(
    {
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
    }
)


class Vocabulary(Struct, frozen=True):
    """The names and one-argument functions that an expression may use; walks its syntax tree."""

    names: Mapping[str, float]
    functions: Mapping[str, Callable[[float], float]]

    def value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in _TRUTH_VALUES:
                return _TRUTH_VALUES[node.id]
            if node.id in self.names:
                return self.names[node.id]
            raise ArithmeticRefused(f"the name {node.id!r} is unknown")
        if isinstance(node, ast.BoolOp):
            return self._choice(node)
        if isinstance(node, ast.List):
            return [self.value(item) for item in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self.value(item) for item in node.elts)
        return self._calculation(node)

    def _choice(self, node: ast.BoolOp) -> Value:
        """Return the first value that decides an ``and`` or ``or``; later ones are not evaluated."""
        decisive = isinstance(node.op, ast.Or)
        value: Value = not decisive
        for operand in node.values:
            value = self.value(operand)
            if bool(value) is decisive:
                break
        return value

    def _calculation(self, node: ast.expr) -> Number:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.value(node.operand)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
            operand = self._number(node.operand)
            return -operand if isinstance(node.op, ast.USub) else +operand
        if isinstance(node, ast.BinOp):
            left, right = self._number(node.left), self._number(node.right)
            if isinstance(node.op, ast.Pow):
                return _power(left, right)
            function = _BINARY.get(type(node.op))
            if function is None:
                raise ArithmeticRefused(f"{type(node.op).__name__} is not arithmetic")
            return _bounded(function(left, right))
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call):
            known = self.functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
            if known is None or len(node.args) != 1 or node.keywords:
                raise ArithmeticRefused("a call is not arithmetic")
            return known(self._number(node.args[0]))
        raise ArithmeticRefused(f"a {type(node).__name__} is not arithmetic")

    def _number(self, node: ast.expr) -> Number:
        value = self.value(node)
        if isinstance(value, int | float):
            return value
        raise ArithmeticRefused(f"a {type(value).__name__} is no operand")

    def _comparison(self, node: ast.Compare) -> bool:
        left = self._number(node.left)
        for operation, other in zip(node.ops, node.comparators, strict=True):
            function = _COMPARE.get(type(operation))
            if function is None:
                raise ArithmeticRefused(f"{type(operation).__name__} is not arithmetic")
            right = self._number(other)
            if not function(left, right):
                return False
            left = right
        return True


OFFICIAL = Vocabulary({"E": 2.718}, {})
REPAIRED = Vocabulary({"E": 2.718, "e": math.e}, {"sqrt": math.sqrt, "exp": math.exp})
"""With the ``e`` and the roots that the official reader does not know (scoring rules §3)."""


def _power(base: Number, exponent: Number) -> Number:
    integers = isinstance(base, int) and isinstance(exponent, int)
    if integers and abs(base) > 1 and abs(exponent) * math.log2(abs(base)) > MAX_BITS:
        raise ArithmeticRefused("the power is too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ArithmeticRefused("the power is complex")
    return _bounded(result)


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ArithmeticRefused("the integer is too large")
    return value


def evaluate(expression: str, vocabulary: Vocabulary = OFFICIAL) -> Value:
    """Evaluate numbers, ``+ - * / // % **``, comparisons, parentheses, lists, tuples, texts and the vocabulary.

    ``and``, ``or`` and ``not`` choose among values as in Python. Only ASCII blanks around an expression are skipped.

    Raises ``ArithmeticRefused`` for everything else, for division by zero, overflow, complex results and integers of
    more than ``MAX_BITS`` bits.
    """
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise ArithmeticRefused(f"{len(expression)} characters are too many for an expression")
    try:
        with quiet_parser():
            tree = ast.parse(expression.strip(string.whitespace), mode="eval")
        level: list[ast.AST] = [tree.body]
        for _ in range(MAX_DEPTH):  # a limit of our own, which does not depend on this process's stack
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise ArithmeticRefused(f"the expression is nested more than {MAX_DEPTH} deep")
        return vocabulary.value(tree.body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ArithmeticRefused(f"not evaluated: {error}") from None
